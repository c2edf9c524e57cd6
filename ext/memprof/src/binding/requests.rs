//! `Memprof::Native.sum_up_requests`: summary of the traced requests of a file; `normalize_sql`.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use magnus::{Error, Object, RModule, Ruby, Value, function};
use memprof_trace::sql::{self, Dialect};
use memprof_trace::{Options, Summary};

use super::dump::{duplicate, failure};
use super::job::{self, Abandoned};

pub fn init(_: &Ruby, native: RModule) -> Result<(), Error> {
    native.define_singleton_method("sum_up_requests", function!(sum_up_requests, 2))?;
    native.define_singleton_method("normalize_sql", function!(normalize_sql, 2))
}

/// The text of a statement without its values; `adapter` determines the SQL dialect.
fn normalize_sql(statement: String, adapter: String) -> String {
    sql::normalize(statement.as_bytes(), Dialect::of(&adapter))
}

/// Reads a file descriptor to its end; options and answer are JSON. Yields the number of bytes read.
fn sum_up_requests(ruby: &Ruby, descriptor: i32, options: String) -> Result<String, Error> {
    let file = duplicate(ruby, descriptor)?;
    let options: Options = serde_json::from_str(&options)
        .map_err(|error| Error::new(ruby.exception_arg_error(), error.to_string()))?;
    let done = Arc::new(AtomicU64::new(0));
    let bytes_read = Arc::clone(&done);
    let summary = job::run_with(
        ruby,
        "trace",
        move |abandoned| sum_up(Input { file, abandoned }, options, &bytes_read),
        || {
            if ruby.block_given() {
                ruby.yield_value::<_, Value>(done.load(Ordering::Relaxed))?;
            }
            Ok(())
        },
    )?;
    summary.map_err(|error| failure(ruby, &error))
}

fn sum_up(input: Input, options: Options, bytes_read: &AtomicU64) -> io::Result<String> {
    let progress = |bytes| bytes_read.store(bytes, Ordering::Relaxed);
    let summary: Summary = memprof_trace::read(input, options, progress)?;
    Ok(serde_json::to_string(&summary)?)
}

/// A file that ends when its caller has given up.
pub(super) struct Input {
    pub(super) file: File,
    pub(super) abandoned: Abandoned,
}

impl Seek for Input {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl Read for Input {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.abandoned.load(Ordering::Relaxed) {
                return Err(io::Error::from_raw_os_error(libc::ECANCELED));
            }
            match self.file.read(bytes) {
                // Ruby's pipes are nonblocking.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                outcome => return outcome,
            }
        }
    }
}

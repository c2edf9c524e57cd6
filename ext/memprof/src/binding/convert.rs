//! `Memprof::Native.convert`: from one format of dumps to another.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use magnus::{Error, Object, RHash, RModule, Ruby, TryConvert, function};
use memprof_heap::dump::values::Values;
use memprof_heap::dump::{self, Options, Outcome, Policy};

use super::dump::{duplicate, failure, key, word};
use crate::convert::to_ruby;
use crate::vm::{gvl, heap};

pub fn init(_: &Ruby, native: RModule) -> Result<(), Error> {
    native.define_singleton_method("convert", function!(convert, 3))
}

/// Reads the dump at a path and writes it to a file descriptor; returns what was read and written.
fn convert(ruby: &Ruby, path: String, descriptor: i32, options: RHash) -> Result<RHash, Error> {
    let output = duplicate(ruby, descriptor)?;
    let options = (
        Options {
            format: word(ruby, options, "format")?,
            compression: word(ruby, options, "compression")?,
            ruby: heap::binding::version(ruby),
        },
        Values {
            policy: word::<Policy>(ruby, options, "values")?,
            key: key(),
        },
    );
    let result = gvl::without(|cancelled| run(&path, output, options, cancelled));
    ruby.thread_check_ints()?;
    match result.unwrap_or_else(|| Err(interrupted())) {
        Ok((outcome, bytes)) => to_hash(ruby, &outcome, bytes),
        Err(error) => Err(failure(ruby, &error)),
    }
}

fn run(
    path: &str,
    output: File,
    (options, values): (Options, Values),
    cancelled: Arc<AtomicBool>,
) -> io::Result<(Outcome, u64)> {
    let input = Interruptible {
        file: File::open(path)?,
        cancelled,
    };
    let mut dump = dump::create(output, options)?;
    let outcome = dump::convert(Box::new(input), &mut dump, values)?;
    Ok((outcome, dump.bytes()))
}

/// A file that ends with an error when the thread is to stop.
struct Interruptible {
    file: File,
    cancelled: Arc<AtomicBool>,
}

impl Read for Interruptible {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(interrupted());
        }
        self.file.read(bytes)
    }
}

/// An error of the system, so that it does not pass for broken data.
fn interrupted() -> io::Error {
    io::Error::from_raw_os_error(libc::ECANCELED)
}

fn to_hash(ruby: &Ruby, outcome: &Outcome, bytes: u64) -> Result<RHash, Error> {
    let hash = RHash::try_convert(to_ruby(ruby, &outcome.counts)?)?;
    hash.aset("bytes", bytes)?;
    hash.aset("skipped", outcome.skipped)?;
    hash.aset("first_skipped", outcome.first_skipped)?;
    hash.aset("truncated", outcome.truncated)?;
    hash.aset("format", outcome.format.name())?;
    Ok(hash)
}

//! Files and standard output, without Ruby.

use std::fs::File;
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::path::Path;

use magnus::Ruby;

use crate::os_errors;
use crate::vm::dump_files;
use crate::vm::heap::file::{dump_file, dump_to};

/// Dumps the heap atomically to a file, or to standard output.
pub fn heap_to(file: Option<&str>, format: &str) -> Result<(), String> {
    let ruby = Ruby::get().map_err(|error| error.to_string())?;
    let dumped = match file {
        Some(path) => dump_file(&ruby, path, format),
        None => stdout()
            .try_clone()
            .map_err(|error| failure("to standard output", &error))
            .and_then(|stdout| dump_to(&ruby, stdout, format)),
    };
    dumped.map(|_| ())
}

/// Standard output without Ruby's or Rust's buffer.
fn stdout() -> ManuallyDrop<File> {
    // SAFETY: the descriptor is only borrowed. If it is closed, writing says so.
    ManuallyDrop::new(unsafe { File::from_raw_fd(libc::STDOUT_FILENO) })
}

/// Writes text atomically to a file, or to standard output.
pub fn write(file: Option<&str>, text: &[u8]) -> Result<(), String> {
    let Some(file) = file else {
        return stdout().write_all(text).map_err(|error| failure("to standard output", &error));
    };
    let path = Path::new(file);
    dump_files::write_whole(
        path,
        &path.with_file_name(format!(".memprof-{}.tmp", std::process::id())),
        |error| failure(file, error),
        |mut out| out.write_all(text).map_err(|error| failure(file, &error)),
    )
}

fn failure(place: &str, error: &io::Error) -> String {
    format!("cannot write {place}: {}", os_errors::text(error))
}

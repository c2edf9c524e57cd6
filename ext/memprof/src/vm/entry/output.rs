//! Files and standard output, without Ruby.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use magnus::Ruby;

use crate::os_errors;
use crate::vm::heap::file::{dump_file, dump_to};

/// Dumps the heap to a file, which appears when it is whole, or to standard output.
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

/// Writes text to a file, which appears when it is whole, or to standard output.
pub fn write(file: Option<&str>, text: &[u8]) -> Result<(), String> {
    let Some(file) = file else {
        return stdout()
            .write_all(text)
            .map_err(|error| failure("to standard output", &error));
    };
    replace(Path::new(file), text).map_err(|error| failure(file, &error))
}

fn failure(place: &str, error: &io::Error) -> String {
    format!("can't write {place}: {}", os_errors::text(error))
}

fn replace(file: &Path, text: &[u8]) -> io::Result<()> {
    let temporary = file.with_file_name(format!(".memprof-{}.tmp", std::process::id()));
    let mut options = OpenOptions::new();
    let opened = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary);
    let written = opened
        .and_then(|mut out| out.write_all(text))
        .and_then(|()| fs::rename(&temporary, file));
    if written
        .as_ref()
        .is_err_and(|error| error.kind() != io::ErrorKind::AlreadyExists)
    {
        let _ = fs::remove_file(&temporary);
    }
    written
}

//! Errors as Ruby exceptions.

use std::io;

use magnus::{Error, ExceptionClass, Module, RModule, Ruby};
use memprof_analysis::questions;

use super::dump::failure;

/// For an unreadable dump: Memprof::InvalidDump if it is not a dump, Memprof::DumpTooLarge if it exceeds the limit, or else a
/// Memprof::Error.
pub fn of_input(ruby: &Ruby, error: &io::Error) -> Error {
    let name = match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => "InvalidDump",
        // The system's own EFBIG concerns files being written.
        io::ErrorKind::FileTooLarge if error.raw_os_error().is_none() => "DumpTooLarge",
        _ => return failure(ruby, error),
    };
    let class = || -> Result<ExceptionClass, Error> {
        ruby.class_object().const_get::<_, RModule>("Memprof")?.const_get(name)
    };
    match class() {
        Ok(class) => Error::new(class, error.to_string()),
        Err(error) => error,
    }
}

/// For a dump truncated so early that it has no object.
pub fn of_nothing(truncated: bool, objects: u64) -> io::Result<()> {
    if truncated && objects == 0 {
        let text = "it is truncated before its first object";
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
    }
    Ok(())
}

/// For an invalid question.
pub fn of_question(ruby: &Ruby, error: &questions::Error) -> Error {
    match error {
        questions::Error::Input(error) => of_input(ruby, error),
        error => Error::new(ruby.exception_arg_error(), error.to_string()),
    }
}

//! What went wrong, as exceptions.

use std::io;

use magnus::{Error, ExceptionClass, Module, RModule, Ruby};
use memprof_analysis::questions;

use super::dump::failure;

/// A dump that cannot be read: a Memprof::InvalidDump if it is none, a Memprof::DumpTooLarge if it is larger than it may
/// be, else a Memprof::Error.
pub fn of_input(ruby: &Ruby, error: &io::Error) -> Error {
    let name = match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => "InvalidDump",
        // The system's own EFBIG is about files that are written.
        io::ErrorKind::FileTooLarge if error.raw_os_error().is_none() => "DumpTooLarge",
        _ => return failure(ruby, error),
    };
    let class = || -> Result<ExceptionClass, Error> {
        ruby.class_object()
            .const_get::<_, RModule>("Memprof")?
            .const_get(name)
    };
    match class() {
        Ok(class) => Error::new(class, error.to_string()),
        Err(error) => error,
    }
}

/// A dump that was cut so early that it has no object.
pub fn of_nothing(truncated: bool, objects: u64) -> io::Result<()> {
    if truncated && objects == 0 {
        let text = "it is cut: it ends before its first object does";
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
    }
    Ok(())
}

/// A question without an answer. Of a filter that is wrong, the spot is shown.
pub fn of_question(ruby: &Ruby, error: &questions::Error, filter: Option<&str>) -> Error {
    let message = match (error, filter) {
        (questions::Error::Input(error), _) => return of_input(ruby, error),
        (questions::Error::Query(error), Some(filter)) => {
            format!("{}\n{}", error.message, error.pointing(filter))
        }
        (error, _) => error.to_string(),
    };
    Error::new(ruby.exception_arg_error(), message)
}

/// The filter among the parameters of a question.
pub fn filter_of(parameters: &str) -> Option<String> {
    let parameters: serde_json::Value = serde_json::from_str(parameters).ok()?;
    Some(parameters.get("where")?.as_str()?.to_owned())
}

//! What went wrong, as exceptions.

use std::io;

use magnus::{Error, ExceptionClass, Module, RModule, Ruby};
use memprof_heap::analysis;

use super::dump::failure;

/// A dump that cannot be read: a Memprof::InvalidDump if it is none, else a Memprof::Error.
pub fn of_input(ruby: &Ruby, error: &io::Error) -> Error {
    let broken = matches!(
        error.kind(),
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
    );
    let class = || -> Result<ExceptionClass, Error> {
        ruby.class_object()
            .const_get::<_, RModule>("Memprof")?
            .const_get("InvalidDump")
    };
    match class() {
        Ok(class) if broken => Error::new(class, error.to_string()),
        _ => failure(ruby, error),
    }
}

/// A dump that was cut so early that it tells of no object.
pub fn of_nothing(truncated: bool, objects: u64) -> io::Result<()> {
    if truncated && objects == 0 {
        let text = "it is cut: it ends before its first object does";
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
    }
    Ok(())
}

/// A question without an answer. Of a filter that is wrong, the spot is shown.
pub fn of_question(ruby: &Ruby, error: &analysis::Error, filter: Option<&str>) -> Error {
    let message = match (error, filter) {
        (analysis::Error::Input(error), _) => return of_input(ruby, error),
        (analysis::Error::Query(error), Some(filter)) => {
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

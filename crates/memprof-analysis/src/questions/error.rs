//! Why a question has no answer.

use std::fmt;
use std::io;

/// Why a question has no answer.
#[derive(Debug)]
pub enum Error {
    /// The dump or its index cannot be read.
    Input(io::Error),
    /// The filter is not right.
    Query(crate::query::Error),
    /// The question is not right: one line for people.
    Question(String),
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Input(error) => error.fmt(out),
            Error::Query(error) => error.fmt(out),
            Error::Question(text) => out.write_str(text),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::Input(error)
    }
}

impl From<crate::query::Error> for Error {
    fn from(error: crate::query::Error) -> Error {
        Error::Query(error)
    }
}

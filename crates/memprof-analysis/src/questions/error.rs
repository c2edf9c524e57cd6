//! Errors of questions.

use std::fmt;
use std::io;

use crate::query::{self, Query};

/// The reason why a question has no answer.
#[derive(Debug)]
pub enum Error {
    /// The dump or its index cannot be read.
    Input(io::Error),
    /// The filter cannot be parsed.
    Query {
        /// The error, with its position.
        error: query::Error,
        /// Its text.
        filter: String,
    },
    /// The question is invalid: one line for people.
    Question(String),
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Input(error) => error.fmt(out),
            Error::Query { error, filter } => {
                write!(out, "{}\n{}", error.message, error.pointing(filter))
            }
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

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Error {
        Error::Question(error.to_string())
    }
}

/// Parses a filter.
pub(super) fn parse(filter: &str) -> Result<Query, Error> {
    Query::parse(filter).map_err(|error| Error::Query { error, filter: filter.to_owned() })
}

//! The reasons why a trace cannot begin.

use std::fmt;

/// A trace that did not begin, and left the process unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// An unknown tracer name.
    Unknown(String),
    /// Calls cannot be interposed on this system, or in a program built like this one.
    Unsupported(&'static str),
    /// The system did not allow writing to a table: the object, and the system's error.
    Protected {
        /// The object that the table belongs to.
        object: String,
        /// The system's error.
        error: String,
    },
    /// The file of a recording cannot be written; the system's error.
    File(String),
    /// The process was forked while another thread was changing the tables.
    Forked,
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Unknown(name) => write!(out, "unknown native tracer {name:?}"),
            Refused::Unsupported(why) => out.write_str(why),
            Refused::Protected { object, error } => write!(out, "the table of {object} cannot be written: {error}"),
            Refused::File(error) => write!(out, "its file cannot be written: {error}"),
            Refused::Forked => {
                out.write_str("this process was forked while another thread began or finished a trace; trace its parent")
            }
        }
    }
}

impl std::error::Error for Refused {}

//! Errors of reading an image.

use std::fmt;
use std::io;

/// The reason why an image cannot be read.
#[derive(Debug)]
pub enum Error {
    /// The file cannot be read.
    Io(io::Error),
    /// Not a core file, or an unreadable one; the reason.
    Unreadable(String),
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io(error) => error.fmt(formatter),
            Error::Unreadable(reason) => formatter.write_str(reason),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::Io(error)
    }
}

impl From<object::Error> for Error {
    fn from(error: object::Error) -> Error {
        Error::Unreadable(format!("damaged ELF file: {error}"))
    }
}

/// An [`Error::Unreadable`].
pub(crate) fn unreadable<T>(reason: impl Into<String>) -> Result<T, Error> {
    Err(Error::Unreadable(reason.into()))
}

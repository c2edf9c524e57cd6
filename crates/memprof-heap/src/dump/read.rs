//! Reading dumps: format and compression are found by content, records are told to a [`Writer`].
//!
//! Dumps that were cut are read up to the break, broken lines and blocks are left out and counted.

mod binary;
mod facts;
mod input;
mod json;
mod lines;
mod memprof_json;
mod objspace_json;
mod reduce;
mod target;

use std::io::{self, Read};

use super::format::Format;
use super::record::Counts;
use super::values::Values;
use super::writer::Writer;
use input::Input;
pub(super) use target::Target;

/// What was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Format of the input.
    pub format: Format,
    /// What was written.
    pub counts: Counts,
    /// The input ends before the dump does.
    pub truncated: bool,
    /// Broken lines (blocks, in the binary format) that were left out.
    pub skipped: u64,
    /// Number of the first of them, from 1.
    pub first_skipped: Option<u64>,
}

/// Why reading a record ended early.
pub(super) enum Stop {
    /// The record is broken.
    Broken,
    /// The input cannot be read.
    Input(io::Error),
    /// The output cannot be written.
    Output(io::Error),
}

pub(super) type Fallible<T> = Result<T, Stop>;

impl Stop {
    fn into_error(self) -> io::Error {
        match self {
            Stop::Broken => invalid("a broken record"),
            Stop::Input(error) | Stop::Output(error) => error,
        }
    }
}

fn invalid(text: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text.into())
}

/// Counts what was left out.
#[derive(Default)]
struct Skipped {
    count: u64,
    first: Option<u64>,
}

impl Skipped {
    fn note(&mut self, number: u64) {
        self.count += 1;
        self.first.get_or_insert(number);
    }
}

/// Reads a dump and tells `writer` of all of it, also that it is finished.
///
/// # Errors
/// If the input is no dump, cannot be read, or the output cannot be written.
pub fn convert(
    input: Box<dyn Read + Send>,
    writer: &mut dyn Writer,
    values: Values,
) -> io::Result<Outcome> {
    let mut input = Input::new(input)?;
    let mut target = Target::new(writer, values);
    let mut skipped = Skipped::default();
    let format = input.format()?;
    let whole = match format {
        Format::Binary => binary::read(&mut input, &mut target, &mut skipped),
        Format::Memprof => lines::read(&mut input, &mut skipped, |line| {
            memprof_json::line(line, &mut target)
        })
        .map(|end| end.footer),
        _ => {
            objspace_json::begin(&mut target).map_err(Stop::into_error)?;
            lines::read(&mut input, &mut skipped, |line| {
                objspace_json::line(line, &mut target)
            })
            .map(|end| end.intact)
        }
    };
    let whole = whole.map_err(Stop::into_error)?;
    Ok(Outcome {
        format,
        counts: target.finish(whole)?,
        truncated: !whole,
        skipped: skipped.count,
        first_skipped: skipped.first,
    })
}

#[cfg(test)]
mod tests;

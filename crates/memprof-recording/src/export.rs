//! Recordings in the formats of other tools, one file per format.

mod collapsed;
mod heaptrack;
mod massif;

use std::io::{self, Read, Seek, Write};
use std::str::FromStr;

use crate::reader::Error;
use crate::summary::{Row, Summary};

/// A format of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// What heaptrack writes: for `heaptrack_print` and its GUI. It has every event.
    Heaptrack,
    /// What Valgrind's Massif writes: for `ms_print` and massif-visualizer. It has sums.
    Massif,
    /// Lines of `location bytes`, as scripts that draw flame graphs read them.
    Collapsed,
}

/// Which bytes of a location are meant where a format has room for one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Live when most bytes of all were live.
    Peak,
    /// Live at the end.
    Leaked,
    /// Allocated in all.
    Allocated,
}

impl Value {
    fn of(self, row: &Row) -> u64 {
        match self {
            Value::Peak => row.peak_bytes,
            Value::Leaked => row.leaked_bytes,
            Value::Allocated => row.allocated_bytes,
        }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(word: &str) -> Result<Format, String> {
        match word {
            "heaptrack" => Ok(Format::Heaptrack),
            "massif" => Ok(Format::Massif),
            "collapsed" => Ok(Format::Collapsed),
            _ => Err(format!("unknown format {word:?}")),
        }
    }
}

impl FromStr for Value {
    type Err = String;

    fn from_str(word: &str) -> Result<Value, String> {
        match word {
            "peak" => Ok(Value::Peak),
            "leaked" => Ok(Value::Leaked),
            "allocated" => Ok(Value::Allocated),
            _ => Err(format!("unknown value {word:?}")),
        }
    }
}

/// Writes a recording in another format, up to its last whole block.
///
/// # Errors
///
/// When it is none, or can't be read or written.
pub fn export<I: Read + Seek>(
    input: &mut I,
    format: Format,
    value: Value,
    out: &mut dyn Write,
) -> Result<(), Error> {
    match format {
        Format::Heaptrack => heaptrack::write(input, out)?,
        Format::Massif => massif::write(&Summary::read(input)?, out)?,
        Format::Collapsed => collapsed::write(&Summary::read(input)?, value, out)?,
    }
    out.flush()?;
    Ok(())
}

/// Locations with their bytes, most first; those without any are left out.
fn ranked(summary: &Summary, value: Value) -> Vec<(&str, u64)> {
    let rows = summary.locations.iter();
    let mut ranked: Vec<(&str, u64)> = rows
        .map(|row| (row.location.as_str(), value.of(row)))
        .filter(|(_, bytes)| *bytes > 0)
        .collect();
    ranked.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(other.0)));
    ranked
}

/// A text without what would end the line that it is in.
fn one_line(text: &str) -> String {
    text.replace(|letter: char| letter.is_control(), " ")
}

/// As the error of an output that could not be written.
fn written(outcome: io::Result<()>, failed: &mut Option<io::Error>) -> bool {
    match outcome {
        Ok(()) => true,
        Err(error) => {
            *failed = Some(error);
            false
        }
    }
}

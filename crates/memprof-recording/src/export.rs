//! Recordings in the formats of other tools, one file per format.

mod collapsed;
mod heaptrack;
mod massif;

use std::io::{self, Read, Seek, Write};
use std::str::FromStr;

use memprof_profile::export as profile;

use crate::reader::Error;
use crate::selection::Selection;
use crate::stacks::Counts;
use crate::summary::Summary;

/// A format of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// heaptrack's data file, for `heaptrack_print` and its GUI. It has every event.
    Heaptrack,
    /// Valgrind's Massif output, for `ms_print` and massif-visualizer. It has sums.
    Massif,
    /// Lines of `frame;frame bytes`, outermost frame first, as flame graph scripts expect.
    Collapsed,
    /// A format of allocation profiles that supports stacks.
    Profile(profile::Format),
}

/// The bytes of a location to export where a format has room for one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Live at the peak.
    Peak,
    /// Live at the end.
    Leaked,
    /// Allocated in total.
    Allocated,
}

impl Value {
    /// The value in these counts.
    #[must_use]
    pub fn of(self, counts: &Counts) -> u64 {
        match self {
            Value::Peak => counts.peak_bytes,
            Value::Leaked => counts.leaked_bytes,
            Value::Allocated => counts.allocated_bytes,
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
            "speedscope" | "firefox" | "pprof" => {
                word.parse().map(Format::Profile).map_err(|_| format!("unknown format {word:?}"))
            }
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

/// Writes a recording in another format, up to its last complete block. Formats with events contain all of it, regardless of
/// the selection.
///
/// # Errors
///
/// If it is not a recording, or can't be read or written.
pub fn export<I: Read + Seek>(
    input: &mut I,
    format: Format,
    value: Value,
    selection: &Selection,
    out: &mut dyn Write,
) -> Result<(), Error> {
    if format == Format::Heaptrack {
        heaptrack::write(input, out)?;
        out.flush()?;
        return Ok(());
    }
    let summary = Summary::read_part(input, selection)?;
    Ok(export_summary(&summary, format, value, out)?)
}

/// Writes the summary of a recording in another format.
///
/// # Errors
///
/// If it can't be written, or the format has events.
pub fn export_summary(
    summary: &Summary,
    format: Format,
    value: Value,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Heaptrack => return Err(io::ErrorKind::Unsupported.into()),
        Format::Massif => massif::write(summary, out)?,
        Format::Collapsed => collapsed::write(summary, value, out)?,
        Format::Profile(format) => {
            let profile = crate::profile::of(summary, value);
            let shown = match value {
                Value::Allocated => profile::Value::AllocatedBytes,
                Value::Peak | Value::Leaked => profile::Value::RetainedBytes,
            };
            out.write_all(&profile::export(&profile, format, shown))?;
        }
    }
    out.flush()
}

/// The text without characters that would end its line.
fn one_line(text: &str) -> String {
    text.replace(|letter: char| letter.is_control(), " ")
}

/// Stores the error if the output could not be written.
fn written(outcome: io::Result<()>, failed: &mut Option<io::Error>) -> bool {
    match outcome {
        Ok(()) => true,
        Err(error) => {
            *failed = Some(error);
            false
        }
    }
}

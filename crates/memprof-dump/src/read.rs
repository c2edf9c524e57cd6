//! Reads dumps: detects format and compression by content, and passes the records to a [`Writer`].
//!
//! A thread reads ahead and decompresses (`feed`); text is scanned token by token (`tokens`), so a line may have any length.
//! Truncated dumps are read up to the break; broken lines and blocks are skipped and counted.

mod binary_reader;
mod blocks;
mod collector;
mod detect;
mod feed;
mod heap_dump_reader;
mod hex;
mod keys;
mod limits;
mod line_facts;
mod lines;
mod memprof_reader;
mod objspace_reader;
mod reduce;
mod source;
mod strings;
mod target;
mod tokens;
mod unpack;
mod value_reader;
mod window;
mod word;

use std::io::{self, Read};
use std::sync::atomic::AtomicBool;

use super::format::Format;
use super::record::Counts;
use super::values::Values;
use super::writer::Writer;
use feed::{Feed, Piece};
pub use limits::Limits;
pub use source::{Source, open};
pub(super) use target::Target;
pub(super) use value_reader::checked;
use window::Window;

/// Options for reading a dump.
#[derive(Clone, Copy)]
pub struct Options<'o> {
    /// The contents that may be written.
    pub values: Values,
    /// Size limits of the dump.
    pub limits: Limits,
    /// Called about once per MiB with the number of input bytes read (compressed, if it is).
    pub progress: Option<&'o dyn Fn(u64)>,
    /// Reading fails soon after this becomes true, even while it waits for the input.
    pub stop: Option<&'o AtomicBool>,
}

impl From<Values> for Options<'_> {
    fn from(values: Values) -> Self {
        Options { values, limits: Limits::default(), progress: None, stop: None }
    }
}

/// The result of reading a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Format of the input.
    pub format: Format,
    /// The records written.
    pub counts: Counts,
    /// Whether the input ends before the dump does.
    pub truncated: bool,
    /// Skipped broken lines (blocks, in the binary format).
    pub skipped: u64,
    /// Number of the first skipped one, from 1.
    pub first_skipped: Option<u64>,
    /// Bytes of the input.
    pub bytes: u64,
}

/// The reason why reading a record ended early.
pub(super) enum Stop {
    /// The record is broken.
    Broken,
    /// The record contains more than this many bytes.
    TooLarge(u64),
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
            Stop::TooLarge(most) => limits::too_large("one of its records", most),
            Stop::Input(error) | Stop::Output(error) => error,
        }
    }
}

/// An error in the input data.
pub fn invalid(text: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text.into())
}

/// Counts skipped parts.
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

/// Reads a dump, passes all of it to `writer`, and finishes the output.
///
/// # Errors
/// If the input is not a dump or cannot be read, or the output cannot be written.
pub fn convert(
    input: Box<dyn Read + Send>,
    writer: &mut dyn Writer,
    values: Values,
) -> io::Result<Outcome> {
    read(input, writer, &Options::from(values))
}

/// Like [`convert`], with more options.
///
/// # Errors
/// As for [`convert`].
pub fn read(
    input: Box<dyn Read + Send>,
    writer: &mut dyn Writer,
    options: &Options<'_>,
) -> io::Result<Outcome> {
    let mut feed = Feed::new(input, options)?;
    let mut target = Target::new(writer, options.values);
    let mut skipped = Skipped::default();
    let (format, whole, bytes) = match feed.next()? {
        Piece::Binary => {
            let end =
                binary_reader::read(&mut feed, &mut target, &mut skipped, options.limits.record);
            let end = end.map_err(Stop::into_error)?;
            (Format::Binary, end.footer, feed.count())
        }
        first => text(feed, first, &mut target, &mut skipped, options.limits.record)?,
    };
    Ok(Outcome {
        format,
        counts: target.finish(whole)?,
        truncated: !whole,
        skipped: skipped.count,
        first_skipped: skipped.first,
        bytes,
    })
}

/// Reads a line-based format.
fn text(
    feed: Feed<'_>,
    first: Piece,
    target: &mut Target<'_>,
    skipped: &mut Skipped,
    record: u64,
) -> io::Result<(Format, bool, u64)> {
    let mut window = Window::new(feed, first, record).map_err(Stop::into_error)?;
    let format = detect::format(window.rest(), window.cut())?;
    let window = &mut window;
    let whole = match format {
        Format::Memprof => lines::read(window, target, skipped, &mut memprof_reader::Reader::new()),
        Format::HeapDump => {
            lines::read(window, target, skipped, &mut heap_dump_reader::Reader::new())
        }
        _ => lines::read(window, target, skipped, &mut objspace_reader::Reader::new()),
    };
    let whole = whole.map_err(Stop::into_error)?;
    Ok((format, whole, window.feed.count()))
}

#[cfg(test)]
mod tests;

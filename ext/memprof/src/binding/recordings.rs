//! `Memprof::Native`: what a recording of malloc adds up to, and the same in other tools' formats.

use std::io;

use magnus::{Error, Object, RModule, Ruby, function};
use memprof_recording::export::{Format, Value, export};
use memprof_recording::{Direction, Error as Unreadable, Summary, Tree};

use super::dump::{duplicate, failure};
use super::job;
use super::requests::Input;

pub fn init(native: RModule) -> Result<(), Error> {
    native.define_singleton_method("sum_up_recording", function!(sum_up_recording, 1))?;
    native.define_singleton_method("tree_of_recording", function!(tree_of_recording, 4))?;
    native.define_singleton_method("export_recording", function!(export_recording, 4))
}

/// Reads a file descriptor to its end. The answer is JSON; nil if it is no recording.
fn sum_up_recording(ruby: &Ruby, descriptor: i32) -> Result<Option<String>, Error> {
    summed_up(ruby, descriptor, |summary| {
        Ok(serde_json::to_string(&summary)?)
    })
}

/// Reads a file descriptor to its end, and adds up its stacks to a tree. `least`: the share of all bytes that a row has at
/// least. The answer is JSON; nil if it is no recording.
fn tree_of_recording(
    ruby: &Ruby,
    descriptor: i32,
    direction: String,
    value: String,
    least: f64,
) -> Result<Option<String>, Error> {
    let wrong = |message: String| Error::new(ruby.exception_arg_error(), message);
    let direction: Direction = direction.parse().map_err(wrong)?;
    let value: Value = value.parse().map_err(wrong)?;
    summed_up(ruby, descriptor, move |summary| {
        let tree = Tree::new(&summary.stacks, direction, value);
        let least = (least * value.of(&summary.total) as f64).ceil() as u64;
        Ok(serde_json::to_string(&tree.rows(least))?)
    })
}

fn summed_up(
    ruby: &Ruby,
    descriptor: i32,
    answer: impl FnOnce(Summary) -> io::Result<String> + Send + 'static,
) -> Result<Option<String>, Error> {
    let file = duplicate(ruby, descriptor)?;
    let work = move |abandoned| {
        // Blocks are read in two pieces, one of them of four bytes.
        let mut input = io::BufReader::with_capacity(1 << 18, Input { file, abandoned });
        match Summary::read(&mut input) {
            Ok(summary) => answer(summary).map(Some),
            Err(Unreadable::NoRecording) => Ok(None),
            Err(Unreadable::Io(error)) => Err(error),
        }
    };
    let answer = job::run_with(ruby, "recording", work, || Ok(()))?;
    answer.map_err(|error| failure(ruby, &error))
}

/// Reads a file descriptor from its beginning, and writes to another one.
fn export_recording(
    ruby: &Ruby,
    from: i32,
    to: i32,
    format: String,
    value: String,
) -> Result<(), Error> {
    let wrong = |message: String| Error::new(ruby.exception_arg_error(), message);
    let format: Format = format.parse().map_err(wrong)?;
    let value: Value = value.parse().map_err(wrong)?;
    let (file, out) = (duplicate(ruby, from)?, duplicate(ruby, to)?);
    let work = move |abandoned| {
        let mut input = io::BufReader::with_capacity(1 << 18, Input { file, abandoned });
        let mut out = io::BufWriter::with_capacity(1 << 16, out);
        export(&mut input, format, value, &mut out)
    };
    let outcome = job::run_with(ruby, "recording", work, || Ok(()))?;
    outcome.map_err(|error| match error {
        Unreadable::Io(error) => failure(ruby, &error),
        error @ Unreadable::NoRecording => failure(ruby, &io::Error::other(error.to_string())),
    })
}

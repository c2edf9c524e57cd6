//! `Memprof::Native`: what a recording of malloc adds up to, and the same in other tools' formats.

use std::io;

use magnus::{Error, Object, RModule, Ruby, function};
use memprof_recording::export::{Format, Value, export};
use memprof_recording::{Error as Unreadable, Summary};

use super::dump::{duplicate, failure};
use super::job;
use super::requests::Input;

pub fn init(native: RModule) -> Result<(), Error> {
    native.define_singleton_method("sum_up_recording", function!(sum_up_recording, 1))?;
    native.define_singleton_method("export_recording", function!(export_recording, 4))
}

/// Reads a file descriptor to its end. The answer is JSON; nil if it is no recording.
fn sum_up_recording(ruby: &Ruby, descriptor: i32) -> Result<Option<String>, Error> {
    let file = duplicate(ruby, descriptor)?;
    let summary = job::run_with(
        ruby,
        "recording",
        move |abandoned| sum_up(Input { file, abandoned }),
        || Ok(()),
    )?;
    summary.map_err(|error| failure(ruby, &error))
}

fn sum_up(input: Input) -> io::Result<Option<String>> {
    // Blocks are read in two pieces, one of them of four bytes.
    let mut input = io::BufReader::with_capacity(1 << 18, input);
    match Summary::read(&mut input) {
        Ok(summary) => Ok(Some(serde_json::to_string(&summary)?)),
        Err(Unreadable::NoRecording) => Ok(None),
        Err(Unreadable::Io(error)) => Err(error),
    }
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

//! `Memprof::Native.sum_up_recording`: what a recording of malloc adds up to.

use std::io;

use magnus::{Error, Object, RModule, Ruby, function};
use memprof_recording::{Error as Unreadable, Summary};

use super::dump::{duplicate, failure};
use super::job;
use super::requests::Input;

pub fn init(native: RModule) -> Result<(), Error> {
    native.define_singleton_method("sum_up_recording", function!(sum_up_recording, 1))
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

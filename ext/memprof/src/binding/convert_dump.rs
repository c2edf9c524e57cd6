//! `Memprof::Native.convert`: converts a dump to another format.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use magnus::{Error, Object, RHash, RModule, Ruby, TryConvert, function};
use memprof_dump::values::Values;
use memprof_dump::{Options, Outcome, Policy, read};

use super::dump::{duplicate, key, word};
use super::exceptions::{of_input, of_nothing};
use super::job::{self, Abandoned};
use crate::ruby_values::to_ruby;
use crate::vm::heap;

pub fn init(_: &Ruby, native: RModule) -> Result<(), Error> {
    native.define_singleton_method("convert", function!(convert, 3))
}

/// Reads the dump at a path and writes it to a file descriptor; returns counts of both.
fn convert(ruby: &Ruby, path: PathBuf, descriptor: i32, options: RHash) -> Result<RHash, Error> {
    let output = duplicate(ruby, descriptor)?;
    let options = (
        Options {
            format: word(ruby, options, "format")?,
            compression: word(ruby, options, "compression")?,
            ruby: heap::binding::version(ruby),
        },
        Values { policy: word::<Policy>(ruby, options, "values")?, key: key() },
    );
    let result =
        job::run(ruby, "convert", move |abandoned| run(&path, output, options, &abandoned))?;
    match result {
        Ok((outcome, bytes)) => to_hash(ruby, &outcome, bytes),
        Err(error) => Err(of_input(ruby, &error)),
    }
}

fn run(
    path: &Path,
    output: File,
    (options, values): (Options, Values),
    abandoned: &Abandoned,
) -> io::Result<(Outcome, u64)> {
    let source = read::open(path)?;
    let reading = read::Options {
        values,
        limits: read::Limits::default(),
        progress: None,
        stop: Some(abandoned),
    };
    let mut dump = memprof_dump::create(output, options)?;
    let outcome = read::read(source.input, &mut dump, &reading)?;
    of_nothing(outcome.truncated, outcome.counts.objects)?;
    Ok((outcome, dump.bytes()))
}

fn to_hash(ruby: &Ruby, outcome: &Outcome, bytes: u64) -> Result<RHash, Error> {
    let hash = RHash::try_convert(to_ruby(ruby, &outcome.counts)?)?;
    hash.aset("bytes", bytes)?;
    hash.aset("skipped", outcome.skipped)?;
    hash.aset("first_skipped", outcome.first_skipped)?;
    hash.aset("truncated", outcome.truncated)?;
    hash.aset("format", outcome.format.name())?;
    Ok(hash)
}

//! `Memprof::Native`: summaries of malloc recordings, and exports to other tools' formats.

use std::io;

use magnus::{Error, Object, RModule, Ruby, function};
use memprof_native::malloc;
use memprof_recording::export::{Format, Value, export, export_summary};
use memprof_recording::{
    Direction, Error as Unreadable, Flame, Function, Selection, Stacks, Summary, Tree, TreeRow,
};
use serde::Deserialize;
use serde_json::json;

use super::dump::{duplicate, failure};
use super::job;
use super::requests::Input;

pub fn init(native: RModule) -> Result<(), Error> {
    native.define_singleton_method("sum_up_recording", function!(sum_up_recording, 2))?;
    native.define_singleton_method("tree_of_recording", function!(tree_of_recording, 6))?;
    native.define_singleton_method("flame_of_recording", function!(flame_of_recording, 4))?;
    native
        .define_singleton_method("functions_of_recording", function!(functions_of_recording, 4))?;
    native.define_singleton_method("tree_of_malloc", function!(tree_of_malloc, 3))?;
    native.define_singleton_method("export_malloc", function!(export_malloc, 4))?;
    native.define_singleton_method("export_recording", function!(export_recording, 5))
}

/// Reads a file descriptor to its end. `selection` and the answer are JSON; nil if it is not a recording.
fn sum_up_recording(
    ruby: &Ruby,
    descriptor: i32,
    selection: String,
) -> Result<Option<String>, Error> {
    summed_up(ruby, descriptor, &selection, |summary| Ok(serde_json::to_string(&summary)?))
}

/// Reads a file descriptor to its end, and merges its stacks into a tree. `least`: minimum share of all bytes for a row. `at`:
/// the location of the stacks to include; nil for all. The answer is JSON; nil if it is not a recording.
fn tree_of_recording(
    ruby: &Ruby,
    descriptor: i32,
    direction: String,
    value: String,
    least: f64,
    selection: String,
    at: Option<String>,
) -> Result<Option<String>, Error> {
    let wrong = |message: String| Error::new(ruby.exception_arg_error(), message);
    let direction: Direction = direction.parse().map_err(wrong)?;
    let value: Value = value.parse().map_err(wrong)?;
    summed_up(ruby, descriptor, &selection, move |mut summary| {
        if let Some(location) = at {
            summary.stacks.only_at(&location);
        }
        let rows = tree(&summary.stacks, direction, value, least);
        Ok(serde_json::to_string(&rows)?)
    })
}

/// Reads a file descriptor to its end, and merges its stacks into a flame graph with a maximum number of frames. The answer is
/// JSON; nil if it is not a recording.
fn flame_of_recording(
    ruby: &Ruby,
    descriptor: i32,
    value: String,
    most: usize,
    selection: String,
) -> Result<Option<String>, Error> {
    let wrong = |message: String| Error::new(ruby.exception_arg_error(), message);
    let value: Value = value.parse().map_err(wrong)?;
    summed_up(ruby, descriptor, &selection, move |summary| {
        let tree = Tree::new(&summary.stacks, Direction::TopDown, value);
        Ok(serde_json::to_string(&Flame::new(&tree, most))?)
    })
}

/// Reads a file descriptor to its end, and sums up its stacks by function. `name`: only functions of that name, with their
/// callers and callees; nil for all. The answer is JSON; nil if it is not a recording.
fn functions_of_recording(
    ruby: &Ruby,
    descriptor: i32,
    value: String,
    name: Option<String>,
    selection: String,
) -> Result<Option<String>, Error> {
    let wrong = |message: String| Error::new(ruby.exception_arg_error(), message);
    let value: Value = value.parse().map_err(wrong)?;
    summed_up(ruby, descriptor, &selection, move |summary| {
        let functions = Function::all(&summary.stacks, value, name.as_deref());
        Ok(serde_json::to_string(&functions)?)
    })
}

/// The caller's selection.
#[derive(Deserialize)]
struct Wanted {
    from_ms: u64,
    to_ms: Option<u64>,
    suppressions: String,
}

fn selected(ruby: &Ruby, json: &str) -> Result<Selection, Error> {
    let wrong = |message: String| Error::new(ruby.exception_arg_error(), message);
    let wanted: Wanted = serde_json::from_str(json).map_err(|error| wrong(error.to_string()))?;
    Ok(Selection {
        from_ms: wanted.from_ms,
        to_ms: wanted.to_ms,
        suppressions: wanted.suppressions.parse().map_err(wrong)?,
    })
}

fn tree(stacks: &Stacks, direction: Direction, value: Value, least: f64) -> Vec<TreeRow> {
    let least = (least * value.of(&stacks.total()) as f64).ceil() as u64;
    Tree::new(stacks, direction, value).rows(least)
}

/// The tree of a recording in memory, with its sums: JSON of `sample`, `total`, `callers` and `rows`.
fn tree_of_malloc(
    ruby: &Ruby,
    direction: String,
    value: String,
    least: f64,
) -> Result<String, Error> {
    let wrong = |message: String| Error::new(ruby.exception_arg_error(), message);
    let direction: Direction = direction.parse().map_err(wrong)?;
    let value: Value = value.parse().map_err(wrong)?;
    let summary = Summary::of_stacks(malloc::stacks(), malloc::sample());
    let answer = json!({
        "sample": summary.sample,
        "total": summary.total,
        "callers": summary.callers,
        "rows": tree(&summary.stacks, direction, value, least),
    });
    Ok(answer.to_string())
}

/// Writes the recording in memory to a file descriptor.
fn export_malloc(
    ruby: &Ruby,
    to: i32,
    format: String,
    value: String,
    command: String,
) -> Result<(), Error> {
    let wrong = |message: String| Error::new(ruby.exception_arg_error(), message);
    let format: Format = format.parse().map_err(wrong)?;
    let value: Value = value.parse().map_err(wrong)?;
    let out = duplicate(ruby, to)?;
    let summary = Summary { command, ..Summary::of_stacks(malloc::stacks(), malloc::sample()) };
    let work = move |_| {
        let mut out = io::BufWriter::with_capacity(1 << 16, out);
        export_summary(&summary, format, value, &mut out)
    };
    let outcome = job::run_with(ruby, "recording", work, || Ok(()))?;
    outcome.map_err(|error| failure(ruby, &error))
}

fn summed_up(
    ruby: &Ruby,
    descriptor: i32,
    selection: &str,
    answer: impl FnOnce(Summary) -> io::Result<String> + Send + 'static,
) -> Result<Option<String>, Error> {
    let file = duplicate(ruby, descriptor)?;
    let selection = selected(ruby, selection)?;
    let work = move |abandoned| {
        // Each block takes two reads, one of them of four bytes.
        let mut input = io::BufReader::with_capacity(1 << 18, Input { file, abandoned });
        match Summary::read_part(&mut input, &selection) {
            Ok(summary) => answer(summary).map(Some),
            Err(Unreadable::NoRecording) => Ok(None),
            Err(Unreadable::Io(error)) => Err(error),
        }
    };
    let answer = job::run_with(ruby, "recording", work, || Ok(()))?;
    answer.map_err(|error| failure(ruby, &error))
}

/// Reads a file descriptor from its beginning, and writes the export to another one.
fn export_recording(
    ruby: &Ruby,
    from: i32,
    to: i32,
    format: String,
    value: String,
    selection: String,
) -> Result<(), Error> {
    let wrong = |message: String| Error::new(ruby.exception_arg_error(), message);
    let format: Format = format.parse().map_err(wrong)?;
    let value: Value = value.parse().map_err(wrong)?;
    let selection = selected(ruby, &selection)?;
    let (file, out) = (duplicate(ruby, from)?, duplicate(ruby, to)?);
    let work = move |abandoned| {
        let mut input = io::BufReader::with_capacity(1 << 18, Input { file, abandoned });
        let mut out = io::BufWriter::with_capacity(1 << 16, out);
        export(&mut input, format, value, &selection, &mut out)
    };
    let outcome = job::run_with(ruby, "recording", work, || Ok(()))?;
    outcome.map_err(|error| match error {
        Unreadable::Io(error) => failure(ruby, &error),
        error @ Unreadable::NoRecording => failure(ruby, &io::Error::other(error.to_string())),
    })
}

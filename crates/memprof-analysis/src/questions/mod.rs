//! Questions about a heap, and their answers.
//!
//! Serde reads a question from JSON parameters and writes its answer as JSON: the command, the Ruby API and the web pages
//! ask the same questions with the same parameters ([`ask`]).

pub mod class;
pub mod collections;
mod computed;
pub(crate) mod describe;
pub mod diff;
pub mod duplicates;
mod error;
mod flame;
pub mod histogram;
mod holders;
mod leaked;
mod list;
mod memory;
pub mod namespaces;
mod neighbours;
mod object;
mod object_fields;
pub mod overview;
pub mod path;
pub mod phrase;
pub mod procs;
mod remark;
pub mod select;
pub mod slots;
mod threads;
pub mod top;
mod tracking;
mod tree;
pub mod verdict;
pub mod words;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use describe::{Described, Site};
pub use diff::{Changes, Diff};
pub use error::Error;
pub use limit::Limit;
pub(crate) use list::largest;
use list::{limit, numbering, tally};
pub use object::json;
pub use phrase::Phrase;
pub use remark::Remark;
pub use select::Selection;
pub use words::Words;

use crate::query::Pattern;
use memprof_heap::Heap;

/// Answers a question about a heap in JSON.
///
/// # Errors
/// If the question is unknown, its parameters are invalid, or the index cannot be read.
pub fn ask(heap: &Heap, question: &str, parameters: Value) -> Result<String, Error> {
    match question {
        "class" => answer(heap, parameters, class::Question::answer),
        "collections" => answer(heap, parameters, collections::Question::answer),
        "duplicates" => answer(heap, parameters, duplicates::Question::answer),
        "flame" => answer(heap, parameters, flame::Question::answer),
        "histogram" => answer(heap, parameters, histogram::Question::answer),
        "leaks" => answer(heap, parameters, verdict::Question::answer),
        "memory" => answer(heap, parameters, memory::Question::answer),
        "merged_paths" => answer(heap, parameters, verdict::merged_paths::Question::answer),
        "namespaces" => answer(heap, parameters, namespaces::Question::answer),
        "neighbours" => answer(heap, parameters, neighbours::Question::answer),
        "object" => answer(heap, parameters, object::Question::answer),
        "overview" => answer(heap, parameters, overview::Question::answer),
        "path" => answer(heap, parameters, path::Question::answer),
        "procs" => answer(heap, parameters, procs::Question::answer),
        "slots" => answer(heap, parameters, slots::Question::answer),
        "threads" => answer(heap, parameters, threads::Question::answer),
        "top" => answer(heap, parameters, top::Question::answer),
        "tree" => answer(heap, parameters, tree::Question::answer),
        _ => Err(Error::Question(format!("no such question: {question:?}"))),
    }
}

/// Reads a question and writes its answer. `of` is a heap, or two to compare.
fn answer<T: ?Sized, Q: DeserializeOwned, A: Serialize>(
    of: &T,
    parameters: Value,
    compute: impl Fn(&Q, &T) -> Result<A, Error>,
) -> Result<String, Error> {
    let question = serde_json::from_value(parameters)?;
    Ok(serde_json::to_string(&compute(&question, of)?)?)
}

/// The application line behind an allocation: the site, or its caller if it is in a library.
fn application<'h>(heap: &'h Heap, site: &'h memprof_heap::Site) -> Option<&'h memprof_heap::Site> {
    let mut lines = [Some(site), heap.caller(site)].into_iter().flatten();
    lines.find(|line| memprof_paths::is_application(heap.name(line.file)))
}

/// The pattern for paths of application files, if there is one.
fn own_files(pattern: Option<&str>) -> Result<Option<Pattern>, Error> {
    let pattern = pattern.map(|source| Pattern::new(source, false));
    let pattern = pattern.transpose();
    pattern.map_err(|error| Error::Question(format!("invalid --own: {error}")))
}

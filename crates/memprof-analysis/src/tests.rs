//! The contents of a dump, as far as answers show them.

mod objspace_dumps;
mod own_objects;
mod thread_locals;

use memprof_heap::Heap;
use serde_json::Value;

use crate::questions::{self, Error};

/// A parsed answer; fails if an object has a key twice.
pub(crate) fn parsed(answer: &str) -> Value {
    let value: Value = serde_json::from_str(answer).expect("JSON");
    assert_eq!(value.to_string().len(), answer.len());
    value
}

/// [`questions::ask`], with the answer parsed.
pub(crate) fn ask(heap: &Heap, question: &str, parameters: Value) -> Result<Value, Error> {
    questions::ask(heap, question, parameters).map(|answer| parsed(&answer))
}

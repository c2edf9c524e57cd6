//! What a dump contains, as far as answers show it.

mod objspace_dumps;
mod own_objects;
mod thread_locals;

use memprof_heap::Heap;
use serde_json::Value;

use crate::questions::{self, Error};

/// An answer, in which no object has a key twice.
pub(crate) fn parsed(answer: &str) -> Value {
    let value: Value = serde_json::from_str(answer).expect("JSON");
    assert_eq!(value.to_string().len(), answer.len());
    value
}

/// [`questions::ask`], with the answer parsed.
pub(crate) fn ask(heap: &Heap, question: &str, parameters: Value) -> Result<Value, Error> {
    questions::ask(heap, question, parameters).map(|answer| parsed(&answer))
}

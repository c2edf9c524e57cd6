//! `Memprof::Native::Diff`: two or three heaps of a process.

use std::sync::Arc;

use magnus::{
    Class, DataTypeFunctions, Error, Module, Object, RModule, Ruby, TypedData, function, method,
};
use memprof_analysis::objects::Objects;
use memprof_analysis::questions::Diff;
use memprof_heap::Heap;
use memprof_heap::graph::BitSet;

use super::super::exceptions::of_question;
use super::super::job;
use super::NativeHeap;
use super::object_set::NativeObjects;
use super::opened::Opened;

#[derive(TypedData)]
#[magnus(class = "Memprof::Native::Diff", free_immediately, size, frozen_shareable)]
struct NativeDiff {
    diff: Arc<Diff<Arc<Heap>>>,
    before: Arc<Opened>,
    after: Arc<Opened>,
}

impl DataTypeFunctions for NativeDiff {
    fn size(&self) -> usize {
        let changes = self.diff.changes();
        let bits = changes.new.length() + changes.gone.length();
        // A number for each object after, and sets.
        size_of::<NativeDiff>() + self.diff.after().len() as usize * size_of::<u32>() + bits / 8
    }
}

pub fn define(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    let diff = native.define_class("Diff", ruby.class_object())?;
    diff.undef_default_alloc_func();
    diff.define_singleton_method("new", function!(new, 3))?;
    diff.define_method("ask", method!(ask, 2))?;
    diff.define_method("warnings", method!(warnings, 0))?;
    diff.define_method("objects", method!(objects, 1))
}

fn new(
    ruby: &Ruby,
    before: &NativeHeap,
    after: &NativeHeap,
    later: Option<&NativeHeap>,
) -> Result<NativeDiff, Error> {
    let heap = |native: &NativeHeap| Arc::clone(&native.0.heap);
    let heaps = (heap(before), heap(after), later.map(heap));
    let diff = job::run(ruby, "diff", move |_| Diff::new(heaps.0, heaps.1, heaps.2))?;
    let diff = diff.map_err(|error| of_question(ruby, &error))?;
    Ok(NativeDiff {
        diff: Arc::new(diff),
        before: Arc::clone(&before.0),
        after: Arc::clone(&after.0),
    })
}

/// Answers a question; parameters and answer are JSON.
fn ask(
    ruby: &Ruby,
    native: &NativeDiff,
    question: String,
    parameters: String,
) -> Result<String, Error> {
    let diff = Arc::clone(&native.diff);
    let answer =
        job::run(ruby, "ask", move |_| diff.ask(&question, serde_json::from_str(&parameters)?))?;
    answer.map_err(|error| of_question(ruby, &error))
}

/// Possible errors of the comparison, in JSON.
fn warnings(ruby: &Ruby, native: &NativeDiff) -> Result<String, Error> {
    let warnings = serde_json::to_string(native.diff.warnings());
    warnings.map_err(|error| Error::new(ruby.exception_runtime_error(), error.to_string()))
}

/// Objects that are new, gone, kept, or survived until the third heap; `nil` if there is no third.
fn objects(
    ruby: &Ruby,
    native: &NativeDiff,
    change: String,
) -> Result<Option<NativeObjects>, Error> {
    let changes = native.diff.changes();
    let of = |opened: &Arc<Opened>, set: &BitSet| {
        NativeObjects::new(Arc::clone(opened), set.iter().collect())
    };
    Ok(match change.as_str() {
        "new" => Some(of(&native.after, &changes.new)),
        "gone" => Some(of(&native.before, &changes.gone)),
        "survived" => native.diff.survived().map(|survived| of(&native.after, survived)),
        _ => {
            let all = Objects::all(Arc::clone(&native.after.heap));
            let all = all.map_err(|error| super::super::exceptions::of_input(ruby, &error))?;
            let mut kept = all.ids().to_vec();
            kept.retain(|id| !changes.new.contains(*id));
            Some(NativeObjects::new(Arc::clone(&native.after), kept))
        }
    })
}

//! `Memprof::Native::Verdict`: successive heaps of a process, and their growth.

use std::sync::{Arc, Mutex, PoisonError};

use magnus::{
    Class, DataTypeFunctions, Error, Module, Object, RModule, Ruby, TypedData, function, method,
};
use memprof_analysis::questions::verdict::{Question, Verdict};

use super::super::exceptions::of_question;
use super::super::job;
use super::NativeHeap;
use super::opened::Opened;

#[derive(Default, TypedData)]
#[magnus(class = "Memprof::Native::Verdict", free_immediately, size)]
struct NativeVerdict(Arc<Mutex<Heaps>>);

/// The verdict so far, and the last heap.
#[derive(Default)]
struct Heaps {
    verdict: Verdict,
    last: Option<Arc<Opened>>,
}

impl DataTypeFunctions for NativeVerdict {
    fn size(&self) -> usize {
        size_of::<NativeVerdict>()
    }
}

pub fn define(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    let verdict = native.define_class("Verdict", ruby.class_object())?;
    verdict.undef_default_alloc_func();
    verdict.define_singleton_method("new", function!(NativeVerdict::default, 0))?;
    verdict.define_method("add", method!(add, 2))?;
    verdict.define_method("answer", method!(answer, 1))
}

/// Adds a heap, later than the last one, or of another process `beside` it.
fn add(ruby: &Ruby, native: &NativeVerdict, heap: &NativeHeap, beside: bool) -> Result<(), Error> {
    let (heaps, opened) = (Arc::clone(&native.0), Arc::clone(&heap.0));
    let added = job::run(ruby, "verdict", move |_| {
        let mut heaps = heaps.lock().unwrap_or_else(PoisonError::into_inner);
        heaps.verdict.add(&opened.heap, beside)?;
        heaps.last = Some(opened);
        Ok(())
    })?;
    added.map_err(|error| of_question(ruby, &error))
}

/// The verdict on all of them; parameters and answer are JSON.
fn answer(ruby: &Ruby, native: &NativeVerdict, parameters: String) -> Result<String, Error> {
    let heaps = Arc::clone(&native.0);
    let answer = job::run(ruby, "verdict", move |_| {
        let heaps = heaps.lock().unwrap_or_else(PoisonError::into_inner);
        let question: Question = serde_json::from_str(&parameters)?;
        heaps.verdict.json(&question, heaps.last.as_deref().map(|last| &*last.heap))
    })?;
    answer.map_err(|error| of_question(ruby, &error))
}

//! `Memprof::Native::Heap`: queries on a heap. Questions and answers are JSON ([`memprof_analysis::questions`]); queries on
//! single objects ([`single_object`]) and on sets ([`object_set`]) use object numbers.

mod capture_heap;
mod export_heap;
mod native_diff;
mod native_verdict;
mod object_set;
mod opened;
mod opening;
mod single_object;
mod subset;

use std::io;
use std::sync::Arc;

use magnus::{
    Class, DataTypeFunctions, Error, Module, Object, RModule, Ruby, TypedData, function, method,
};
use memprof_analysis::questions;
use memprof_heap::{Heap, Progress};

use super::job::Abandoned;
use super::{exceptions, job};
use crate::vm;
use object_set::NativeObjects;
use opened::Opened;

/// An open heap. It is immutable.
#[derive(TypedData)]
#[magnus(class = "Memprof::Native::Heap", free_immediately, size, frozen_shareable)]
pub(super) struct NativeHeap(Arc<Opened>);

impl NativeHeap {
    /// Builds a heap in a separate thread; reports the progress to Ruby's block, if there is one.
    pub fn built(
        ruby: &Ruby,
        build: impl FnOnce(&dyn Fn(Progress), Abandoned) -> io::Result<Heap> + Send + 'static,
    ) -> Result<NativeHeap, Error> {
        opening::opened(ruby, move |state, abandoned| {
            build(&|progress| state.report(progress), abandoned)
        })
    }
}

impl DataTypeFunctions for NativeHeap {
    fn size(&self) -> usize {
        self.0.memsize()
    }
}

/// # Errors
/// If Ruby cannot define a method.
pub fn init(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    // All of this works on frozen data, so any Ractor may call it, except for `capture`.
    vm::heap::binding::ractor_safe(|| define(ruby, native))
}

fn define(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    let heap = native.define_class("Heap", ruby.class_object())?;
    heap.undef_default_alloc_func();
    heap.define_singleton_method("open", function!(opening::open, 4))?;
    heap.define_singleton_method("read", function!(opening::read, 3))?;
    heap.define_singleton_method("capture", function!(capture_heap::capture, 4))?;
    heap.define_method("ask", method!(ask, 2))?;
    heap.define_method("source", method!(source, 0))?;
    heap.define_method("size", method!(size, 0))?;
    single_object::define(heap)?;
    object_set::define(ruby, native, heap)?;
    export_heap::define(heap)?;
    subset::define(ruby, native, heap)?;
    native_diff::define(ruby, native)?;
    native_verdict::define(ruby, native)
}

/// Answers a question; parameters and answer are JSON.
fn ask(
    ruby: &Ruby,
    native: &NativeHeap,
    question: String,
    parameters: String,
) -> Result<String, Error> {
    let opened = Arc::clone(&native.0);
    let answer = job::run(ruby, "ask", move |_| {
        questions::ask(&opened.heap, &question, serde_json::from_str(&parameters)?)
    })?;
    answer.map_err(|error| exceptions::of_question(ruby, &error))
}

/// Origin of the heap, as JSON.
fn source(ruby: &Ruby, native: &NativeHeap) -> Result<String, Error> {
    let heap = &native.0.heap;
    serde_json::to_string(&heap.source)
        .map_err(|error| Error::new(ruby.exception_runtime_error(), error.to_string()))
}

/// Number of objects.
fn size(ruby: &Ruby, native: &NativeHeap) -> Result<usize, Error> {
    native.0.size().map_err(|error| exceptions::of_input(ruby, &error))
}

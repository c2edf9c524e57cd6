//! `Native::Heap.capture`: the heap of this process, without a dump file.

use std::sync::Arc;

use magnus::{Error, RHash, Ruby, Value};
use memprof_heap::{Builder, Heap, Options, Source};

use super::super::dump::{duplicate, failure, request};
use super::super::exceptions::of_input;
use super::super::job;
use super::opening::State;
use super::{NativeHeap, Opened};
use crate::vm::heap;
use crate::vm::tracker;

/// Walks the heap, and builds a copy for analysis. Texts go to the file of a descriptor; `thread` is the calling thread.
pub fn capture(
    ruby: &Ruby,
    descriptor: i32,
    options: RHash,
    thread: Value,
    ignore_stack_roots: bool,
) -> Result<NativeHeap, Error> {
    // Before anything moves.
    let thread = heap::binding::address(thread);
    let texts = duplicate(ruby, descriptor)?;
    let request = tracker::suspended(|| request(ruby, options))?;
    heap::prepare();
    let builder = Builder::new(texts).and_then(|builder| heap::capture(builder, request));
    let builder = builder.map_err(|error| failure(ruby, &error))?;
    let state = Arc::new(State::default());
    let reported = Arc::clone(&state);
    let build = move |_| {
        let progress = |progress| reported.report(progress);
        let options =
            Options { index: false, ignore_stack_roots, progress: &progress, ..Options::default() };
        let source = Source { format: "live".to_owned(), ..Source::default() };
        Heap::build(builder, source, &options)?.captured_by(thread)
    };
    let heap = job::run_with(ruby, "capture", build, || state.show(ruby))?;
    let heap = heap.map_err(|error| of_input(ruby, &error))?;
    Ok(NativeHeap(Arc::new(Opened::new(heap))))
}

//! `Native::Heap.open` and `.read`: load a dump into a heap, with a block for the progress.

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use magnus::{Error, Ruby, Value};
use memprof_dump::read::Limits;
use memprof_heap::{Heap, Options, Progress, Unfinished};

use super::super::dump::duplicate;
use super::super::exceptions::{of_input, of_nothing};
use super::super::job::{self, Abandoned};
use super::super::requests::Input;
use super::{NativeHeap, Opened};

/// State of opening a heap, readable from another thread.
#[derive(Default)]
pub struct State {
    stage: AtomicU64,
    done: AtomicU64,
    total: AtomicU64,
}

const STAGES: [&str; 5] = ["opening", "reading", "linking", "computing", "writing"];

impl State {
    pub fn report(&self, progress: Progress) {
        let (stage, done, total) = match progress {
            Progress::Reading(done, total) => (1, done, total),
            Progress::Linking => (2, 0, 0),
            Progress::Computing => (3, 0, 0),
            Progress::Writing => (4, 0, 0),
        };
        self.done.store(done, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
        self.stage.store(stage, Ordering::Relaxed);
    }

    /// Calls Ruby's block, if there is one.
    pub fn show(&self, ruby: &Ruby) -> Result<(), Error> {
        if !ruby.block_given() {
            return Ok(());
        }
        let stage = self.stage.load(Ordering::Relaxed) as usize;
        let stage = ruby.to_symbol(STAGES.get(stage).copied().unwrap_or(STAGES[0]));
        let (done, total) = (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed));
        let known = (total > 0).then_some(total);
        ruby.yield_values::<_, Value>((stage, done, known))?;
        Ok(())
    }
}

/// Opens the dump at a path. The uncompressed size of a dump of unknown origin is limited.
pub fn open(
    ruby: &Ruby,
    path: PathBuf,
    index: bool,
    ignore_stack_roots: bool,
    max_bytes: Option<u64>,
) -> Result<NativeHeap, Error> {
    let limits = max_bytes.map_or_else(Limits::default, Limits::strict);
    let unfinished = Unfinished::default();
    let written = unfinished.clone();
    let heap = opened(ruby, move |state, abandoned| {
        let progress = |progress| state.report(progress);
        let options = Options {
            index,
            ignore_stack_roots,
            limits,
            progress: &progress,
            stop: Some(&abandoned),
            unfinished: Some(&written),
        };
        Heap::open(&path, &options)
    });
    // Interrupted: the process may exit before the writing thread notices.
    unfinished.discard();
    heap
}

/// Reads a dump from a file descriptor.
pub fn read(
    ruby: &Ruby,
    descriptor: i32,
    total: u64,
    ignore_stack_roots: bool,
) -> Result<NativeHeap, Error> {
    let file = duplicate(ruby, descriptor)?;
    opened(ruby, move |state, abandoned| {
        let progress = |progress| state.report(progress);
        let options = Options {
            index: false,
            ignore_stack_roots,
            limits: Limits::default(),
            progress: &progress,
            stop: None,
            unfinished: None,
        };
        let input =
            Counted { input: Input { file, abandoned }, state: Arc::clone(state), done: 0, total };
        Heap::read(Box::new(input), None, &options)
    })
}

/// Runs `open` in a separate thread, and calls Ruby's block for the progress.
pub fn opened(
    ruby: &Ruby,
    open: impl FnOnce(&Arc<State>, Abandoned) -> io::Result<Heap> + Send + 'static,
) -> Result<NativeHeap, Error> {
    let state = Arc::new(State::default());
    let progress_state = Arc::clone(&state);
    let heap = job::run_with(
        ruby,
        "open",
        move |abandoned| {
            let heap = open(&progress_state, abandoned)?;
            of_nothing(heap.source.truncated, u64::from(heap.len()))?;
            Ok(heap)
        },
        || state.show(ruby),
    )?;
    let heap = heap.map_err(|error: io::Error| of_input(ruby, &error))?;
    Ok(NativeHeap(Arc::new(Opened::new(heap))))
}

/// A dump that counts the bytes read.
struct Counted {
    input: Input,
    state: Arc<State>,
    done: u64,
    total: u64,
}

impl Read for Counted {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(bytes)?;
        self.done += count as u64;
        self.state.report(Progress::Reading(self.done, self.total));
        Ok(count)
    }
}

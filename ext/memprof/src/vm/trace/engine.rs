//! The tracers of libraries and of the system, which are another crate's. It needs no VM; what it counts is kept here so
//! that a forked process can be rid of what its parent traced.

use std::sync::{Mutex, MutexGuard, PoisonError};

use memprof_native::{Counted, Refused, Scope, Trace};

/// Traces that run, by number.
static TRACES: Mutex<Traces> = Mutex::new(Traces {
    next: 0,
    running: Vec::new(),
});

struct Traces {
    next: u64,
    running: Vec<(u64, Trace)>,
}

fn traces() -> MutexGuard<'static, Traces> {
    TRACES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A trace that runs.
pub struct Mark(u64);

impl Mark {
    /// Begins to count for those of the names that it has.
    ///
    /// # Errors
    /// If calls can't be counted in this process.
    pub fn new(names: &[&str], process: bool) -> Result<Self, Refused> {
        let scope = if process {
            Scope::Process
        } else {
            Scope::Thread
        };
        let trace = Trace::begin(names, scope)?;
        let mut traces = traces();
        traces.next += 1;
        let number = traces.next;
        traces.running.push((number, trace));
        Ok(Mark(number))
    }

    /// Counts no more; tells how much was. Nothing in the child of a fork.
    pub fn finish(self) -> Option<Counted> {
        self.take().map(Trace::stop)
    }

    fn take(&self) -> Option<Trace> {
        let mut traces = traces();
        let index = (traces.running.iter()).position(|(number, _)| *number == self.0)?;
        Some(traces.running.swap_remove(index).1)
    }
}

impl Drop for Mark {
    /// Of a trace that was never ended.
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// In the child of a fork: nobody is there who counted.
pub fn start_anew() {
    let running = std::mem::take(&mut traces().running);
    drop(running);
}

//! The tracers of libraries and of the system, implemented in another crate without the VM. Their running traces are stored
//! here, so that a forked process can end those of its parent.

use std::sync::{Mutex, MutexGuard, PoisonError};

use memprof_native::{Choice, Counted, Refused, Scope, Trace};

/// Running traces, by number.
static RUNNING: Mutex<Running> =
    Mutex::new(Running { next: 0, traces: Vec::new(), installed: Vec::new() });

struct Running {
    next: u64,
    traces: Vec<(u64, Trace)>,
    installed: Vec<(u64, memprof_native::Installation)>,
}

impl Running {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

fn running() -> MutexGuard<'static, Running> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take<T>(row: &mut Vec<(u64, T)>, number: u64) -> Option<T> {
    let index = row.iter().position(|(other, _)| *other == number)?;
    Some(row.swap_remove(index).1)
}

/// Functions that remain replaced.
pub struct Installation(u64);

impl Installation {
    /// Lasts until this is dropped, but not in a forked child.
    ///
    /// # Errors
    /// If calls can't be counted in this process.
    pub fn new(choice: &Choice) -> Result<Self, Refused> {
        let installation = choice.install()?;
        let mut running = running();
        let number = running.number();
        running.installed.push((number, installation));
        Ok(Installation(number))
    }
}

impl Drop for Installation {
    fn drop(&mut self) {
        let installation = take(&mut running().installed, self.0);
        drop(installation); // without the lock
    }
}

/// A running trace.
pub struct Mark(u64);

impl Mark {
    /// Starts counting.
    ///
    /// # Errors
    /// If calls can't be counted in this process.
    pub fn new(choice: &Choice, process: bool) -> Result<Self, Refused> {
        let scope = if process { Scope::Process } else { Scope::Thread };
        let trace = choice.begin(scope)?;
        let mut running = running();
        let number = running.number();
        running.traces.push((number, trace));
        Ok(Mark(number))
    }

    /// Stops counting and returns the counts. None in the child of a fork.
    pub fn finish(self) -> Option<Counted> {
        self.take().map(Trace::stop)
    }

    fn take(&self) -> Option<Trace> {
        take(&mut running().traces, self.0)
    }
}

impl Drop for Mark {
    /// For a trace that was never ended.
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// Ends the parent's traces in the child of a fork.
pub fn end_all() {
    let (traces, installed) = {
        let mut running = running();
        (std::mem::take(&mut running.traces), std::mem::take(&mut running.installed))
    };
    drop((traces, installed));
}

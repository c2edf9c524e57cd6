//! Threads of a process that are paused while one of them is copied, to record their state at that moment.

use std::collections::HashSet;
use std::fs;
use std::time::{Duration, Instant};

use super::error::SnapshotError;
use super::ptrace::{self, Stop};
use super::registers::Registers;
use super::stopped::until_interrupted;

/// Time for all of them to stop: the stopped ones wait for the others.
const PATIENCE: Duration = Duration::from_millis(50);
/// Rounds of looking for threads started while others were stopped.
const ROUNDS: usize = 3;

/// Paused threads; they resume when this is dropped.
pub(super) struct OtherThreads(Vec<Held>);

struct Held {
    thread: i32,
    /// None if the thread did not stop in time.
    registers: Option<Registers>,
}

impl OtherThreads {
    /// Stops all threads of a process except one, as far as possible.
    pub(super) fn stop(process: i32, but: i32) -> OtherThreads {
        let mut others = OtherThreads(Vec::new());
        let mut seen = HashSet::from([but]);
        let until = Instant::now() + PATIENCE;
        for _ in 0..ROUNDS {
            let before = others.0.len();
            for thread in threads_of(process).filter(|thread| seen.insert(*thread)) {
                if ptrace::seize(thread, 0).is_ok() {
                    // If it can't be interrupted, it has ended.
                    let _ = ptrace::interrupt(thread);
                    others.0.push(Held { thread, registers: None });
                }
            }
            if others.0.len() == before {
                break;
            }
            others.0.retain_mut(|held| {
                let goes_on = held.registers.is_some() || held.wait(until).is_ok();
                if !goes_on {
                    // The thread has ended, or at least must not stay stopped.
                    let _ = ptrace::detach(held.thread);
                }
                goes_on
            });
        }
        others
    }

    /// Registers of the stopped threads, by thread.
    pub(super) fn registers(&self) -> impl Iterator<Item = (i32, Registers)> + '_ {
        let held = self.0.iter();
        held.filter_map(|held| Some((held.thread, held.registers?)))
    }
}

impl Held {
    /// Waits for the stops, delivering signals that come first.
    fn wait(&mut self, until: Instant) -> Result<(), SnapshotError> {
        loop {
            match ptrace::wait(self.thread, until)? {
                Some(Stop::Interrupted) => {
                    self.registers = Some(ptrace::registers(self.thread)?);
                    return Ok(());
                }
                Some(Stop::Ended(_)) => return Err(SnapshotError::Gone),
                Some(Stop::Signal(signal)) => ptrace::resume(self.thread, signal)?,
                Some(_) => ptrace::resume(self.thread, 0)?,
                None => return Ok(()),
            }
        }
    }
}

impl Drop for OtherThreads {
    fn drop(&mut self) {
        // The waiting threads first.
        self.0.sort_by_key(|held| held.registers.is_none());
        for held in &self.0 {
            if held.registers.is_some() || until_interrupted(held.thread).is_ok() {
                // The thread may have been killed meanwhile.
                let _ = ptrace::detach(held.thread);
            }
        }
    }
}

fn threads_of(process: i32) -> impl Iterator<Item = i32> {
    let tasks = fs::read_dir(format!("/proc/{process}/task"));
    let entries = tasks.into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

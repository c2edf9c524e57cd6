//! Threads that are paused while one of their process is copied, so that what they were doing is known as of that moment.

use std::collections::HashSet;
use std::fs;
use std::time::{Duration, Instant};

use super::error::SnapshotError;
use super::ptrace::{self, Stop};
use super::registers::Registers;
use super::stopped::until_interrupted;

/// Time for all of them to stop: those that have wait for the others.
const PATIENCE: Duration = Duration::from_millis(50);
/// Looks for threads that were started while others were stopped.
const ROUNDS: usize = 3;

/// They go on when this ends.
pub(super) struct OtherThreads(Vec<Held>);

struct Held {
    thread: i32,
    /// None if it has not stopped in time.
    registers: Option<Registers>,
}

impl OtherThreads {
    /// Stops the threads of a process but one, as far as that is possible.
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
                    others.0.push(Held {
                        thread,
                        registers: None,
                    });
                }
            }
            if others.0.len() == before {
                break;
            }
            others.0.retain_mut(|held| {
                let goes_on = held.registers.is_some() || held.wait(until).is_ok();
                if !goes_on {
                    // It has ended, or at least is not to stay stopped.
                    let _ = ptrace::detach(held.thread);
                }
                goes_on
            });
        }
        others
    }

    /// Registers of those that stopped, by thread.
    pub(super) fn registers(&self) -> impl Iterator<Item = (i32, Registers)> + '_ {
        let held = self.0.iter();
        held.filter_map(|held| Some((held.thread, held.registers?)))
    }
}

impl Held {
    /// Signals that come before the stop are delivered.
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
        // First those that wait.
        self.0.sort_by_key(|held| held.registers.is_none());
        for held in &self.0 {
            if held.registers.is_some() || until_interrupted(held.thread).is_ok() {
                // One that was killed meanwhile is gone.
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

//! Whether a thread may be about to take a postponed job.
//!
//! Up to Ruby 3.2 the VM takes a job off its list in two steps: it lowers the list's length by compare-and-swap, and some
//! instructions later reads the job. A job added in between would be taken in its place. These instructions cannot be found
//! by symbols, so the thread runs some more instructions, one by one.

use std::ops::Range;
use std::time::{Duration, Instant};

use super::error::SnapshotError;
use super::live_calls::all_but_faults;
use super::ptrace::{self, Stop};
use super::registers;
use super::stopped::{Stopped, until_interrupted};

/// Instructions without an exchange after which a thread is not taking a job.
const QUIET: u32 = 32;
/// Most instructions that a thread runs.
const STEPS: u32 = 2000;
/// Time limit for one step.
const MOMENT: Duration = Duration::from_millis(20);
/// Length of the longest instruction.
const LONGEST: usize = 16;

impl Stopped {
    /// Runs the thread until it is certainly not taking a job; `code` covers the VM's code. Returns false if that takes too
    /// long.
    pub(super) fn quiet(&mut self, code: &[Range<u64>]) -> Result<bool, SnapshotError> {
        let mut quiet = 0;
        let mut blocked = false;
        for _ in 0..STEPS {
            let place = registers::place(&self.registers);
            let in_vm = code.iter().any(|range| range.contains(&place));
            if quiet >= QUIET || !in_vm || registers::in_system_call(&self.registers) {
                return Ok(true);
            }
            let mut bytes = [0; LONGEST];
            let is_exchange = ptrace::read(self.thread, place, &mut bytes)
                .map_or(true, |()| registers::is_exchange(&bytes));
            quiet = if is_exchange { 0 } else { quiet + 1 };
            if !blocked {
                ptrace::block_signals(self.thread, all_but_faults())?;
                blocked = true;
            }
            self.step()?;
        }
        Ok(false)
    }

    fn step(&mut self) -> Result<(), SnapshotError> {
        ptrace::step(self.thread)?;
        match ptrace::wait(self.thread, Instant::now() + MOMENT)? {
            Some(Stop::Ended(_)) => return Err(SnapshotError::Gone),
            Some(_) => {}
            // The thread waits in a system call, which is resumed afterwards.
            None => {
                ptrace::interrupt(self.thread)?;
                until_interrupted(self.thread)?;
            }
        }
        self.registers = ptrace::registers(self.thread)?;
        Ok(())
    }
}

//! Whether a thread may be about to take a postponed job.
//!
//! Up to Ruby 3.2 the VM takes a job off its list in two steps: it lowers the list's length by compare-and-swap, and some
//! instructions later reads the job. One that is put on the list between these would be taken in its place. There
//! are no symbols to find these instructions by: so the thread runs some more of them, one by one.

use std::ops::Range;
use std::time::{Duration, Instant};

use super::error::SnapshotError;
use super::live_calls::all_but_faults;
use super::ptrace::{self, Stop};
use super::registers;
use super::stopped::{Stopped, until_interrupted};

/// Instructions without an exchange after which a thread does not take a job.
const QUIET: u32 = 32;
/// Instructions that a thread runs at most.
const STEPS: u32 = 2000;
/// Time for one.
const MOMENT: Duration = Duration::from_millis(20);
/// Bytes of the longest instruction.
const LONGEST: usize = 16;

impl Stopped {
    /// Has the thread run on until it is certainly not taking a job: `code` is where the VM's is. Returns false if that takes
    /// too long.
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
            // It waits in a system call, which goes on afterwards.
            None => {
                ptrace::interrupt(self.thread)?;
                until_interrupted(self.thread)?;
            }
        }
        self.registers = ptrace::registers(self.thread)?;
        Ok(())
    }
}

//! Function calls in the live process: only async-signal-safe functions, at any moment.

use std::time::Instant;

use super::error::SnapshotError;
use super::ptrace::{self, Stop};
use super::registers;
use super::stopped::{PATIENCE, Stopped};

/// Signals that report a failed call. They are not blocked, since the kernel would reset the process's handler of a blocked
/// one. They never reach the process, either.
const FAULTS: [i32; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT, libc::SIGTRAP];

/// All signals except those.
pub(super) fn all_but_faults() -> u64 {
    let faults = FAULTS.iter().map(|signal| 1u64 << (signal - 1));
    !faults.fold(0, |mask, bit| mask | bit)
}

impl Stopped {
    /// Makes the thread call a function, which must not take a lock or wait, and returns its result. After a fault, only the
    /// function's writes to memory remain.
    pub(super) fn call_function(
        &mut self,
        instruction: u64,
        function: u64,
        arguments: [u64; 4],
    ) -> Result<u64, SnapshotError> {
        self.check(instruction)?;
        if self.vectors.is_none() {
            self.vectors = Some(ptrace::vectors(self.thread)?);
        }
        ptrace::block_signals(self.thread, all_but_faults())?;
        let (call, word) = registers::live_call(&self.registers, function, arguments, instruction);
        if let Some((place, word)) = word {
            ptrace::write(self.thread, place, &word.to_ne_bytes())?;
        }
        ptrace::set_registers(self.thread, &call)?;
        self.until_returned(&call, instruction)
    }

    /// The function returns to a system call instruction, whose call is skipped: that needs no signal.
    fn until_returned(
        &self,
        call: &registers::Registers,
        instruction: u64,
    ) -> Result<u64, SnapshotError> {
        let until = Instant::now() + PATIENCE;
        let mut at_beginning = true;
        let mut answer = None;
        loop {
            ptrace::resume_to_system_call(self.thread)?;
            match ptrace::wait(self.thread, until)? {
                Some(Stop::SystemCall) if !at_beginning => match answer {
                    Some(answer) => return Ok(answer),
                    None => at_beginning = true,
                },
                Some(Stop::SystemCall) => {
                    at_beginning = false;
                    let now = ptrace::registers(self.thread)?;
                    answer = registers::returned_to(&now, call, instruction);
                    if answer.is_some() {
                        ptrace::skip_system_call(self.thread, &now)?;
                    }
                }
                Some(Stop::Signal(signal)) if FAULTS.contains(&signal) => {
                    let place = registers::place(&ptrace::registers(self.thread)?);
                    return Err(SnapshotError::Died(format!(
                        "signal {signal} at {place:#x} was taken back"
                    )));
                }
                Some(Stop::Ended(_)) => return Err(SnapshotError::Gone),
                Some(_) => {}
                None => return Err(SnapshotError::Busy),
            }
        }
    }
}

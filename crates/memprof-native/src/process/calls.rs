//! Function calls in a copy.

use std::time::{Duration, Instant};

use super::error::SnapshotError;
use super::ptrace::{self, Stop};
use super::registers;
use super::snapshot::Snapshot;

/// Longest text that is read from a copy.
const LONGEST: usize = 1 << 25;
/// Bytes read at a time: a read never crosses a page boundary.
const PIECE: u64 = 4096;

/// A function running in the copy.
pub struct Call<'a> {
    snapshot: &'a mut Snapshot,
}

/// The outcome of a call.
pub enum Answer {
    /// The function returned this value.
    Returned(u64),
    /// The function has not returned yet.
    Running,
}

impl Snapshot {
    /// Begins a call of a function with two arguments; texts are put on the copy's stack, NUL-terminated.
    pub fn call(
        &mut self,
        function: u64,
        arguments: [Argument<'_>; 2],
    ) -> Result<Call<'_>, SnapshotError> {
        let mut stack = registers::below_stack(&self.registers, 0);
        let mut words = [0; 2];
        for (word, argument) in words.iter_mut().zip(arguments) {
            *word = match argument {
                Argument::Number(number) => number,
                Argument::Text(text) => {
                    let mut bytes = text.to_vec();
                    bytes.push(0);
                    stack = (stack - bytes.len() as u64) & !0xf;
                    ptrace::write(self.copy, stack, &bytes)?;
                    stack
                }
            };
        }
        let (registers, top, word) = registers::call(&self.registers, stack, function, words);
        ptrace::write(self.copy, top, &word.to_ne_bytes())?;
        ptrace::set_registers(self.copy, &registers)?;
        ptrace::resume(self.copy, 0)?;
        Ok(Call { snapshot: self })
    }

    /// Continues to wait for the last call.
    pub fn pending(&mut self) -> Call<'_> {
        Call { snapshot: self }
    }

    /// Calls a function and waits for its result; `Busy` if it does not return in time.
    pub fn ask(
        &mut self,
        function: u64,
        arguments: [Argument<'_>; 2],
        limit: Duration,
    ) -> Result<u64, SnapshotError> {
        match self.call(function, arguments)?.wait(limit)? {
            Answer::Returned(word) => Ok(word),
            Answer::Running => Err(SnapshotError::Busy),
        }
    }

    /// A NUL-terminated text of the copy.
    pub fn text(&self, address: u64) -> Result<Vec<u8>, SnapshotError> {
        let mut text = Vec::new();
        let mut at = address;
        while text.len() < LONGEST {
            let mut piece = vec![0; (PIECE - at % PIECE) as usize];
            ptrace::read(self.copy, at, &mut piece)?;
            at += piece.len() as u64;
            if let Some(end) = piece.iter().position(|byte| *byte == 0) {
                text.extend(&piece[..end]);
                return Ok(text);
            }
            text.extend(piece);
        }
        Err(SnapshotError::Died("its answer is truncated".into()))
    }
}

/// An argument of a function.
#[derive(Clone, Copy)]
pub enum Argument<'a> {
    /// A number or an address.
    Number(u64),
    /// The address of a copy of this text.
    Text(&'a [u8]),
}

impl Call<'_> {
    /// Waits for the result.
    pub fn wait(&mut self, limit: Duration) -> Result<Answer, SnapshotError> {
        let copy = self.snapshot.copy;
        let until = Instant::now() + limit;
        loop {
            match ptrace::wait(copy, until)? {
                None => return Ok(Answer::Running),
                Some(Stop::Ended(status)) => {
                    self.snapshot.ended = true;
                    return Err(SnapshotError::Died(ending(status)));
                }
                Some(Stop::Signal(signal)) if is_fatal(signal) => {
                    let registers = ptrace::registers(copy)?;
                    return match registers::returned(&registers) {
                        Some(word) if signal == libc::SIGSEGV => Ok(Answer::Returned(word)),
                        _ => {
                            let place = registers::place(&registers);
                            Err(SnapshotError::Died(format!("signal {signal} at {place:#x}")))
                        }
                    };
                }
                // Signals go to the copy only, which has blocked those that can be blocked.
                Some(_) => ptrace::resume(copy, 0)?,
            }
        }
    }
}

fn is_fatal(signal: i32) -> bool {
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT, libc::SIGTRAP]
        .contains(&signal)
}

fn ending(status: i32) -> String {
    match libc::WIFSIGNALED(status) {
        true => format!("signal {}", libc::WTERMSIG(status)),
        false => format!("status {}", libc::WEXITSTATUS(status)),
    }
}

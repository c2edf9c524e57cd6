//! Cancels long-running work.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// Steps between two checks; a power of two.
const STEPS: u32 = 1 << 16;

/// Whether long-running work is still wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stop<'s>(Option<&'s AtomicBool>);

/// The work was stopped, as its result is no longer wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

impl<'s> From<Option<&'s AtomicBool>> for Stop<'s> {
    /// Work ends soon after this becomes true; never if it is `None`.
    fn from(stop: Option<&'s AtomicBool>) -> Stop<'s> {
        Stop(stop)
    }
}

impl Stop<'_> {
    /// Checks whether to continue.
    ///
    /// # Errors
    /// If stopped.
    pub fn check(self) -> Result<(), Stopped> {
        match self.0 {
            Some(stop) if stop.load(Ordering::Relaxed) => Err(Stopped),
            _ => Ok(()),
        }
    }

    /// The same, but checks only once in many steps, so that each step can call it.
    ///
    /// # Errors
    /// If stopped.
    #[inline(always)]
    pub fn at(self, step: u32) -> Result<(), Stopped> {
        if step % STEPS == 0 { self.check() } else { Ok(()) }
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("stopped before the end")
    }
}

impl std::error::Error for Stopped {}

impl From<Stopped> for io::Error {
    fn from(stopped: Stopped) -> io::Error {
        io::Error::new(io::ErrorKind::Interrupted, stopped)
    }
}

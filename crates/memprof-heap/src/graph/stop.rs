//! Giving up what takes long.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// Steps between two looks at whether to go on; a power of two.
const STEPS: u32 = 1 << 16;

/// Says whether something that takes long is still wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stop<'s>(Option<&'s AtomicBool>);

/// The work was stopped, because its result is no longer wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

impl<'s> From<Option<&'s AtomicBool>> for Stop<'s> {
    /// Work ends soon after this becomes true; never if there is none.
    fn from(stop: Option<&'s AtomicBool>) -> Stop<'s> {
        Stop(stop)
    }
}

impl Stop<'_> {
    /// Whether to go on.
    ///
    /// # Errors
    /// If not.
    pub fn check(self) -> Result<(), Stopped> {
        match self.0 {
            Some(stop) if stop.load(Ordering::Relaxed) => Err(Stopped),
            _ => Ok(()),
        }
    }

    /// Whether to go on, looked at in one of many steps only, so that each of them can ask.
    ///
    /// # Errors
    /// If not.
    #[inline(always)]
    pub fn at(self, step: u32) -> Result<(), Stopped> {
        if step % STEPS == 0 {
            self.check()
        } else {
            Ok(())
        }
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

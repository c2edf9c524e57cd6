//! Replacements for systems where calls cannot be interposed.

use crate::{Refused, Report, Scope};

/// The names of this system's tracers: none.
#[must_use]
pub fn names() -> &'static [&'static str] {
    &[]
}

/// Does nothing: no call is timed on this system.
pub fn waited_for_gvl(_nanoseconds: u64) {}

/// Tracers for traces; this system has none.
#[derive(Clone, Debug)]
pub struct Choice {
    never: std::convert::Infallible,
}

impl Choice {
    /// Refuses.
    ///
    /// # Errors
    ///
    /// Always [`Refused::Unsupported`].
    pub fn of(_names: &[&str]) -> Result<Choice, Refused> {
        Err(Refused::Unsupported(
            "calls of libraries are traced on Linux only, on x86-64 and aarch64",
        ))
    }

    /// Cannot be called, since no choice exists.
    ///
    /// # Errors
    ///
    /// None.
    pub fn begin(&self, _scope: Scope) -> Result<Trace, Refused> {
        match self.never {}
    }

    /// Cannot be called, since no choice exists.
    ///
    /// # Errors
    ///
    /// None.
    pub fn install(&self) -> Result<Installation, Refused> {
        match self.never {}
    }
}

/// Keeps functions replaced; cannot exist on this system.
#[derive(Debug)]
#[must_use]
pub struct Installation {
    #[expect(dead_code, reason = "there is none")]
    never: std::convert::Infallible,
}

/// A running trace; cannot exist on this system.
#[derive(Debug)]
pub struct Trace {
    never: std::convert::Infallible,
}

impl Trace {
    /// Refuses.
    ///
    /// # Errors
    ///
    /// Always [`Refused::Unsupported`].
    pub fn begin(names: &[&str], scope: Scope) -> Result<Trace, Refused> {
        Choice::of(names)?.begin(scope)
    }

    /// Cannot be called, since no trace exists.
    #[must_use]
    pub fn finish(self) -> Report {
        match self.never {}
    }

    /// Cannot be called, since no trace exists.
    pub fn stop(self) -> Counted {
        match self.never {}
    }
}

/// The counts of a trace; cannot exist on this system.
#[derive(Debug)]
#[must_use]
pub struct Counted {
    never: std::convert::Infallible,
}

impl Counted {
    /// Cannot be called, since nothing was counted.
    #[must_use]
    pub fn report(&self) -> Report {
        match self.never {}
    }
}

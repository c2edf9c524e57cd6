//! What there is where calls cannot be interposed.

use crate::{Refused, Report, Scope};

/// The names of the tracers there are on this system: none.
#[must_use]
pub fn names() -> &'static [&'static str] {
    &[]
}

/// A running trace, of which there can be none on this system.
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
    pub fn begin(_names: &[&str], _scope: Scope) -> Result<Trace, Refused> {
        Err(Refused::Unsupported(
            "calls of libraries are traced on Linux only, on x86-64 and aarch64",
        ))
    }

    /// Cannot be called, as there is no trace.
    #[must_use]
    pub fn finish(self) -> Report {
        match self.never {}
    }

    /// Cannot be called, as there is no trace.
    pub fn stop(self) -> Counted {
        match self.never {}
    }
}

/// What a trace counted, of which there can be none on this system.
#[derive(Debug)]
#[must_use]
pub struct Counted {
    never: std::convert::Infallible,
}

impl Counted {
    /// Cannot be called, as nothing was counted.
    #[must_use]
    pub fn report(&self) -> Report {
        match self.never {}
    }
}

//! Where objects were allocated.

use memprof_dump::record::NameId;

/// Where objects were allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// Path.
    pub file: NameId,
    /// Line, from 1; 0 if unknown.
    pub line: u32,
    /// Method, such as `fetch`; `None` outside of one.
    pub method: Option<NameId>,
    /// Number of the site of the innermost application line on the stack, if this site is in a library and that line is known.
    /// That site itself has no caller.
    pub caller: Option<u32>,
}

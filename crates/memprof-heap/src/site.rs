//! Where objects were allocated.

use memprof_dump::record::NameId;

/// Where objects were allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// Path.
    pub file: NameId,
    /// Line, from 1; 0 if not known.
    pub line: u32,
    /// Method, as `fetch`; `None` outside of one.
    pub method: Option<NameId>,
    /// Number of the site of the innermost line of the application on that stack, if this one is in a library and that is
    /// known. It has none itself.
    pub caller: Option<u32>,
}

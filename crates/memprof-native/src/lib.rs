//! The process below Ruby: calls that a block of code makes to libraries and to the system.
//!
//! While a [`Trace`] runs, calls from loaded objects to the traced functions go through counters of this crate: it replaces
//! the functions' entries in the objects' tables, and restores them when the last trace ends. Nothing is preloaded or
//! restarted, and a process without a trace runs as if this crate were absent.
//!
//! [`interpose`] is the engine and knows no tracer; a tracer is one file of `tracers`, and one line in its registry.
//!
//! ```no_run
//! use memprof_native::{Scope, Trace};
//!
//! let trace = Trace::begin(&["fd", "memory"], Scope::Thread)?;
//! // ... what is to be traced, in objects other than this one ...
//! for (name, node) in trace.finish() {
//!     println!("{name}: {node:?}");
//! }
//! # Ok::<(), memprof_native::Refused>(())
//! ```
//!
//! Not seen: calls that an object makes to itself (a client library linked into an extension, libc's own I/O for `fwrite`),
//! calls through pointers fetched by `dlsym` or copied before the trace (except those of client libraries that go through
//! libffi), direct system calls, and calls in other link-map namespaces (`dlmopen`).

pub mod at_fork;
pub mod held_file;
mod refused;
mod report;

pub use refused::Refused;
pub use report::{Node, Report};

/// The threads whose calls a trace counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The thread that began the trace.
    Thread,
    /// All threads of the process, ended ones included.
    Process,
}

#[cfg(interposed)]
mod clock;
#[cfg(interposed)]
mod counters;
#[cfg(interposed)]
pub mod interpose;
#[cfg(interposed)]
mod lock;
pub mod malloc;
#[cfg(interposed)]
pub mod process;
#[cfg(interposed)]
mod trace;
#[cfg(interposed)]
pub mod tracers;
#[cfg(interposed)]
pub mod unwind;

#[cfg(interposed)]
pub use {
    counters::waited_for_gvl,
    trace::{Choice, Counted, Installation, Trace},
    tracers::names,
};

#[cfg(not(interposed))]
mod unsupported;
#[cfg(not(interposed))]
pub use unsupported::{Choice, Counted, Installation, Trace, names, waited_for_gvl};

//! Another process: a copy of it, in which functions are called that it never called itself.
//!
//! A thread of the process is stopped for a few milliseconds and made to call `clone`, as `fork` would; then it goes on
//! where it was. The copy is a child that the process does not know of: it has no exit signal, so the process's own
//! `wait` does not see it. Whatever happens in the copy, it happens there alone; it is killed with the [`Snapshot`], or
//! with this program, and the process is made to reap it.
//!
//! And a process itself: its VM is had to evaluate a line of Ruby, by calls of functions that signal handlers may make
//! ([`Attachment`]).
//!
//! This is the only place that stops a process. A process of its own does it ([`tracer`]), which ends in order when the program that
//! asked is killed.
//!
//! No path leads from one process to the other: they are connected by a [`Channel`], which the other one is had to make.

mod attachment;
mod calls;
mod channel;
pub mod descriptors;
mod error;
mod live_calls;
pub(crate) mod maps;
mod other_threads;
mod own_copy;
mod process_symbols;
mod ptrace;
mod quiet;
mod snapshot;
mod stopped;
mod thread_status;
pub mod tracer;

#[cfg(target_arch = "aarch64")]
#[path = "registers_aarch64.rs"]
mod registers;
#[cfg(target_arch = "x86_64")]
#[path = "registers_x86_64.rs"]
mod registers;

pub use attachment::{Attachment, Outcome};
pub use calls::{Answer, Argument, Call};
pub use channel::Channel;
pub use error::SnapshotError;
pub use own_copy::OwnCopy;
pub use process_symbols::Symbols;
pub use snapshot::Snapshot;

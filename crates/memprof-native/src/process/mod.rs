//! Another process: a copy of it, in which functions are called that the process itself never called.
//!
//! A thread of the process is stopped for a few milliseconds and made to call `clone`, as `fork` would; then it resumes
//! where it was. The process does not know of the copy, its child: the copy has no exit signal, so the process's own `wait`
//! does not see it. Nothing that happens in the copy affects the process. The copy is killed with the [`Snapshot`], or with
//! this program, and the process is made to reap it.
//!
//! An [`Attachment`] works on the process itself: its VM is made to evaluate a line of Ruby, by calls of async-signal-safe
//! functions.
//!
//! This is the only module that stops processes. It does so in a separate process ([`tracer`]), which cleans up when the
//! program that asked is killed.
//!
//! No path leads from one process to the other: a [`Channel`], made by the other process, connects them.

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

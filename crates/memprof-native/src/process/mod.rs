//! Another process: a copy of it, in which functions are called that it never called itself.
//!
//! A thread of the process is stopped for a few milliseconds and made to call `clone`, as `fork` would; then it goes on
//! where it was. The copy is a child that nobody in the process knows of: it has no exit signal, so the process's own
//! `wait` does not see it. Whatever happens in the copy, it happens there alone; it is killed with the [`Snapshot`], or
//! with this program, and the process is made to reap it.
//!
//! This is the only place that stops a process.

mod calls;
mod error;
pub(crate) mod maps;
mod own_copy;
mod ptrace;
mod snapshot;
mod symbols;

#[cfg(target_arch = "aarch64")]
#[path = "registers_aarch64.rs"]
mod registers;
#[cfg(target_arch = "x86_64")]
#[path = "registers_x86_64.rs"]
mod registers;

pub use calls::{Answer, Argument, Call};
pub use error::SnapshotError;
pub use own_copy::OwnCopy;
pub use snapshot::Snapshot;
pub use symbols::Symbols;

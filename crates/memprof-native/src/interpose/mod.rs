//! The engine: calls of loaded objects go to other functions, until they are put back.
//!
//! Objects call each other through tables that the loader fills in with addresses. [`install`] replaces the addresses
//! of wanted functions there, in every object but the one this code is in; [`remove`] puts every word back as it was
//! found. It knows nothing of what the replacements do.
//!
//! Rules that keep the program safe:
//!
//! - **An object is touched only while it is pinned** (`loaded_objects::Pin`): an open handle waits for a loader that is at
//!   work on it, and keeps it from being unloaded. What is gone is never written to.
//! - **A word is replaced only if its meaning is known**: it is the address of the wanted function, or leads there by
//!   way of lazy binding. It is put back only if it is still ours.
//! - **Words are exchanged atomically**; their pages get back the protection they had.
//! - **The lock is never waited for by a thread that may hold the loader's lock** (`watch`): the thread that holds it does the
//!   other's work before letting go.
//! - **A function that is called by its address is followed only while its object is pinned** (`ffi`).
//! - **The own object stays**: a thread may sit in a replacement long after the last trace.

mod elf;
mod engine;
mod ffi;
mod fork_lock;
mod hook;
mod loaded_objects;
mod lookup;
mod protected_pages;
mod watch;

pub(crate) use engine::notice;
pub use engine::{install, is_built_in, remove};
pub(crate) use fork_lock::AT_FORK;
pub use hook::{Caller, Code, Companion, Entry, Hook, Original};
pub(crate) use hook::{client_hook, hook};

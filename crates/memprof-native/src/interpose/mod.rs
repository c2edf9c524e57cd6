//! The engine: redirects calls of loaded objects to other functions, until they are restored.
//!
//! Objects call each other through tables of addresses that the loader fills in. [`install`] replaces the addresses of
//! wanted functions there, in every object except the one with this code; [`remove`] restores every word as it was found.
//! The engine does not know what the replacements do.
//!
//! Rules that keep the program safe:
//!
//! - **An object is accessed only while it is pinned** (`loaded_objects::Pin`): opening a handle waits for the loader to
//!   finish with the object, and keeps it loaded. An unloaded object is never written to.
//! - **A word is replaced only if its meaning is known**: it is the address of the wanted function, or leads there by
//!   lazy binding. It is restored only if it is still ours.
//! - **Words are exchanged atomically**; their pages get their protection back.
//! - **A thread that may hold the loader's lock never waits for the engine's lock** (`watch`): the lock's holder does the
//!   other thread's work before it releases the lock.
//! - **A function called by its address is followed only while its object is pinned** (`ffi`).
//! - **This object stays loaded**: a thread may be inside a replacement long after the last trace.

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

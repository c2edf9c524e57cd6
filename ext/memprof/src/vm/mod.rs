//! The Ruby VM: the only folder that may say `unsafe`.
//!
//! Every function here is called with the GVL held (or, in an event hook, under the VM lock). What may happen where:
//!
//! - In an allocation hook ([`hooks`]): read the new object's flags and class word, read frames, use Rust's own memory. No Ruby
//!   object may be allocated, nothing may raise, `memsize` and `object_id` are not to be asked for, the GVL is not given up.
//! - In a free hook: the same, and only the object's own slot may be read, and what is freed with it. So memsize is asked for
//!   there of core types only (`memsize.rs`).
//! - In [`guard`]'s mark and compact functions: `rb_gc_mark`, `rb_gc_location`, and Rust's own memory.
//! - In the functions of [`entry`]: first the question whether this is a good moment. A debugger calls them at any.
//! - Inside [`tracker::with`]: no call that may allocate a Ruby object, run Ruby code, or start a collection, since any of
//!   these runs the hooks, and these want the tracker.
//!
//! The modules of tracking know each other one way only. Who needs one needs what stands to the right of it:
//!
//! - [`sessions`], [`guard`] -> [`between_sessions`], [`hooks`] -> [`frees`], [`naming`], [`objspace`] -> [`tracker`] -> [`frames`], [`classes`],
//!   [`places`], `quiet`, `identities`
//! - [`frames`] -> `stack_tree`, `callers`, [`frame_keys`], `control_frames`, `origin`, `postponed_job`: a hook requests the job that
//!   [`naming`] has set, without knowing it
//! - all of them -> [`ruby_object`], [`symbols`], which know no tracker

pub mod after_fork;
mod allocator;
pub mod between_sessions;
mod callers;
pub mod census;
pub mod classes;
pub mod contents;
mod control_frames;
pub mod dump_files;
pub mod entry;
pub mod event;
mod event_hook;
pub mod frame_keys;
pub mod frames;
pub mod frees;
pub mod guard;
pub mod gvl;
pub mod heap;
mod heap_pages;
pub mod hooks;
mod identities;
pub mod iseqs;
pub mod layouts;
pub mod malloc_host;
mod memsize;
pub mod naming;
pub mod objspace;
mod origin;
mod own_context;
pub mod peak;
pub mod places;
mod postponed_job;
pub mod process_memory;
// What the loader calls needs libruby, which a program of unit tests does not have.
#[cfg(not(test))]
mod preload;
pub mod process;
pub mod protect;
mod quiet;
pub mod ractors;
mod revealed;
pub mod ruby_object;
pub mod ruby_thread;
pub mod seed;
pub mod sessions;
pub mod signals;
pub mod slots;
mod stack_buffer;
pub mod stack_checks;
mod stack_tree;
pub mod symbols;
pub mod trace;
pub mod tracker;

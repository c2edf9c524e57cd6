//! The Ruby VM: the only directory with `unsafe` code.
//!
//! Every function here is called with the GVL held (or, in an event hook, under the VM lock). Rules by context:
//!
//! - In an allocation hook ([`hooks`]): read the new object's flags and class word, read frames, use Rust's own memory. Don't
//!   allocate Ruby objects, raise, call `memsize` or `object_id`, or release the GVL.
//! - In a free hook: the same, and read only the object's own slot and memory that is freed with it. So memsize is called
//!   there for core types only (`memsize.rs`).
//! - In [`guard`]'s mark and compact functions: `rb_gc_mark`, `rb_gc_location`, and Rust's own memory.
//! - In the functions of [`entry`]: first check whether the moment is safe, since a debugger calls them at any time.
//! - Inside [`tracker::with`]: no call that may allocate a Ruby object, run Ruby code, or start a GC, since these run the
//!   hooks, which need the tracker.
//!
//! Dependencies between the modules of tracking are one-way, from left to right:
//!
//! - [`sessions`], [`guard`] -> [`between_sessions`], [`hooks`] -> [`frees`], [`naming`], [`objspace`] -> [`tracker`] ->
//!   [`frames`], [`classes`], [`places`], `quiet`, `identities`
//! - [`agent`] has its own instances of [`frames`] and [`classes`], and nothing of the tracker but its quiet threads
//! - [`frames`] -> `stack_tree`, `callers`, [`frame_keys`], `control_frames`, `origin`, `postponed_job`: a hook requests the
//!   job set by [`naming`], without depending on it
//! - all of them -> [`ruby_object`], [`symbols`], which don't depend on the tracker

pub mod after_fork;
pub mod agent;
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
// The loader's entry point needs libruby, which unit tests don't link.
#[cfg(not(test))]
mod preload;
pub mod process;
pub mod protect;
mod quiet;
pub mod ractors;
mod revealed;
pub mod ruby_object;
pub mod ruby_thread;
pub mod sessions;
pub mod signals;
pub mod slots;
mod stack_buffer;
pub mod stack_checks;
mod stack_tree;
pub mod symbols;
pub mod trace;
pub mod tracker;

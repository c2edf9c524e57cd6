//! The memory of a process from outside: an [`Image`] is memory by address, with its mappings, threads and files, from an ELF
//! core file or a paused process. The structures of glibc's malloc and Ruby are found by invariants, not by symbols or version
//! tables. An [`Analysis`] joins the two: for each block it knows the owning Ruby object, the anchor, and with a malloc recording
//! the allocation site.
//!
//! Nothing here depends on a VM or stops a process.

mod address_index;
mod allocator;
mod analysis;
mod blocks;
mod containers;
pub mod dump;
mod elf_core;
mod equal_strings;
mod error;
mod generic_variables;
mod glibc;
mod image;
mod mark_stack;
mod memory_map;
mod notes;
mod owners;
mod process_image;
pub mod questions;
mod ranges;
mod recent;
mod recorded;
mod references;
mod ruby_heap;
mod ruby_pages;
mod segment;
mod sets;
mod slot_content;
mod st_table;
mod transient_heap;

pub use analysis::Analysis;
pub use blocks::{Block, Blocks, Kind};
pub use containers::Container;
pub use error::Error;
pub use glibc::{Arena, Corruption, GlibcHeap};
pub use image::{Image, Machine, Thread, Words};
pub use memory_map::{Anchor, MemoryMap};
pub use process_image::waiting_threads;
pub use recorded::{Mismatch, Recorded};
pub use references::{AnchorPoint, Node, References};
pub use ruby_pages::{ObjectType, RubyPage, RubyPages};
pub use segment::{Access, Segment};
pub use sets::SetName;

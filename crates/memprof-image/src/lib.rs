//! The memory of a process from outside: an [`Image`] is memory by address, with its mappings, threads and files. It comes
//! from an ELF core file or from a process that is paused. What glibc's malloc and Ruby have in it is found by invariants, neither by symbols nor by
//! tables of versions. An [`Analysis`] joins the two: blocks know the objects of Ruby they belong to, and what anchors them, and with a
//! recording of malloc where they were allocated.
//!
//! Nothing here knows a VM or stops a process.

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

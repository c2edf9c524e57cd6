//! Dumps of a heap.
//!
//! A dump is a stream of records ([`record`]): notes about the process, roots, shapes, objects with their references. A
//! [`Writer`] implements one format; sources of records (the walk over a live heap, a reader) call it.

pub mod binary;
mod chunks;
mod flags;
pub mod format;
pub mod heap_dump_json;
mod kinds;
mod large;
pub mod memprof_json;
mod name_tables;
pub mod objspace_json;
mod pipe;
pub mod read;
pub mod record;
mod record_counter;
mod side;
pub mod sink;
pub mod source_name;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod testing;
mod text;
pub mod values;
pub mod worker;
pub mod writer;

pub use format::{Compression, Dump, Format, Options, create};
pub use read::{Outcome, convert};
pub use values::Policy;
pub use writer::Writer;

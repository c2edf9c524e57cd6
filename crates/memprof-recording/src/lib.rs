//! Recordings of malloc: a file of events in their order, which can be read while it grows, and after its process was
//! killed. docs/recordings.md describes the format.
//!
//! The recorder (`memprof-native`) writes records with [`BlockWriter`]; [`read`] returns them; [`Summary`] adds them up.

mod block;
pub mod export;
mod reader;
mod record;
mod summary;
mod timeline;

pub use block::BlockWriter;
pub use reader::{End, Error, read};
pub use record::{Event, Record};
pub use summary::{Row, SizeClass, Summary};
pub use timeline::Point;

#[cfg(test)]
mod tests;

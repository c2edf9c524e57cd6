//! Recordings of malloc: a file of events in order. It can be read while it grows, and after its process was killed.
//! `FORMAT.md` beside `src/` describes the format.
//!
//! The recorder (`memprof-native`) writes records with [`BlockWriter`]; [`read`] returns them; [`Summary`] adds them up, and
//! [`LiveBlocks`] maps addresses of blocks to the lines that allocated them.

mod block;
pub mod export;
mod flame;
mod functions;
mod live_blocks;
mod profile;
mod reader;
mod record;
mod samples;
mod selection;
mod stacks;
mod summary;
mod sums;
mod symbols;
mod timeline;
mod tree;

pub use block::BlockWriter;
pub use flame::{Flame, FlameFrame};
pub use functions::{Function, Neighbor};
pub use live_blocks::{LiveBlock, LiveBlocks, Place};
pub use reader::{End, Error, read};
pub use record::{Event, Record};
pub use samples::{Scale, Weight};
pub use selection::{Selection, Suppressions};
pub use stacks::{Counts, Frame, Native, Node, Row, Stacks};
pub use summary::{SizeClass, Summary};
pub use symbols::{demangled, name};
pub use timeline::Point;
pub use tree::{Direction, Tree, TreeRow};

#[cfg(test)]
mod address_tests;
#[cfg(test)]
mod sample_tests;
#[cfg(test)]
mod stack_tests;
#[cfg(test)]
mod tests;

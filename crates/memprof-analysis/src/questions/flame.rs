//! `flame`: the dominator tree as frames of a flame graph, like the page that [`export`](crate::export) writes.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::describe::Named;
use super::{Error, Limit};
use crate::export::{Frames, Options};
use memprof_heap::{Heap, NONE};

/// `flame`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// Only the objects that this object retains (default: all).
    pub of: Option<Named>,
    /// Maximum number of frames; the widest are included.
    pub limit: Limit<2000>,
    /// Maximum number of levels (default: 128).
    pub depth: Option<u32>,
}

/// A frame: all objects of one class with the same label below the same frame. As a list: position of the parent frame
/// (the first frame is its own parent), position of its name, memsize of its objects, memsize with all frames below,
/// number of its objects, address of the one that retains most (null for a root or `(12 more)`).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Frame(u32, u32, u64, u64, u64, Option<String>);

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Names of frames: `Array@items` is the array in `@items`, `String@[]` all strings in it.
    pub names: Vec<String>,
    /// Frames, parents before children.
    pub frames: Vec<Frame>,
    /// Objects in frames `(12 more)`.
    pub folded: u64,
    /// Memsize of the whole heap.
    pub whole: u64,
}

impl Question {
    /// The answer.
    ///
    /// # Errors
    /// If the object does not exist, or the index cannot be read.
    pub fn answer(&self, heap: &Heap) -> Result<Answer, Error> {
        let top = self.of.as_ref().map(|named| named.find(heap)).transpose()?;
        let options = Options { depth: self.depth, ..Options::default() };
        let top = top.unwrap_or(heap.root());
        let (frames, counts) = Frames::under(heap, top, &options, self.limit.0)?;
        let address = |id: u32| (id != NONE).then(|| format!("{:#x}", heap.addresses().of(id)));
        let rows = frames.frames.iter().map(|frame| {
            let first = address(frame.first());
            let (own, total) = (frame.own, frame.total);
            Frame(frame.parent, frame.name, own, total, frame.objects, first)
        });
        Ok(Answer {
            frames: rows.collect(),
            names: frames.names,
            folded: counts.folded,
            whole: heap.size()?,
        })
    }
}

//! `flame`: the dominator tree as frames of a flame graph, those of the page that [`export`](crate::export) writes.

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
    /// Only what this object keeps alive; all.
    pub of: Option<Named>,
    /// Most frames. The widest are kept.
    pub limit: Limit<2000>,
    /// Most levels; 128.
    pub depth: Option<u32>,
}

/// A frame: all objects of one class that hang by the same label on the frame above it. As a list: the position of the
/// frame that it is under (its own of the first one), the position of its name, memsize of its objects, the same with all
/// under it, number of its objects, address of the one that retains most (null: a root, or `(12 more)`).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Frame(u32, u32, u64, u64, u64, Option<String>);

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Names of frames: `Array@items` is the array in `@items`, `String@[]` all strings in it.
    pub names: Vec<String>,
    /// Frames; each stands behind the one that it is under.
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
    /// If there is no such object, or the index cannot be read.
    pub fn answer(&self, heap: &Heap) -> Result<Answer, Error> {
        let top = self.of.as_ref().map(|named| named.find(heap)).transpose()?;
        let options = Options {
            depth: self.depth,
            ..Options::default()
        };
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
            whole: heap.memsizes()?.sum(),
        })
    }
}

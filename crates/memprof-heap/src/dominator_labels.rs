//! Labels of references from dominators, by which flame graphs group objects.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use super::label::{Label, Packed};
use super::{Heap, NONE};
use crate::graph::{PART, in_parts};
use memprof_dump::record::Kind;

/// Stands for the label of any element of an array and of any value of a hash.
pub const ELEMENT: u32 = NONE - 1;
/// Stands for the label of any key of a hash.
pub const KEY: u32 = NONE - 2;

impl Heap {
    /// The label of the reference from each node's dominator to the node: packed, [`ELEMENT`] or [`KEY`]; 0 if the dominator
    /// does not reference the node itself. Computed on the first call.
    ///
    /// # Errors
    /// See [`Heap::group_numbers`].
    pub fn dominator_labels(&self) -> io::Result<&[u32]> {
        let labels = self.derived.labels.get_or(|| find(self));
        labels.map(Vec::as_slice)
    }
}

fn find(heap: &Heap) -> io::Result<Vec<u32>> {
    let nodes = heap.root() as usize + 1;
    let labels = heap.labels()?;
    if labels.is_empty() {
        return Ok(vec![0; nodes]);
    }
    let classes = heap.group_classes();
    let graph = heap.graph(&classes)?;
    let tree = heap.dominators()?;
    let found: Vec<AtomicU32> = std::iter::repeat_with(AtomicU32::default).take(nodes).collect();
    let groups = heap.group_numbers()?;
    let look = |node: u32| {
        // The name of a thread's local matters; the key of a hash entry does not.
        let group = groups.get(node as usize);
        let is_hash = group.is_some_and(|&group| heap.groups()[group as usize].kind == Kind::HASH);
        let start = graph.offsets.get(node as usize).map_or(0, |&start| start as usize);
        for (&target, edge) in graph.row(node).iter().zip(start..) {
            let known = &found[target as usize];
            // A node has one dominator, so no other thread writes here.
            if tree.parent_of(target) != Some(node) || known.load(Ordering::Relaxed) != 0 {
                continue;
            }
            let Some(&label) = labels.get(edge) else {
                continue;
            };
            let label = match Packed(label).label() {
                Label::Index(_) | Label::Entry => ELEMENT,
                Label::Under(_) if is_hash => ELEMENT,
                Label::Key => KEY,
                _ => label,
            };
            known.store(label, Ordering::Relaxed);
        }
    };
    in_parts(nodes, PART, || (), |(), part| part.for_each(|node| look(node as u32)));
    Ok(found.into_iter().map(AtomicU32::into_inner).collect())
}

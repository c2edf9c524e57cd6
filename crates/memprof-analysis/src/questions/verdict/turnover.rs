//! Whether what threads have in their frames stays: a pool that works has jobs in hand, each with objects of its own, and by
//! chance there are more of them from heap to heap.

use std::io;

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value as Json;

use super::super::overview::process_facts;
use super::merged::{Link, Nature, Node};
use memprof_heap::{FOLDED, Heap, NONE};

/// Objects of a node that are looked for in the next heap.
const SAMPLE: usize = 64;

/// Objects of nodes below the frames of threads and fibers.
#[derive(Default)]
pub(super) struct Turnover {
    /// Addresses of some of them in the last heap, and the GC generations that they are from: an address may be used again.
    samples: FxHashMap<u32, Vec<(u64, u32)>>,
    /// How often that heap was compacted, as its header says.
    compactions: Option<Json>,
    replaced: FxHashSet<u32>,
}

impl Turnover {
    /// Compares the next heap of a process, whose objects are `of` these nodes, with the last one.
    pub fn note(&mut self, nodes: &[Node], of: &[u32], heap: &Heap) -> io::Result<()> {
        let header = process_facts::header(heap);
        let compactions = header.get("compactions").cloned();
        let moved = header.get("auto_compact") == Some(&Json::Bool(true))
            || compactions != self.compactions && !self.samples.is_empty();
        self.compactions = compactions;
        let generations = heap.generations()?;
        let generation = |id: u32| generations.get(id as usize).copied().unwrap_or(NONE);
        for (node, objects) in std::mem::take(&mut self.samples) {
            let stays = |(address, from): &&(u64, u32)| {
                let id = heap.at(*address);
                id.is_some_and(|id| of.get(id as usize) == Some(&node) && generation(id) == *from)
            };
            let stayed = objects.iter().filter(stays).count();
            if !moved && stayed * 2 < objects.len() {
                self.replaced.insert(node);
            }
        }
        let in_frames = in_frames(nodes);
        let flags = heap.flag_words()?;
        for id in 0..heap.len() {
            let node = of[id as usize];
            let is_own = (flags.get(id as usize)).is_some_and(|flags| flags & FOLDED.0 != 0);
            if node == NONE || is_own || !in_frames[node as usize] {
                continue;
            }
            let sample = self.samples.entry(node).or_default();
            if sample.len() < SAMPLE {
                sample.push((heap.addresses().of(id), generation(id)));
            }
        }
        Ok(())
    }

    /// Whether most objects of a node were others in a later heap.
    pub fn is_replaced(&self, node: u32) -> bool {
        self.replaced.contains(&node)
    }
}

/// Whether what holds a node is the frame of a thread or fiber, and not a thread-local.
pub(super) fn is_in_frame(holder: &Node, held: &Node) -> bool {
    let is_stack = matches!(holder.nature, Nature::Thread | Nature::Fiber);
    is_stack && held.label.0 != Link::ThreadLocal && held.nature != Nature::Fiber
}

/// Of each node, whether it is below a frame. Nodes come behind their parents.
fn in_frames(nodes: &[Node]) -> Vec<bool> {
    let mut found: Vec<bool> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let above = nodes.get(node.parent as usize);
        let is = above.is_some_and(|above| {
            found.get(node.parent as usize) == Some(&true) || is_in_frame(above, node)
        });
        found.push(is);
    }
    found
}

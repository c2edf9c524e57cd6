//! Whether the objects of a node last. A busy pool has jobs in progress, each with its own objects, and a report is
//! replaced by the next: by chance their number rises from heap to heap.

use std::io;

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value as Json;

use super::super::overview::process_facts;
use super::merged::{Link, Nature, Node};
use memprof_heap::{FOLDED, Heap, NONE};

/// Number of a node's objects that are looked up in the next heap.
const SAMPLE: u32 = 64;

/// Turnover of the objects of nodes.
#[derive(Default)]
pub(super) struct Turnover {
    /// Addresses of some of them in the last heap, with their GC generations, as addresses are reused.
    samples: Vec<Vec<(u64, u32)>>,
    /// Number of compactions of that heap, from its header.
    compactions: Option<Json>,
    /// Nodes most or some of whose objects differed in a later heap, as far as that is certain.
    passing: FxHashSet<u32>,
    /// Nodes nearly all of whose objects last, which is only certain for tracked objects.
    lasting: FxHashSet<u32>,
    /// Whether hardly any objects of a node ever existed in the next heap.
    gone: FxHashMap<u32, bool>,
}

impl Turnover {
    /// Compares the next heap of a process with the last one; `of` has the node of each of its objects.
    pub fn note(&mut self, nodes: &[Node], of: &[u32], heap: &Heap) -> io::Result<()> {
        let header = process_facts::header(heap);
        let compactions = header.get("compactions").cloned();
        let moved = header.get("auto_compact") == Some(&Json::Bool(true))
            || compactions != self.compactions && !self.samples.is_empty();
        self.compactions = compactions;
        let generations = heap.generations()?;
        let generation = |id: u32| generations.get(id as usize).copied().unwrap_or(NONE);
        for (node, objects) in (0..).zip(std::mem::take(&mut self.samples)) {
            if objects.is_empty() {
                continue;
            }
            let stays = |(address, from): &&(u64, u32)| {
                let id = heap.at(*address);
                id.is_some_and(|id| of.get(id as usize) == Some(&node) && generation(id) == *from)
            };
            let stayed = objects.iter().filter(stays).count();
            if moved {
                continue;
            }
            let gone = stayed * 10 < objects.len();
            *self.gone.entry(node).or_insert(gone) &= gone;
            let tracked = objects.iter().all(|&(_, generation)| generation != NONE);
            let lasting = stayed * 10 >= objects.len() * 9;
            if tracked && lasting {
                self.lasting.insert(node);
            } else {
                self.lasting.remove(&node);
            }
            if stayed * 2 < objects.len() || tracked && !lasting {
                self.passing.insert(node);
            }
        }
        self.samples.resize_with(nodes.len(), Vec::new);
        let flags = heap.flag_words()?;
        let counted = |&id: &u32| {
            let is_own = (flags.get(id as usize)).is_some_and(|flags| flags & FOLDED.0 != 0);
            let node = nodes.get(of[id as usize] as usize).filter(|_| !is_own);
            node.is_some_and(|node| !matches!(node.nature, Nature::Root | Nature::Cache))
        };
        let mut counts = vec![(0_u32, 0_u32); nodes.len()];
        for id in (0..heap.len()).filter(counted) {
            counts[of[id as usize] as usize].0 += 1;
        }
        // Neighbours were allocated together and are freed together: a queue drops its oldest.
        for id in (0..heap.len()).filter(counted) {
            let node = of[id as usize] as usize;
            let (count, seen) = &mut counts[node];
            if *seen % count.div_ceil(SAMPLE) == 0 {
                self.samples[node].push((heap.addresses().of(id), generation(id)));
            }
            *seen += 1;
        }
        Ok(())
    }

    /// Whether many objects of a node differed in a later heap.
    pub fn is_passing(&self, node: u32) -> bool {
        self.passing.contains(&node)
    }

    /// Whether hardly any object of a node existed in the next heap, each time.
    pub fn is_gone(&self, node: u32) -> bool {
        self.gone.get(&node) == Some(&true)
    }

    /// Whether nearly all objects of a node existed in the next heap, the last time.
    pub fn is_lasting(&self, node: u32) -> bool {
        self.lasting.contains(&node) && !self.is_passing(node)
    }
}

/// Whether a node is retained by the frame of a thread or fiber, not by a thread-local.
pub(super) fn is_in_frame(holder: &Node, held: &Node) -> bool {
    let is_stack = matches!(holder.nature, Nature::Thread | Nature::Fiber);
    let is_named = matches!(held.label.0, Link::ThreadLocal | Link::ThreadVariable);
    is_stack && !is_named && held.nature != Nature::Fiber
}

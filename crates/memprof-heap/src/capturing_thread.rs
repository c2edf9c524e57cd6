//! The thread that captured a heap. Paths avoid it.
//!
//! When a process captures its own heap, the frames of the capturing thread reference the objects that the caller asks about.
//! They explain nothing unless nothing else references the object, so paths through that thread rank second to last. Paths
//! through compiled code and the machine stack, which may not be references at all, rank last.

use std::io;
use std::sync::OnceLock;

use super::{Heap, NONE};
use crate::graph::{self, BitSet};

/// The thread that captured a heap.
pub(super) struct CapturingThread {
    /// The machine stack, compiled code, the thread, its fibers, and its frames' local variables where a block or a binding moved
    /// them off the stack, as IRB does; in order.
    nodes: Vec<u32>,
    paths: OnceLock<Paths>,
}

struct Paths {
    /// The node before each on the best path to it.
    steps: Vec<u32>,
    /// Nodes that other paths lead to.
    others: BitSet,
}

impl CapturingThread {
    fn of(heap: &Heap, thread: u32) -> io::Result<CapturingThread> {
        let mut nodes = heap.last_resorts();
        nodes.push(thread);
        let groups = heap.group_numbers()?;
        let graph = heap.graph(&[])?;
        let named = |node: u32, wanted: &str| {
            let group = groups.get(node as usize).copied();
            let group = group.and_then(|group| heap.groups().get(group as usize));
            let name = group.and_then(|group| group.name);
            name.is_some_and(|name| heap.name(name) == wanted)
        };
        let held = |node: u32, name: &'static str| {
            let row = graph.row(node).iter().copied();
            row.filter(move |node| named(*node, name))
        };
        let fibers: Vec<u32> = held(thread, "fiber").collect();
        nodes.extend(held(thread, "env"));
        nodes.extend(fibers.iter().flat_map(|fiber| held(*fiber, "env")));
        nodes.extend(fibers);
        nodes.sort_unstable();
        nodes.dedup();
        Ok(CapturingThread { nodes, paths: OnceLock::new() })
    }

    fn paths(&self, heap: &Heap) -> io::Result<&Paths> {
        if let Some(paths) = self.paths.get() {
            return Ok(paths);
        }
        let classes = heap.group_classes();
        let graph = heap.graph(&classes)?.without_edges_of(&self.nodes);
        let mut steps = graph::shortest_paths(&graph, heap.root()).parent;
        let reached = (0..steps.len() as u32).filter(|&node| steps[node as usize] != NONE);
        let others = BitSet::of(steps.len(), reached);
        for (step, &through_it) in steps.iter_mut().zip(heap.all_steps()?) {
            if *step == NONE {
                *step = through_it;
            }
        }
        let paths = Paths { steps, others };
        Ok(self.paths.get_or_init(|| paths))
    }

    pub fn steps(&self, heap: &Heap) -> io::Result<&[u32]> {
        Ok(&self.paths(heap)?.steps)
    }

    /// Bytes in memory.
    pub fn memsize(&self) -> usize {
        let paths = self.paths.get();
        paths.map_or(0, |paths| size_of_val(paths.steps.as_slice()))
    }
}

impl Heap {
    /// The same heap, with paths that avoid the thread at this address and the objects that belong to it.
    ///
    /// # Errors
    /// See [`Heap::group_numbers`].
    pub fn captured_by(mut self, thread: u64) -> io::Result<Heap> {
        self.capturing_thread = match self.at(thread) {
            Some(thread) => Some(CapturingThread::of(&self, thread)?),
            None => None,
        };
        Ok(self)
    }

    /// Removes the capturing thread, and nodes that only it references, unless nothing else is left.
    ///
    /// # Errors
    /// See [`Heap::group_numbers`].
    pub fn without_capturing_thread(&self, nodes: Vec<u32>) -> io::Result<Vec<u32>> {
        let Some(capturing_thread) = &self.capturing_thread else {
            return Ok(nodes);
        };
        let held = &capturing_thread.paths(self)?.others;
        let is_other = |node: &u32| {
            held.contains(*node) && capturing_thread.nodes.binary_search(node).is_err()
        };
        let others: Vec<u32> = nodes.iter().copied().filter(is_other).collect();
        Ok(if others.is_empty() { nodes } else { others })
    }
}

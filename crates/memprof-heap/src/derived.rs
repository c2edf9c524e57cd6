//! What is computed of a heap once: dominators, retained sizes, distances from the roots.

use std::io;

use rustc_hash::FxHashMap;

use super::columns::{Column, Part, SizeColumn};
use super::once::Once;
use super::sizes::Sizes;
use super::{Heap, Label, NONE, Packed};
use crate::graph::{self, BitSet, Dominators, Graph, Stop};
use memprof_dump::record::Kind;

/// What was computed. Nodes are objects, then root categories, then the super root.
#[derive(Default)]
pub(super) struct Derived {
    /// Immediate dominators.
    pub dominators: Tree,
    /// Memsize of all that the node dominates, itself included.
    pub retained: SizeColumn,
    /// The node before it on a shortest path from the super root.
    pub steps: Column<u32>,
    /// The label of the reference from each node's dominator to the node.
    pub labels: Once<Vec<u32>>,
}

/// The dominator tree, in memory or in an index.
#[derive(Default)]
pub(super) struct Tree {
    tree: Once<Dominators>,
    parts: Option<(Part, Part)>,
    /// The same, each subtree together.
    ordered: Once<graph::Tree>,
}

impl From<Dominators> for Tree {
    fn from(tree: Dominators) -> Tree {
        Tree {
            tree: Once::from(tree),
            ..Tree::default()
        }
    }
}

impl Tree {
    pub fn stored(parent: Part, order: Part) -> Tree {
        Tree {
            parts: Some((parent, order)),
            ..Tree::default()
        }
    }

    pub fn get(&self) -> io::Result<&Dominators> {
        self.tree.get_or(|| {
            Ok(match &self.parts {
                Some((parent, order)) => Dominators {
                    parent: parent.read()?,
                    order: order.read()?,
                },
                None => Dominators::default(),
            })
        })
    }

    /// The same, each subtree together. It takes as long to compute as most questions, so it is kept.
    pub fn ordered(&self) -> io::Result<&graph::Tree> {
        self.ordered.get_or(|| Ok(graph::Tree::of(self.get()?)))
    }

    /// Bytes in memory.
    pub fn memsize(&self) -> usize {
        let tree = self.tree.get().map_or(0, |tree| {
            size_of_val(tree.parent.as_slice()) + size_of_val(tree.order.as_slice())
        });
        tree + self.ordered.get().map_or(0, graph::Tree::memsize)
    }
}

impl Derived {
    /// Computes all of it, unless it is stopped.
    pub fn of(heap: &Heap, stop: Stop<'_>) -> io::Result<Derived> {
        let classes = heap.group_classes();
        let graph = heap.graph(&classes)?;
        let root = heap.root();
        let memsize = heap.memsizes()?;
        let (steps, tree) = std::thread::scope(|scope| {
            let find = || steps(heap, &graph, stop);
            let other = std::thread::Builder::new().spawn_scoped(scope, find);
            let tree = graph::dominators_unless(&graph, root, stop).and_then(|tree| {
                stop.check()?;
                let retained = graph::retained(&tree, |node| memsize.get(node));
                Ok((tree, retained.into_iter().collect::<Sizes>()))
            });
            // Without memory for another thread, one after the other.
            let steps = other.map_or_else(|_| Ok(find()), |other| other.join());
            (steps, tree)
        });
        let (tree, retained) = tree?;
        let steps = steps.map_err(|_| io::Error::other("the search for paths ended early"))?;
        Ok(Derived {
            dominators: tree.into(),
            retained: retained.into(),
            steps: steps?.into(),
            labels: Once::default(),
        })
    }
}

impl Heap {
    /// The dominator tree of all nodes, from the super root.
    ///
    /// # Errors
    /// See [`Heap::group_numbers`].
    pub fn dominators(&self) -> io::Result<&Dominators> {
        self.derived.dominators.get()
    }

    /// The dominator tree with each subtree together; it is kept from the first time on.
    ///
    /// # Errors
    /// See [`Heap::group_numbers`].
    pub fn tree(&self) -> io::Result<&graph::Tree> {
        self.derived.dominators.ordered()
    }

    /// Retained size of each node.
    ///
    /// # Errors
    /// See [`Heap::group_numbers`].
    pub fn retained(&self) -> io::Result<&Sizes> {
        self.derived.retained.get()
    }

    /// The node before each on a shortest path from the super root; [`NONE`] for it and what is unreachable. Of a heap that
    /// was captured, paths avoid the thread that did it ([`Heap::captured_by`]).
    ///
    /// # Errors
    /// See [`Heap::group_numbers`].
    pub fn steps(&self) -> io::Result<&[u32]> {
        match &self.capturing_thread {
            Some(capturing_thread) => capturing_thread.steps(self),
            None => self.all_steps(),
        }
    }

    /// The same with the paths through the thread that captured the heap.
    pub(super) fn all_steps(&self) -> io::Result<&[u32]> {
        self.derived.steps.get()
    }
}

/// Shortest paths, lasting references first. Stacks and call caches retain objects for a moment, so a path leads through one only
/// if nothing else retains the object. The machine stack and compiled code explain least, so they come last.
fn steps(heap: &Heap, graph: &Graph<'_>, stop: Stop<'_>) -> io::Result<Vec<u32>> {
    let last = heap.last_resorts();
    let without_last = graph.without_edges_of(&last);
    let silent = last.iter().all(|root| heap.silent.contains(root));
    let (graph, last) = if silent {
        (*graph, None)
    } else {
        (without_last, Some(*graph))
    };
    let (passing, lasting) = passing(heap)?;
    let nothing = BitSet::default();
    let find = |graph: &Graph<'_>, avoid: &BitSet| {
        graph::shortest_paths_unless(graph, heap.root(), avoid, &lasting, stop)
    };
    let mut steps = find(&graph, &passing)?.parent;
    for graph in [Some(graph), last].into_iter().flatten() {
        // The way up from a node leads to nodes that are nearer to the root, or that were reached before.
        let next = find(&graph, &nothing)?.parent;
        for (step, next) in steps.iter_mut().zip(next) {
            if *step == NONE {
                *step = next;
            }
        }
    }
    Ok(steps)
}

/// Threads and fibers, for their stacks, and caches of calls; and what threads hold for good: their locals and variables.
fn passing(heap: &Heap) -> io::Result<(BitSet, FxHashMap<u32, Vec<u32>>)> {
    let is_passing: Vec<bool> = heap
        .groups()
        .iter()
        .map(|group| {
            let name = group.name.map_or("", |name| heap.name(name));
            match group.kind {
                Kind::DATA => matches!(name, "VM/thread" | "thread" | "fiber"),
                Kind::IMEMO => matches!(name, "callcache" | "constcache"),
                _ => false,
            }
        })
        .collect();
    let groups = heap.group_numbers()?.iter().zip(0..);
    let found = groups.filter(|&(&group, _)| is_passing.get(group as usize) == Some(&true));
    let passing = BitSet::of(heap.root() as usize + 1, found.map(|(_, node)| node));
    let (offsets, targets) = (heap.columns.offsets.get()?, heap.columns.targets.get()?);
    let labels = heap.columns.labels.get()?;
    let mut lasting = FxHashMap::default();
    if labels.is_empty() {
        return Ok((passing, lasting));
    }
    for node in passing.iter() {
        let row = offsets[node as usize] as usize..offsets[node as usize + 1] as usize;
        let held = row.filter(|&edge| match Packed(labels[edge]).label() {
            Label::Under(_) => true,
            Label::Role(name) => heap.name(name) == "locals",
            _ => false,
        });
        let held: Vec<u32> = held.map(|edge| targets[edge]).collect();
        if !held.is_empty() {
            lasting.insert(node, held);
        }
    }
    Ok((passing, lasting))
}

//! What is computed of a heap once: dominators, retained sizes, distances from the roots.

use std::io;

use super::columns::{Column, Part, SizeColumn};
use super::once::Once;
use super::sizes::Sizes;
use super::{Heap, NONE};
use crate::graph::{self, Dominators, Graph, Stop, Stopped};

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

/// Shortest paths. What is on the machine stack or in compiled code says little of why an object lives on: a path through
/// it is taken only where there is no other.
fn steps(heap: &Heap, graph: &Graph<'_>, stop: Stop<'_>) -> Result<Vec<u32>, Stopped> {
    // Those that are ignored are among them.
    let last = heap.last_resorts();
    let all = graph::shortest_paths_unless(graph, heap.root(), stop)?.parent;
    if last.iter().all(|root| heap.silent.contains(root)) {
        return Ok(all);
    }
    let without_last = graph.without_edges_of(&last);
    let mut steps = graph::shortest_paths_unless(&without_last, heap.root(), stop)?.parent;
    for (step, through_last) in steps.iter_mut().zip(all) {
        if *step == NONE {
            *step = through_last;
        }
    }
    Ok(steps)
}

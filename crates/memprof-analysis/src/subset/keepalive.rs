//! Number of nodes that given nodes reach, and thus keep alive, perhaps together with others.

use std::ops::Deref;

use super::compact::Compact;
use super::{Annotation, Subset};
use crate::questions::Error;
use memprof_heap::graph::{self, BitSet, Graph};
use memprof_heap::{Heap, NONE};

/// The annotation with the number of nodes that a node reaches, including itself.
pub(super) const KEEPALIVE: &str = "keepalive_count";

/// The border between two sets of nodes.
#[derive(Clone)]
pub struct Interface<H> {
    /// Members outside of the other set that reference members of it.
    pub border: Subset<H>,
    /// The members of the other set that they reference, annotated with their `keepalive_count`.
    pub inside: Subset<H>,
}

impl<H: Deref<Target = Heap> + Clone> Subset<H> {
    /// Number of members that each of these reaches, including itself; cycles are allowed. Members that several of them
    /// reach count for each.
    ///
    /// # Errors
    /// See [`Subset::all`].
    pub fn keepalive_counts(&self, nodes: &[u32]) -> Result<Annotation, Error> {
        self.keepalive_within(nodes, u64::MAX)
    }

    /// The same, limited to `visits` visits of nodes: the last ones of `nodes` may be missing.
    pub(crate) fn keepalive_within(&self, nodes: &[u32], visits: u64) -> Result<Annotation, Error> {
        let compact = Compact::of(&self.view()?, &self.members, []);
        let graph = compact.graph();
        let mut keepalive = Keepalive::new(&graph);
        let members = nodes.iter().copied().filter(|&node| self.contains(node));
        let mut counts = Annotation::default();
        for node in members {
            if keepalive.visited > visits {
                break;
            }
            counts.insert(node, keepalive.count(compact.number(node)));
        }
        Ok(counts)
    }

    /// The members of `other` that are members here, annotated with the number of members they reach here
    /// (`keepalive_count`).
    ///
    /// # Errors
    /// See [`Subset::all`].
    pub fn update_keepalive_count(&self, other: &Subset<H>) -> Result<Subset<H>, Error> {
        let nodes: Vec<u32> = other.iter().collect();
        let counts = self.keepalive_counts(&nodes)?;
        Ok(other.annotate(KEEPALIVE, counts))
    }

    /// The border where members outside of `other` reference members of it. This subset must have the references
    /// between both.
    ///
    /// # Errors
    /// See [`Subset::all`].
    pub fn interface_with(&self, other: &Subset<H>) -> Result<Interface<H>, Error> {
        let view = self.view()?;
        let length = self.members.length();
        let (mut border, mut inside) = (BitSet::new(length), BitSet::new(length));
        for node in self.iter().filter(|&node| !other.contains(node)) {
            for target in view.references(node).filter(|&target| other.contains(target)) {
                border.insert(node);
                inside.insert(target);
            }
        }
        let mut inside = Subset { members: inside, ..self.clone() };
        inside.take_annotations(other);
        Ok(Interface { border: self.with(border), inside: self.update_keepalive_count(&inside)? })
    }
}

/// Counts the nodes that nodes of a graph reach.
///
/// Heaps have one large knot of nodes that all reach each other: classes, procs and the objects they reference. Most
/// walks end up in it, so the nodes that the knot reaches are counted once.
struct Keepalive<'g> {
    graph: &'g Graph<'g>,
    knot: BitSet,
    /// The nodes that the knot reaches, including itself.
    beyond: BitSet,
    beyond_count: u64,
    reached: BitSet,
    outside: Vec<u32>,
    entries: Vec<u32>,
    /// Number of visited nodes.
    visited: u64,
}

impl<'g> Keepalive<'g> {
    fn new(graph: &'g Graph<'g>) -> Keepalive<'g> {
        let parts = graph::strong_components(graph);
        let largest = (0..).zip(&parts.sizes).max_by_key(|&(_, size)| size);
        let largest = largest.map_or(NONE, |(part, _): (u32, _)| part);
        let members = (0..).zip(&parts.of).filter(|&(_, &part)| part == largest);
        let knot = BitSet::of(graph.len(), members.map(|(node, _)| node));
        let start: Vec<u32> = knot.iter().take(1).collect();
        let beyond = graph::reachable(graph, &start);
        Keepalive {
            graph,
            knot,
            beyond_count: beyond.count() as u64,
            beyond,
            reached: BitSet::new(graph.len()),
            outside: Vec::new(),
            entries: Vec::new(),
            visited: 0,
        }
    }

    /// Number of nodes that a node reaches, including itself; 0 if the node does not exist.
    fn count(&mut self, node: u32) -> u64 {
        self.outside.clear();
        self.entries.clear();
        let mut tied = false;
        self.meet(node, &mut tied);
        // First the nodes that the knot does not reach: if one of these leads into the knot, the walk is done.
        let mut next = 0;
        while let Some(&node) = self.outside.get(next) {
            next += 1;
            for target in self.graph.edges(node) {
                self.meet(target, &mut tied);
            }
        }
        let mut next = 0;
        while let Some(&node) = self.entries.get(next).filter(|_| !tied) {
            next += 1;
            for target in self.graph.edges(node) {
                self.meet(target, &mut tied);
            }
        }
        let inside = if tied { self.beyond_count } else { self.entries.len() as u64 };
        let count = self.outside.len() as u64 + inside;
        for node in self.outside.iter().chain(&self.entries) {
            self.reached.remove(*node);
        }
        self.visited += (self.outside.len() + self.entries.len()) as u64;
        count
    }

    fn meet(&mut self, node: u32, tied: &mut bool) {
        if !self.beyond.contains(node) {
            if self.reached.insert(node) {
                self.outside.push(node);
            }
        } else if self.knot.contains(node) {
            *tied = true;
        } else if !*tied && self.reached.insert(node) {
            self.entries.push(node);
        }
    }
}

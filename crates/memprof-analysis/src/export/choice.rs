//! Chooses the nodes of a file, and summarizes the others.
//!
//! The objects that retain most are included. A dominator retains at least as much as each object that it dominates, so
//! it is included with them: only whole subtrees of the dominator tree are dropped. One node `(n more)` below their last
//! included dominator has their number and size, so the retained sizes of included nodes stay correct.

use std::cmp::Reverse;
use std::io;

use super::{Counts, Options};
use memprof_heap::graph::{BitSet, Dominators, Graph};
use memprof_heap::{FOLDED, FREE, Heap, NONE};

/// Objects without a node of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct More {
    /// The node above them.
    pub owner: u32,
    /// Number of objects.
    pub objects: u64,
    /// Total memsize.
    pub size: u64,
}

/// The nodes of a file.
#[derive(Debug, Default)]
pub(super) struct Choice {
    /// Objects, and the roots unless only some objects were requested.
    pub nodes: BitSet,
    /// Summaries of the other objects, by owner.
    pub more: Vec<More>,
    /// Pairs of a node and a dominated node whose path leads through dropped nodes.
    pub links: Vec<(u32, u32)>,
    /// Objects that no node of the file dominates: unreachable ones, and requested ones that others retain.
    pub tops: Vec<u32>,
    /// Objects in `nodes`.
    pub objects: u64,
    /// Requested objects that no node of the file represents.
    pub left_out: u64,
}

impl Choice {
    /// Chooses at most `limit` objects, or as many as the options say.
    pub fn new(heap: &Heap, options: &Options<'_>, limit: usize) -> io::Result<Choice> {
        let length = heap.root() as usize + 1;
        let flags = heap.flag_words()?;
        let mut wanted = BitSet::new(length);
        for (&word, id) in flags.iter().zip(0..) {
            let is_wanted = match options.members {
                // Free blocks are members only if they were asked for.
                Some(members) => members.contains(id) && word & (FOLDED.0 | FREE.0) != FOLDED.0,
                None => word & FOLDED.0 == 0,
            };
            if is_wanted {
                wanted.insert(id);
            }
        }
        let mut nodes = wanted.clone();
        if options.min_retained > 0 {
            let retained = heap.retained()?;
            wanted.iter().filter(|&id| retained.get(id) < options.min_retained).for_each(|id| {
                nodes.remove(id);
            });
        }
        if let Some(depth) = options.depth {
            let levels = levels(heap, heap.dominators()?);
            wanted.iter().filter(|&id| levels[id as usize] > depth).for_each(|id| {
                nodes.remove(id);
            });
        }
        let limit = options.limit.unwrap_or(limit);
        if nodes.count() > limit {
            nodes = greatest(heap, &nodes, limit)?;
        }
        let objects = nodes.count() as u64;
        if options.members.is_none() {
            (heap.len()..=heap.root()).for_each(|node| {
                nodes.insert(node);
            });
        }
        let mut choice = Choice { nodes, objects, ..Choice::default() };
        if objects < u64::from(heap.len()) {
            choice.fold(heap, &wanted)?;
        } else {
            let tree = heap.dominators()?;
            choice.tops = choice
                .nodes
                .iter()
                .take_while(|&id| id < heap.len())
                .filter(|&id| !tree.reaches(id))
                .collect();
        }
        Ok(choice)
    }

    /// Counts of the included and the other objects, for the answer.
    pub fn counts(&self) -> Counts {
        Counts {
            objects: self.objects,
            references: 0,
            folded: self.more.iter().map(|more| more.objects).sum(),
            left_out: self.left_out,
        }
    }

    fn fold(&mut self, heap: &Heap, wanted: &BitSet) -> io::Result<()> {
        let tree = heap.dominators()?;
        let memsizes = heap.memsizes()?;
        // The nearest included node: itself or a dominator.
        let mut nearest = vec![NONE; self.nodes.length()];
        for &node in &tree.order {
            nearest[node as usize] = match tree.parent_of(node) {
                _ if self.nodes.contains(node) => node,
                Some(parent) => nearest[parent as usize],
                None => NONE,
            };
        }
        let mut dropped: Vec<(u32, u32)> = Vec::new();
        for id in wanted.iter().filter(|&id| !self.nodes.contains(id)) {
            match nearest[id as usize] {
                NONE => self.left_out += 1,
                owner => dropped.push((owner, id)),
            }
        }
        dropped.sort_unstable();
        for of_one in dropped.chunk_by(|one, other| one.0 == other.0) {
            let sizes = of_one.iter().map(|&(_, id)| memsizes.get(id));
            self.more.push(More {
                owner: of_one[0].0,
                objects: of_one.len() as u64,
                size: sizes.fold(0, u64::saturating_add),
            });
        }
        let above =
            |node: u32| tree.parent_of(node).map_or(NONE, |parent| nearest[parent as usize]);
        self.tops = self
            .nodes
            .iter()
            .take_while(|&id| id < heap.len())
            .filter(|&id| above(id) == NONE)
            .collect();
        let classes = heap.group_classes();
        self.links = links(&heap.graph(&classes)?, &self.nodes, above);
        Ok(())
    }
}

/// Steps from the roots in the dominator tree; unreachable nodes are at level 1.
fn levels(heap: &Heap, tree: &Dominators) -> Vec<u32> {
    let mut levels = vec![1; tree.parent.len().max(heap.root() as usize + 1)];
    for &node in &tree.order {
        levels[node as usize] = match tree.parent_of(node) {
            Some(parent) if node < heap.len() => levels[parent as usize] + 1,
            _ => 0,
        };
    }
    levels
}

/// The nodes that retain most. Among equal ones the dominator comes first.
fn greatest(heap: &Heap, nodes: &BitSet, limit: usize) -> io::Result<BitSet> {
    let retained = heap.retained()?;
    let mut place = vec![NONE; nodes.length()];
    for (&node, index) in heap.dominators()?.order.iter().zip(0..) {
        place[node as usize] = index;
    }
    let mut ranked: Vec<(Reverse<u64>, u32, u32)> = nodes
        .iter()
        .map(|node| (Reverse(retained.get(node)), place[node as usize], node))
        .collect();
    if limit < ranked.len() {
        ranked.select_nth_unstable(limit);
    }
    Ok(BitSet::of(nodes.length(), ranked.into_iter().take(limit).map(|(_, _, node)| node)))
}

/// Included nodes that dropped nodes reference, but their nearest included dominator does not: without a link they
/// might be unreachable.
fn links(graph: &Graph<'_>, nodes: &BitSet, above: impl Fn(u32) -> u32) -> Vec<(u32, u32)> {
    let mut lost = BitSet::new(nodes.length());
    for node in graph.nodes().filter(|&node| !nodes.contains(node)) {
        for target in graph.edges(node).filter(|&target| nodes.contains(target)) {
            lost.insert(target);
        }
    }
    for node in nodes.iter() {
        for target in graph.edges(node).filter(|&target| target != node && above(target) == node) {
            lost.remove(target);
        }
    }
    let pairs = lost.iter().map(|node| (above(node), node));
    let mut links: Vec<(u32, u32)> = pairs.filter(|&(owner, _)| owner != NONE).collect();
    links.sort_unstable();
    links
}

//! Which nodes are in a file, and what stands for those that are not.
//!
//! Objects that retain most are kept. A dominator retains at least as much as what it dominates, so it is kept with it:
//! what is dropped is always whole subtrees of the dominator tree, and one node `(n more)` under the last dominator that
//! is kept has their number and their size. So the retained sizes of what is kept stay right.

use std::cmp::Reverse;
use std::io;

use super::{Counts, Options};
use memprof_heap::graph::{BitSet, Dominators, Graph};
use memprof_heap::{FOLDED, Heap, NONE};

/// Objects that have no node of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct More {
    /// The node that they are under.
    pub owner: u32,
    /// How many.
    pub objects: u64,
    /// Sum of their memsizes.
    pub size: u64,
}

/// The nodes of a file.
#[derive(Debug, Default)]
pub(super) struct Choice {
    /// Objects; also the roots, unless only some objects were asked for.
    pub nodes: BitSet,
    /// What stands for other objects, by owner.
    pub more: Vec<More>,
    /// Pairs of a node and one that it dominates, the way to which leads through nodes that were not kept.
    pub links: Vec<(u32, u32)>,
    /// Objects that no node of the file dominates: what is unreachable, and of objects that were asked for those that
    /// others keep alive.
    pub tops: Vec<u32>,
    /// Objects in `nodes`.
    pub objects: u64,
    /// Objects that were asked for, and for which nothing stands.
    pub left_out: u64,
}

impl Choice {
    /// Chooses at most so many objects, or as many as the options say.
    pub fn new(heap: &Heap, options: &Options<'_>, limit: usize) -> io::Result<Choice> {
        let length = heap.root() as usize + 1;
        let flags = heap.flag_words()?;
        let mut wanted = BitSet::new(length);
        for (&word, id) in flags.iter().zip(0..) {
            if word & FOLDED.0 == 0 && options.members.is_none_or(|members| members.contains(id)) {
                wanted.insert(id);
            }
        }
        let mut nodes = wanted.clone();
        if options.min_retained > 0 {
            let retained = heap.retained()?;
            wanted
                .iter()
                .filter(|&id| retained.get(id) < options.min_retained)
                .for_each(|id| {
                    nodes.remove(id);
                });
        }
        if let Some(depth) = options.depth {
            let levels = levels(heap, heap.dominators()?);
            wanted
                .iter()
                .filter(|&id| levels[id as usize] > depth)
                .for_each(|id| {
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
        let mut choice = Choice {
            nodes,
            objects,
            ..Choice::default()
        };
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

    /// Objects and what is not among them, for the answer.
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
        // The nearest node that is kept: itself, or a dominator.
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
        let above = |node: u32| {
            tree.parent_of(node)
                .map_or(NONE, |parent| nearest[parent as usize])
        };
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

/// Steps from the roots in the dominator tree; what they do not reach is at their side.
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

/// Those that retain most. Of equal ones the dominator comes first.
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
    Ok(BitSet::of(
        nodes.length(),
        ranked.into_iter().take(limit).map(|(_, _, node)| node),
    ))
}

/// Kept nodes that nodes which are not kept refer to, while their next kept dominator does not: without a link there
/// might be no way to them.
fn links(graph: &Graph<'_>, nodes: &BitSet, above: impl Fn(u32) -> u32) -> Vec<(u32, u32)> {
    let mut lost = BitSet::new(nodes.length());
    for node in graph.nodes().filter(|&node| !nodes.contains(node)) {
        for target in graph.edges(node).filter(|&target| nodes.contains(target)) {
            lost.insert(target);
        }
    }
    for node in nodes.iter() {
        for target in graph
            .edges(node)
            .filter(|&target| target != node && above(target) == node)
        {
            lost.remove(target);
        }
    }
    let pairs = lost.iter().map(|node| (above(node), node));
    let mut links: Vec<(u32, u32)> = pairs.filter(|&(owner, _)| owner != NONE).collect();
    links.sort_unstable();
    links
}

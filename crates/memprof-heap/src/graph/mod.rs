//! Directed graphs in compressed rows, and queries on them: dominators, retained sizes, shortest paths, referrers, reachability.
//!
//! Everything here works on numbers and is independent of Ruby. Nodes are `u32`; no algorithm recurses, so the depth of a graph
//! does not matter; numbers out of range are skipped.

use std::ops::Range;

mod bits;
mod components;
mod compressed_rows;
mod depth_first;
mod dominator_tree;
mod dominators;
mod inbound;
mod parts;
mod paths;
mod reach;
mod retained;
#[cfg(test)]
mod sample_graphs;
mod stop;
#[cfg(test)]
mod tests;

pub use bits::BitSet;
pub use components::{Components, strong_components, weak_components};
pub use compressed_rows::Rows;
pub use depth_first::{Visit, depth_first};
pub use dominator_tree::{Tree, children, depths, nearest_common};
pub use dominators::{Dominators, dominators, dominators_unless};
pub use inbound::{Inbound, ancestors, referrers_of};
pub use parts::{PART, filled, in_parts, piece_of, share};
pub use paths::{Paths, Ways, shortest_paths, shortest_paths_avoiding};
pub use reach::{reachable, reachable_counts, reachable_without, retained_of_set};
pub use retained::{retained, retained_of_top_members, top_members};
pub use stop::{Stop, Stopped};

/// No node.
pub const NONE: u32 = u32::MAX;

/// A directed graph in compressed rows. May have duplicate edges and loops.
#[derive(Clone, Copy, Debug, Default)]
pub struct Graph<'a> {
    /// Where the row of each node begins in `targets`, and the end of the last one: one more than the number of nodes.
    pub offsets: &'a [u32],
    /// The targets of all edges, row after row.
    pub targets: &'a [u32],
    /// One additional edge per node.
    pub extra: Extra<'a>,
    /// Nodes whose edges are ignored. Only a few: each visit of a node scans them all.
    pub silent: &'a [u32],
}

/// One additional edge per node, as a table: nodes of one group have the same target.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extra<'a> {
    /// The group of each node; may be shorter than the number of nodes.
    pub group: &'a [u32],
    /// The target of each group, or [`NONE`].
    pub class: &'a [u32],
}

impl<'a> Graph<'a> {
    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Whether it has no nodes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All nodes, in order.
    pub fn nodes(&self) -> Range<u32> {
        0..self.len() as u32
    }

    /// The same graph, ignoring the edges of these nodes.
    pub fn without_edges_of(self, silent: &'a [u32]) -> Graph<'a> {
        Graph { silent, ..self }
    }

    /// The targets of a node: its row, then its extra edge.
    #[inline]
    pub fn edges(&self, node: u32) -> impl Iterator<Item = u32> + use<'a> {
        let extra = self.extra_of(node).map(|(_, class)| class);
        self.row(node).iter().copied().chain(extra)
    }

    /// The row of a node, without its extra edge.
    #[inline]
    pub fn row(&self, node: u32) -> &'a [u32] {
        let (start, end) = self.span(node);
        &self.targets[start as usize..end as usize]
    }

    /// The group of a node, and the target of its extra edge.
    #[inline]
    pub fn extra_of(&self, node: u32) -> Option<(u32, u32)> {
        let group = *self.extra.group.get(node as usize)?;
        let class = *self.extra.class.get(group as usize)?;
        (class != NONE && !self.is_silent(node)).then_some((group, class))
    }

    /// Whether the rows are in order and all targets are nodes. Algorithms skip anything else at no cost; this is for callers
    /// that read a graph from a file and report errors.
    pub fn is_sound(&self) -> bool {
        let nodes = self.len() as u32;
        let ordered = self.offsets.windows(2).all(|pair| pair[0] <= pair[1]);
        let closed = self.offsets.last().map_or(0, |last| *last as usize) == self.targets.len();
        let node = |target: &u32| *target < nodes;
        let group = |group: &u32| (*group as usize) < self.extra.class.len();
        ordered
            && closed
            && self.targets.iter().all(node)
            && self.extra.group.len() <= self.len()
            && self.extra.group.iter().all(group)
            && (self.extra.class.iter()).all(|class| *class == NONE || node(class))
    }

    /// The position of a node's row in `targets`; empty if the node is silent or out of range.
    #[inline]
    fn span(&self, node: u32) -> (u32, u32) {
        let node_index = node as usize;
        match self.offsets.get(node_index..node_index.saturating_add(2)) {
            Some(&[start, end])
                if start <= end && end as usize <= self.targets.len() && !self.is_silent(node) =>
            {
                (start, end)
            }
            _ => (0, 0),
        }
    }

    #[inline]
    fn is_silent(&self, node: u32) -> bool {
        !self.silent.is_empty() && self.silent.contains(&node)
    }
}

//! A subset as a separate graph, for algorithms that only know numbers.

use super::subset_edges::View;
use memprof_heap::NONE;
use memprof_heap::graph::{BitSet, Extra, Graph};

/// Members renumbered from 0, in order; one more node references the starts of searches.
pub(super) struct Compact {
    /// The nodes by their compact numbers.
    pub nodes: Vec<u32>,
    numbers: Vec<u32>,
    offsets: Vec<u32>,
    targets: Vec<u32>,
}

impl Compact {
    /// The graph of the members and the references between them. `starts` are nodes.
    pub fn of(view: &View<'_>, members: &BitSet, starts: impl IntoIterator<Item = u32>) -> Compact {
        let nodes: Vec<u32> = members.iter().collect();
        let mut numbers = vec![NONE; members.length()];
        for (&node, number) in nodes.iter().zip(0..) {
            numbers[node as usize] = number;
        }
        let mut compact = Compact { nodes, numbers, offsets: Vec::new(), targets: Vec::new() };
        let number = |node: u32| {
            compact.numbers.get(node as usize).copied().filter(|&number| number != NONE)
        };
        let (mut offsets, mut targets) = (Vec::with_capacity(compact.nodes.len() + 2), Vec::new());
        for &node in &compact.nodes {
            offsets.push(targets.len() as u32);
            targets.extend(view.references(node).filter_map(number));
        }
        offsets.push(targets.len() as u32);
        targets.extend(starts.into_iter().filter_map(number));
        offsets.push(targets.len() as u32);
        compact.offsets = offsets;
        compact.targets = targets;
        compact
    }

    /// The node that references the starts of searches.
    pub fn root(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// The compact number of a node; [`NONE`] if it is not a member.
    pub fn number(&self, node: u32) -> u32 {
        self.numbers.get(node as usize).copied().unwrap_or(NONE)
    }

    /// The node with a compact number; [`NONE`] for the root.
    pub fn node(&self, number: u32) -> u32 {
        self.nodes.get(number as usize).copied().unwrap_or(NONE)
    }

    /// The graph.
    pub fn graph(&self) -> Graph<'_> {
        Graph {
            offsets: &self.offsets,
            targets: &self.targets,
            extra: Extra::default(),
            silent: &[],
        }
    }

    /// Nodes with these compact numbers, as a set of `length`, without the root.
    pub fn set(&self, length: usize, numbers: impl IntoIterator<Item = u32>) -> BitSet {
        BitSet::of(length, numbers.into_iter().map(|number| self.node(number)))
    }
}

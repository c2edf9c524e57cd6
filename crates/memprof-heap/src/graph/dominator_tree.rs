use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::{Dominators, NONE, Rows};

/// The nodes that each node dominates immediately, in ascending order.
pub fn children(dominators: &Dominators) -> Rows {
    let nodes = (0..dominators.parent.len() as u32).rev();
    let pairs = nodes.filter_map(|node| Some((dominators.parent_of(node)?, node)));
    Rows::sort(dominators.parent.len(), pairs)
}

/// The number of dominators of each node; [`NONE`] for nodes that the root does not reach.
pub fn depths(dominators: &Dominators) -> Vec<u32> {
    let mut depths = vec![NONE; dominators.parent.len()];
    for &node in &dominators.order {
        let parent = dominators.parent_of(node);
        let above = parent.map_or(NONE, |parent| depths[parent as usize]);
        // The root's is NONE + 1.
        depths[node as usize] = above.wrapping_add(1);
    }
    depths
}

/// The nearest node that dominates all reachable `nodes`, possibly one of them; [`NONE`] if the root reaches none.
pub fn nearest_common(dominators: &Dominators, nodes: &[u32]) -> u32 {
    let mut nodes = nodes.iter().filter(|node| dominators.reaches(**node));
    let Some(&first) = nodes.next() else {
        return NONE;
    };
    let mut way = vec![first];
    way.extend(dominators.ancestors(first));
    // How far up the path each visited node joins it, so that no step is taken twice.
    let mut joins: FxHashMap<u32, usize> = way.iter().copied().zip(0..).collect();
    let mut common = 0;
    let mut trail = Vec::new();
    for &node in nodes {
        let mut at = node;
        let join = loop {
            match joins.entry(at) {
                Entry::Occupied(join) => break *join.get(),
                Entry::Vacant(_) => trail.push(at),
            }
            match dominators.parent_of(at) {
                Some(parent) => at = parent,
                None => break way.len() - 1,
            }
        };
        joins.extend(trail.drain(..).map(|node| (node, join)));
        common = common.max(join);
    }
    way[common]
}

/// The dominator tree with its nodes ordered so that each subtree is contiguous.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// The position of each node, [`NONE`] if the root does not reach it.
    places: Vec<u32>,
    nodes: Vec<u32>,
    /// The end of the subtree of each of `nodes`.
    ends: Vec<u32>,
}

impl Tree {
    /// Orders the nodes.
    pub fn of(dominators: &Dominators) -> Tree {
        let order = &dominators.order;
        // Counts nodes by their positions in `order`, which is close to the final order, so that memory accesses are local.
        // Indexing by node number would scatter them.
        let mut places = vec![NONE; dominators.parent.len()];
        for (&node, index) in order.iter().zip(0..) {
            places[node as usize] = index;
        }
        let above = |node: &u32| dominators.parent_of(*node).map(|above| places[above as usize]);
        let above: Vec<u32> = order.iter().map(|node| above(node).unwrap_or(NONE)).collect();
        let mut sizes = vec![1_u32; order.len()];
        for (index, &above) in above.iter().enumerate().rev() {
            let size = sizes[index];
            if let Some(sum) = sizes.get_mut(above as usize) {
                *sum += size;
            }
        }
        // While positions are assigned: the position of each node's next child.
        let mut next = vec![0_u32; order.len()];
        let mut nodes = vec![NONE; order.len()];
        let mut ends = vec![0_u32; order.len()];
        for (index, (&node, &above)) in order.iter().zip(&above).enumerate() {
            let place = match next.get_mut(above as usize) {
                Some(next) => {
                    let place = *next;
                    *next += sizes[index];
                    place
                }
                None => 0,
            };
            next[index] = place + 1;
            nodes[place as usize] = node;
            ends[place as usize] = place + sizes[index];
            places[node as usize] = place;
        }
        Tree { places, nodes, ends }
    }

    /// The nodes in order, each before the nodes that it dominates.
    pub fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// The end of the subtree of each of [`Tree::nodes`].
    pub fn ends(&self) -> &[u32] {
        &self.ends
    }

    /// The position of a node in [`Tree::nodes`].
    #[inline]
    pub fn place(&self, node: u32) -> Option<u32> {
        let place = *self.places.get(node as usize)?;
        (place != NONE).then_some(place)
    }

    /// The number of nodes in the subtree of a node, including itself; 0 if the root does not reach it.
    #[inline]
    pub fn subtree_size(&self, node: u32) -> u32 {
        let size = |place: u32| self.ends[place as usize] - place;
        self.place(node).map_or(0, size)
    }

    /// The end of the subtree of a node; 0 if the root does not reach it.
    #[inline]
    pub fn subtree_end(&self, node: u32) -> u32 {
        self.place(node).map_or(0, |place| self.ends[place as usize])
    }

    /// Bytes in memory.
    pub fn memsize(&self) -> usize {
        [&self.places, &self.nodes, &self.ends]
            .iter()
            .map(|column| size_of_val(column.as_slice()))
            .sum()
    }

    /// The nodes that a node dominates immediately; none if the root does not reach it.
    pub fn children(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let (mut at, end) = match self.place(node) {
            Some(place) => (place + 1, self.ends[place as usize]),
            None => (0, 0),
        };
        std::iter::from_fn(move || {
            let place = (at < end).then_some(at as usize)?;
            at = self.ends[place];
            Some(self.nodes[place])
        })
    }

    /// The nodes in the subtree of a node, starting with itself.
    pub fn subtree(&self, node: u32) -> &[u32] {
        let start = self.place(node).unwrap_or(0) as usize;
        &self.nodes[start..self.subtree_end(node) as usize]
    }

    /// Whether `node` is in the subtree of `top`, `top` included.
    #[inline]
    pub fn contains(&self, top: u32, node: u32) -> bool {
        match (self.place(top), self.place(node)) {
            (Some(start), Some(place)) => (start..self.ends[start as usize]).contains(&place),
            _ => false,
        }
    }
}

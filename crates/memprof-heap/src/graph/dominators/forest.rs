use std::hint::black_box;

/// The processed nodes, linked to their parents in the depth-first tree, with path compression.
pub struct Forest {
    nodes: Vec<Node>,
}

#[derive(Clone, Copy)]
struct Node {
    /// An ancestor.
    above: u32,
    /// The lowest semidominator from this node up to, but without, the one above.
    least: u32,
}

impl Forest {
    /// All nodes, not linked yet.
    pub fn new(parent: &[u32]) -> Forest {
        let nodes = parent.iter().map(|&above| Node { above, least: above });
        Forest { nodes: nodes.collect() }
    }

    /// Links a node whose semidominator is now known. Nodes need no mark, as all nodes with higher numbers are already linked.
    #[inline]
    pub fn link(&mut self, node: u32, semi: u32) {
        self.nodes[node as usize].least = semi;
    }

    /// Prefetches a node.
    #[inline]
    pub fn fetch(&self, node: u32) {
        black_box(self.nodes[node as usize].above);
    }

    /// The candidate for the semidominator of `node`, the next to be linked, from an edge from `source`: the source itself, or
    /// the lowest semidominator among its linked ancestors.
    #[inline]
    pub fn least(&mut self, source: u32, node: u32) -> u32 {
        if source <= node {
            return source;
        }
        let mut at = source as usize;
        let mut this = self.nodes[at];
        let mut least = this.least;
        // Path halving: links every second node on the path to its grandparent, so that no stack is needed.
        while this.above > node {
            let above = self.nodes[this.above as usize];
            this.least = this.least.min(above.least);
            least = least.min(this.least);
            if above.above <= node {
                break;
            }
            this.above = above.above;
            self.nodes[at] = this;
            at = this.above as usize;
            this = self.nodes[at];
            least = least.min(this.least);
        }
        least
    }
}

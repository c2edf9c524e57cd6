//! Nodes of `std::map` and `std::set`: red-black trees.

use super::Container;
use super::finder::{Finder, Place};
use crate::blocks::Block;

/// Offsets of a node's fields.
struct Layout {
    colour: u64,
    /// Bits of the colour: the rest of the word may be anything.
    colour_bits: u64,
    parent: u64,
    left: u64,
    right: u64,
}

const LIBSTDCXX: Layout =
    Layout { colour: 0, colour_bits: 0xffff_ffff, parent: 8, left: 16, right: 24 };
const LIBCXX: Layout = Layout { colour: 24, colour_bits: 0xff, parent: 16, left: 0, right: 8 };
/// Four words and an element.
const SMALLEST_NODE: u64 = 40;

/// The contents of a header.
struct Header {
    /// The parent of the root.
    address: u64,
    root: u64,
    leftmost: u64,
    count: u64,
}

impl Finder<'_> {
    /// `{red, root, leftmost, rightmost, number of elements}` in libstdc++, `{leftmost, root, number of elements}` in libc++,
    /// identified by the root.
    pub(super) fn tree(&mut self, place: &Place<'_>, root: Block) {
        let (Some(before), Some(behind)) = (place.word(-1), place.word(1)) else {
            return;
        };
        if root.size < SMALLEST_NODE {
            return;
        }
        let header =
            |address, leftmost, count| Header { address, root: root.address, leftmost, count };
        if before & LIBSTDCXX.colour_bits == 0 {
            if let (Some(rightmost), Some(count)) = (place.word(2), place.word(3)) {
                if let Some(address) = place.at.checked_sub(8) {
                    let header = header(address, behind, count);
                    self.tree_of(&header, Some(rightmost), &LIBSTDCXX);
                }
            }
        }
        self.tree_of(&header(place.at, before, behind), None, &LIBCXX);
    }

    fn tree_of(&mut self, header: &Header, rightmost: Option<u64>, layout: &Layout) {
        let ends = [Some((header.leftmost, layout.left)), rightmost.map(|at| (at, layout.right))];
        let is_node = |finder: &Self, at| finder.used_at(at).is_some();
        if !self.is_count(header.count)
            || !(ends.iter().flatten()).all(|(end, _)| is_node(self, *end))
            || self.word(header.root, layout.parent) != Some(header.address)
            || !(ends.into_iter().flatten()).all(|(end, child)| self.word(end, child) == Some(0))
        {
            return;
        }
        if let Some(nodes) = self.nodes_of_tree(header, layout) {
            self.found_nodes(&nodes, Container::MapOrSetNode);
        }
    }

    /// All nodes, if parents and children agree, and their number is that in the header.
    fn nodes_of_tree(&mut self, header: &Header, layout: &Layout) -> Option<Vec<u32>> {
        let mut nodes = Vec::new();
        let mut next = vec![(header.root, header.address)];
        while let Some((at, parent)) = next.pop() {
            let (number, block) = self.used_at(at)?;
            let colour = self.word(at, layout.colour)? & layout.colour_bits;
            let fits = block.size >= SMALLEST_NODE && colour <= 1;
            let is_left = nodes.len() as u64 == header.count;
            if !fits || is_left || self.word(at, layout.parent)? != parent || !self.step() {
                return None;
            }
            nodes.push(number);
            for child in [layout.left, layout.right] {
                match self.word(at, child)? {
                    0 => {}
                    child => next.push((child, at)),
                }
            }
        }
        (nodes.len() as u64 == header.count).then_some(nodes)
    }
}

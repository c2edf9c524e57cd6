//! The Ruby object that owns each block.

use std::ops::Range;

use memprof_heap::graph::{BitSet, NONE};

use crate::references::References;

/// The node of the object that owns each block, or [`NONE`]: an object that references it, else the one that reaches it through
/// the fewest blocks; among several the one at the lowest address. A reference to the inside of a block counts only if no
/// reference to its beginning leads to an object: the owner has the address returned by malloc, while others may reference a
/// part, as a substring does. Garbage owns only what no object in `anchored` reaches. Blocks in `native` that are reached through
/// blocks, or only referenced inside, have no owner, as variables of C code lead to them, too. The stack of the VM's main thread is
/// one.
#[must_use]
pub fn owners(references: &References, native: &BitSet, anchored: &BitSet) -> Vec<u32> {
    let edges = |node| references.edges(node);
    let native = |block| native.contains(block);
    owners_of(references.slots(), edges, native, |slot| anchored.contains(slot))
}

/// `edges` returns the targets of a node, and whether each is referenced only inside.
fn owners_of<E: Iterator<Item = (u32, bool)>>(
    slots: Range<u32>,
    edges: impl Fn(u32) -> E,
    native: impl Fn(u32) -> bool,
    living: impl Fn(u32) -> bool,
) -> Vec<u32> {
    let mut owners = vec![NONE; slots.start as usize];
    for (is_living, inner_too) in [(true, false), (true, true), (false, false), (false, true)] {
        let targets = |node| {
            edges(node).filter(|(target, inner)| *target < slots.start && (inner_too || !inner))
        };
        // Blocks already owned reference others inside.
        let owned = (0..slots.start).filter(|block| owners[*block as usize] != NONE);
        let mut next: Vec<u32> = owned.collect();
        for slot in slots.clone().filter(|slot| living(*slot) == is_living) {
            for (target, inner) in targets(slot) {
                if owners[target as usize] == NONE && !(inner && native(target)) {
                    owners[target as usize] = slot;
                    next.push(target);
                }
            }
        }
        while !next.is_empty() {
            for block in std::mem::take(&mut next) {
                let owner = owners[block as usize];
                for (target, _) in targets(block) {
                    if owners[target as usize] == NONE && !native(target) {
                        owners[target as usize] = owner;
                        next.push(target);
                    }
                }
            }
        }
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The owners of four blocks, followed by objects, with edges by node.
    fn owners_by(edges: &[(u32, u32, bool)], native: &[u32]) -> Vec<u32> {
        owners_beside(&[], edges, native)
    }

    fn owners_beside(garbage: &[u32], edges: &[(u32, u32, bool)], native: &[u32]) -> Vec<u32> {
        let of = |node| {
            let row = edges.iter().filter(move |(from, ..)| *from == node);
            row.map(|(_, target, inner)| (*target, *inner))
        };
        owners_of(4..8, of, |block| native.contains(&block), |slot| !garbage.contains(&slot))
    }

    #[test]
    fn a_block_belongs_to_who_references_its_beginning() {
        // Object 4 references a part of block 0, object 5 its beginning.
        assert_eq!(owners_by(&[(4, 0, true), (5, 0, false)], &[])[0], 5);
        // Also if the beginning is reached through a block.
        let chain = [(4, 1, true), (5, 0, false), (0, 1, false)];
        assert_eq!(owners_by(&chain, &[])[..2], [5, 5]);
        // If nothing references its beginning, inner references count, and so do the block's own references.
        let inner = [(6, 2, true), (2, 3, false), (7, 0, false)];
        assert_eq!(owners_by(&inner, &[]), [7, NONE, 6, 6]);
        let inside_of_owned = [(5, 0, false), (0, 1, true)];
        assert_eq!(owners_by(&inside_of_owned, &[])[..2], [5, 5]);
    }

    #[test]
    fn the_nearest_object_at_the_lowest_address_owns_what_is_not_native() {
        let edges = [(4, 0, false), (0, 1, false), (5, 1, false), (6, 1, false)];
        assert_eq!(owners_by(&edges, &[1])[..2], [4, 5]);
        assert_eq!(owners_by(&edges[..2], &[1])[..2], [4, NONE]);
    }

    #[test]
    fn a_place_inside_of_a_native_block_does_not_make_it_an_objects() {
        // 0 is a VM stack, and 4 a throw object, which references the frame that catches it.
        assert_eq!(owners_by(&[(4, 0, true)], &[0])[0], NONE);
        assert_eq!(owners_by(&[(4, 0, true)], &[])[0], 4);
        assert_eq!(owners_by(&[(4, 0, true), (5, 0, false)], &[0])[0], 5);
    }

    #[test]
    fn garbage_owns_what_nothing_else_reaches() {
        let edges = [(4, 0, false), (4, 1, false), (0, 2, false), (5, 3, false), (3, 0, true)];
        assert_eq!(owners_beside(&[4], &edges, &[]), [5, 4, 5, 5]);
        assert_eq!(owners_beside(&[4, 5], &edges, &[]), [4, 4, 4, 5]);
    }
}

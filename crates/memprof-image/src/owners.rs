//! The object of Ruby that each block belongs to.

use memprof_heap::graph::{BitSet, NONE};

use crate::references::References;

/// The node of the object that owns each block, or [`NONE`]: one that references it, else the one from which it is reached
/// through the fewest blocks; of several the one at the lowest address. What is reached through blocks has none if it is in
/// `native`: variables of C code lead there, too.
#[must_use]
pub fn owners(references: &References, native: &BitSet) -> Vec<u32> {
    let slots = references.slots();
    let graph = references.graph();
    let mut owners = vec![NONE; slots.start as usize];
    let mut next: Vec<u32> = Vec::new();
    for slot in slots.clone() {
        for target in graph.edges(slot).filter(|target| *target < slots.start) {
            if owners[target as usize] == NONE {
                owners[target as usize] = slot;
                next.push(target);
            }
        }
    }
    while !next.is_empty() {
        for block in std::mem::take(&mut next) {
            let owner = owners[block as usize];
            for target in graph.edges(block).filter(|target| *target < slots.start) {
                if owners[target as usize] == NONE && !native.contains(target) {
                    owners[target as usize] = owner;
                    next.push(target);
                }
            }
        }
    }
    owners
}

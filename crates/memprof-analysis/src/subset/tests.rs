//! Use cases of memdump's users, and slow but simple algorithms on many small heaps.

mod cleanup;
mod counts;
mod diff;
mod files;
mod interface;
mod paths;
mod sets;
mod toy;

use super::sample_subsets::{Naive, Random, random_heap};
use super::{Name, Subset};
use memprof_heap::Heap;

/// Number of heaps that the tests look at.
const HEAPS: u64 = 400;

/// Does something with many heaps.
fn each_heap(mut test: impl FnMut(&mut Random, &Heap)) {
    for seed in 1..=HEAPS {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let heap = random_heap(&mut random);
        test(&mut random, &heap);
    }
}

fn all(heap: &Heap) -> Subset<&Heap> {
    Subset::all(heap).expect("in memory")
}

fn named(name: &str) -> Name {
    Name::parse(name).expect("a name")
}

/// Some of the members.
fn some<'h>(random: &mut Random, set: &Subset<&'h Heap>) -> Subset<&'h Heap> {
    let share = 1 + random.below(5);
    set.filter(|_| random.one_in(share))
}

fn naive(set: &Subset<&Heap>) -> Naive {
    set.iter().map(|node| (node, set.children(node).expect("in memory"))).collect()
}

fn nodes(set: &Subset<&Heap>) -> Vec<u32> {
    set.iter().collect()
}

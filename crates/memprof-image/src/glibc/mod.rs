//! glibc's heap: arenas and their chunks, used or free.

mod arenas;
mod bins;
mod chunks;
mod free_lists;

use std::ops::Range;

use serde::Serialize;

use crate::blocks::{Block, Blocks, Kind};
use crate::image::Image;
use crate::questions::Address;
use crate::ranges;

pub use arenas::Arena;
use chunks::Found;

/// A damaged place in the heap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Corruption {
    /// The damaged part: `size`, or the list.
    pub what: &'static str,
    /// The address.
    pub address: Address,
}

impl Corruption {
    pub(crate) fn new(what: &'static str, address: u64) -> Corruption {
        Corruption { what, address: Address(address) }
    }
}

/// Maximum number of damaged places reported.
const MAX_CORRUPTIONS: usize = 1000;

/// The heap of a process that uses glibc's malloc.
#[derive(Debug, Default)]
pub struct GlibcHeap {
    /// Arenas, the main one first.
    pub arenas: Vec<Arena>,
    /// Blocks in arenas, and blocks with a mapping of their own.
    pub blocks: Blocks,
    /// Mappings of single blocks.
    pub mapped: Vec<Range<u64>>,
    /// Free bytes at the end of each arena.
    pub tops: Vec<u64>,
    /// Damaged places.
    pub corruptions: Vec<Corruption>,
    /// Bytes of heaps without known contents.
    pub skipped: u64,
}

impl GlibcHeap {
    /// Reads the heap. `taken` is memory that does not belong to malloc; without arenas there are no blocks.
    #[must_use]
    pub fn read(image: &Image, taken: &[Range<u64>]) -> GlibcHeap {
        let mut heap = GlibcHeap { arenas: arenas::arenas(image), ..GlibcHeap::default() };
        if heap.arenas.is_empty() {
            return heap;
        }
        for number in 0..heap.arenas.len() {
            heap.read_arena(image, number);
        }
        let claimed = ranges::sorted(heap.heaps().chain(taken.iter().cloned()).collect());
        let writable = image.writable_runs(|segment| segment.file.is_none());
        for range in ranges::without(&writable, &claimed) {
            chunks::mapped(image, range, |address, size, mapping| {
                heap.blocks.push(Block { address, size, kind: Kind::Used });
                heap.mapped.push(mapping);
            });
        }
        heap.blocks.sort();
        let mut corruptions = std::mem::take(&mut heap.corruptions);
        free_lists::mark(image, &heap.arenas, &mut heap.blocks, &mut corruptions);
        bins::check(image, &heap.arenas, &heap.blocks, &mut corruptions);
        corruptions.truncate(MAX_CORRUPTIONS);
        heap.corruptions = corruptions;
        heap
    }

    /// Memory of arenas.
    pub fn heaps(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.arenas.iter().flat_map(|arena| arena.heaps.iter().cloned())
    }

    fn read_arena(&mut self, image: &Image, number: usize) {
        let mut top = 0;
        let arena = &self.arenas[number];
        for heap in &arena.heaps {
            chunks::walk(image, heap, arena.top, |found| match found {
                Found::Block(address, size, used) => self.blocks.push(Block {
                    address,
                    size,
                    kind: if used { Kind::Used } else { Kind::Free },
                }),
                Found::Top(size) => top = size,
                Found::Skipped(bytes) => self.skipped += bytes,
                Found::Corrupt(address) if self.corruptions.len() < MAX_CORRUPTIONS => {
                    self.corruptions.push(Corruption::new("size", address));
                }
                Found::Corrupt(..) => {}
            });
        }
        self.tops.push(top);
    }
}

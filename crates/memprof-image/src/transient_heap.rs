//! Contents of young arrays, hashes, structs and objects in Ruby 3.1 and 3.2: blocks of their own, which are used again
//! and again and never erased. What no object has any more anchors nothing.

use std::ops::Range;

use crate::image::{Image, WORD};

/// Blocks lie at multiples of their size.
const BLOCK: u64 = 32 << 10;
/// What they begin with: 16-bit numbers, of which the first one is how many bytes behind this are in use; the next block.
const HEADER: u64 = 2 * WORD;
/// What each piece in a block begins with.
const MAGIC: u64 = 0xfeab;

/// The parts of such blocks that are not in use.
pub fn unused(image: &Image, ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut words = image.words(1 << 16);
    let mut found = Vec::new();
    for range in ranges {
        let mut block = range.start.next_multiple_of(BLOCK);
        while block + BLOCK <= range.end {
            let [Some(numbers), Some(next), Some(first)] =
                [0, WORD, HEADER].map(|offset| words.at(block + offset))
            else {
                break;
            };
            let in_use = numbers & 0xffff;
            if first & 0xffff == MAGIC && next % BLOCK == 0 && in_use <= BLOCK - HEADER {
                found.push(block + HEADER + in_use.next_multiple_of(WORD)..block + BLOCK);
            }
            block += BLOCK;
        }
    }
    found.retain(|range| !range.is_empty());
    found
}

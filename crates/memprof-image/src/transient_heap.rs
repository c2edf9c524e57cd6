//! Contents of young arrays, hashes, structs and objects in Ruby 3.1 and 3.2: separate blocks, which are reused and never erased.
//! Contents that no longer belong to an object do not anchor anything.

use std::ops::Range;

use crate::image::{Image, WORD};

/// Blocks are aligned to their size.
const BLOCK: u64 = 32 << 10;
/// The header of a block: 16-bit numbers, of which the first is the number of used bytes after the header; then the next block.
const HEADER: u64 = 2 * WORD;
/// The first word of each piece in a block.
const MAGIC: u64 = 0xfeab;

/// The unused parts of these blocks.
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

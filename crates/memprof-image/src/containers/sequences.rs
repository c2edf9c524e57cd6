//! The memory of strings and vectors, which has no pointers back: only the numbers in the header identify it.

use super::Container;
use super::finder::{Finder, Place, fits};
use crate::blocks::Block;

/// The inline capacity of a libstdc++ string, without the terminating zero.
const INLINE: u64 = 15;
/// The smallest block that libc++ allocates for a string.
const LONG: u64 = 32;

impl Finder<'_> {
    /// `{begin, size, capacity}` in libstdc++, `{allocated | 1, size, begin}` in libc++. The text is not empty and ends with a
    /// zero, and the block has the size that the capacity needs.
    pub(super) fn string(&mut self, place: &Place<'_>, number: u32, block: Block) {
        if place.within == Some(number) {
            return;
        }
        let (before, behind) = (place.word(-1), place.word(1));
        if let (Some(size), Some(capacity)) = (behind, place.word(2)) {
            // In Rust, the capacity precedes the address.
            let is_other = before.is_some_and(|word| (size..=block.size).contains(&word));
            // The inline buffer of a string takes another word.
            let is_string = place.word(3).is_some();
            let is_possible =
                is_string && capacity > INLINE && (size..block.size).contains(&capacity);
            if is_possible
                && !is_other
                && fits(block.size, capacity + 1)
                && self.is_text(block, size)
            {
                self.found(number, Container::LongString);
                return;
            }
        }
        if let (Some(allocated), Some(size)) = (place.word(-2), before) {
            let is_possible = allocated % 16 == 1 && allocated > LONG && size < allocated - 1;
            if is_possible && fits(block.size, allocated - 1) && self.is_text(block, size) {
                self.found(number, Container::LongString);
            }
        }
    }

    fn is_text(&mut self, block: Block, size: u64) -> bool {
        let byte = |finder: &mut Self, offset: u64| {
            let word = finder.word(block.address, offset & !7)?;
            Some(word.to_le_bytes()[(offset & 7) as usize])
        };
        let last = size.checked_sub(1).and_then(|last| byte(self, last));
        last.is_some_and(|last| last != 0) && byte(self, size) == Some(0)
    }

    /// `{begin, end, end of the capacity}`. Further adjacent pointers into the block indicate a C buffer.
    pub(super) fn vector(&mut self, place: &Place<'_>, number: u32, block: Block) {
        let (Some(end), Some(limit)) = (place.word(1), place.word(2)) else {
            return;
        };
        let begin = block.address;
        if place.within == Some(number) || !(begin <= end && end <= limit && begin < limit) {
            return;
        }
        let is_inside =
            |word: Option<u64>| word.is_some_and(|word| (begin..=limit).contains(&word));
        let is_other = is_inside(place.word(-1)) || is_inside(place.word(3));
        if !is_other && fits(block.size, limit - begin) {
            self.found(number, Container::VectorBody);
        }
    }
}

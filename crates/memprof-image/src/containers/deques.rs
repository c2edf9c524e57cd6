//! The array and the blocks of `std::deque` in libstdc++: `{array, its size, start, finish}`. `start` and `finish` are `{element,
//! begin of its block, end of its block, place of the block in the array}`.

use super::Container;
use super::finder::{Finder, Place, fits};
use crate::blocks::Block;
use crate::image::WORD;

/// The smallest array.
const PLACES: u64 = 8;
/// Every block exceeds this size: it has as many elements as fit into 512 bytes, at least one.
const HALF: u64 = 256;

/// An end of a deque.
struct Iterator {
    element: u64,
    first: u64,
    end: u64,
    place: u64,
}

impl Iterator {
    fn at(place: &Place<'_>, index: isize) -> Option<Iterator> {
        Some(Iterator {
            element: place.word(index)?,
            first: place.word(index + 1)?,
            end: place.word(index + 2)?,
            place: place.word(index + 3)?,
        })
    }

    /// Bytes of a block, if the iterator is valid.
    fn size(&self) -> Option<u64> {
        let is_inside = self.first <= self.element && self.element <= self.end;
        let size = self.end.checked_sub(self.first)?;
        (is_inside && size > HALF).then_some(size)
    }
}

impl Finder<'_> {
    /// Checks for a header that contains the address of its array.
    pub(super) fn deque(&mut self, place: &Place<'_>, number: u32, array: Block) {
        if place.within == Some(number) {
            return;
        }
        if let Some(blocks) = self.blocks_of_deque(place, array) {
            self.found(number, Container::DequeMap);
            for block in blocks {
                self.found(block, Container::DequeBlock);
            }
        }
    }

    /// All blocks from the start to the finish; each has the size that its elements need.
    fn blocks_of_deque(&mut self, place: &Place<'_>, array: Block) -> Option<Vec<u32>> {
        let places = place.word(1)?;
        let bytes = places.checked_mul(WORD)?;
        if places < PLACES || bytes > array.size || !fits(array.size, bytes) {
            return None;
        }
        let (start, finish) = (Iterator::at(place, 2)?, Iterator::at(place, 6)?);
        let size = start.size()?;
        let behind = array.address.checked_add(bytes)?;
        let in_array = array.address..behind;
        let is_header = finish.size()? == size
            && in_array.contains(&start.place)
            && in_array.contains(&finish.place)
            && (start.place | finish.place) % WORD == 0
            && self.word(start.place, 0)? == start.first
            && self.word(finish.place, 0)? == finish.first;
        if !is_header {
            return None;
        }
        let mut blocks = Vec::new();
        for at in (start.place..=finish.place).step_by(WORD as usize) {
            let address = self.word(at, 0)?;
            let (number, block) = self.used_at(address)?;
            if !fits(block.size, size) || !self.step() {
                return None;
            }
            blocks.push(number);
        }
        (!blocks.is_empty()).then_some(blocks)
    }
}

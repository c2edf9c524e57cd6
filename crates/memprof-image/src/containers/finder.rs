//! Finds headers of containers in one pass over the memory that may contain them.

use std::ops::Range;

use super::Container;
use crate::analysis::Analysis;
use crate::blocks::{Block, Kind};
use crate::image::{GLIMPSE, WORD, Words};
use crate::references::{Pieces, References};

/// Words of a header before the address that identifies it, and words from that address on.
const BEFORE: usize = 2;
const FROM: usize = 10;
/// The smallest block that malloc returns.
const SMALLEST: u64 = 24;
/// Requests of this size may get a mapping of their own, of whole pages.
const LARGE: u64 = 1 << 17;
const LARGEST_PAGE: u64 = 1 << 16;
/// Marks a block visited as a member of a ring.
const SEEN: u8 = 0x80;

/// A word with the address of a used block, and the words around it.
pub(super) struct Place<'w> {
    /// The address of the word.
    pub at: u64,
    /// The block that contains the word, if any.
    pub within: Option<u32>,
    /// Whether an object references that block, and Strings, Arrays and the like have no containers.
    pub is_owned: bool,
    words: &'w [u8],
    index: usize,
}

impl Place<'_> {
    /// The word at a distance, in words; None if it is outside of this memory.
    pub fn word(&self, distance: isize) -> Option<u64> {
        let index = self.index.checked_add_signed(distance)?;
        let start = index.checked_mul(WORD as usize)?;
        let bytes = self.words.get(start..start.checked_add(WORD as usize)?)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }
}

/// The containers found so far.
pub(super) struct Finder<'a> {
    analysis: &'a Analysis,
    references: &'a References,
    words: Words<'a>,
    kinds: Vec<u8>,
    /// Remaining element visits: damaged memory could lead through the same ones again and again.
    steps: usize,
}

impl<'a> Finder<'a> {
    pub fn new(analysis: &'a Analysis) -> Finder<'a> {
        let blocks = analysis.heap.blocks.len();
        Finder {
            analysis,
            references: analysis.references(),
            words: analysis.image.words(GLIMPSE),
            kinds: vec![0; blocks],
            steps: blocks.saturating_mul(16).saturating_add(1 << 16),
        }
    }

    /// The role of each block.
    pub fn kinds(mut self) -> Vec<u8> {
        let analysis = self.analysis;
        let mut pieces = Pieces::new(&analysis.image);
        for (number, block) in (0..).zip(analysis.heap.blocks.iter()) {
            if block.kind == Kind::Used && self.may_have_headers(number) {
                let is_owned = self.is_owned(number);
                self.scan(&mut pieces, block.address..block.end(), Some(number), is_owned);
            }
        }
        let map = &analysis.map;
        for range in map.statics.iter().chain(&map.stacks).chain(&map.external) {
            self.scan(&mut pieces, range.clone(), None, false);
        }
        self.kinds.iter_mut().for_each(|kind| *kind &= !SEEN);
        self.kinds
    }

    /// Whether a block references the beginning of another one.
    fn may_have_headers(&self, number: u32) -> bool {
        let blocks = self.references.slots().start;
        (self.references.edges(number)).any(|(target, inner)| target < blocks && !inner)
    }

    /// Whether a block may be the buffer of a String, an Array or the like.
    fn is_owned(&self, number: u32) -> bool {
        (self.analysis.direct_owner(number)).is_some_and(|object| object.name() != "DATA")
    }

    fn scan(
        &mut self,
        pieces: &mut Pieces<'_>,
        range: Range<u64>,
        within: Option<u32>,
        is_owned: bool,
    ) {
        let Some(mut start) = range.start.checked_next_multiple_of(WORD) else {
            return;
        };
        let mut first = 0;
        while start < range.end {
            let words = pieces.from(start, range.end);
            let count = words.len() / WORD as usize;
            let is_last = range.end - start < (count as u64 + 1) * WORD;
            let behind = if is_last { count } else { count.saturating_sub(FROM) };
            for index in first..behind {
                let at = start + index as u64 * WORD;
                let place = Place { at, within, is_owned, words, index };
                if let Some((number, block)) = place.word(0).and_then(|word| self.used_at(word)) {
                    self.look(&place, number, block);
                }
            }
            if is_last || behind <= first.max(BEFORE) {
                break;
            }
            start += (behind - BEFORE) as u64 * WORD;
            first = BEFORE;
        }
    }

    fn look(&mut self, place: &Place<'_>, number: u32, block: Block) {
        if !place.is_owned {
            self.string(place, number, block);
            self.vector(place, number, block);
        }
        self.list(place, number);
        self.tree(place, block);
        self.hash_table(place, number, block);
        self.deque(place, number, block);
    }

    /// The used block that begins at an address.
    #[inline]
    pub fn used_at(&self, address: u64) -> Option<(u32, Block)> {
        // The alignment of glibc's blocks.
        if address == 0 || address % 16 != 0 {
            return None;
        }
        let (blocks, ruby) = (&self.analysis.heap.blocks, &self.analysis.ruby);
        let number = self.references.node_at(blocks, ruby, address)?;
        let block = blocks.get(number)?;
        let is_used = block.address == address && block.kind == Kind::Used;
        is_used.then_some((number, block))
    }

    /// The address of a block.
    pub fn address(&self, number: u32) -> Option<u64> {
        Some(self.analysis.block(number)?.address)
    }

    /// The word at an offset from an address.
    pub fn word(&mut self, address: u64, offset: u64) -> Option<u64> {
        self.words.at(address.checked_add(offset)?)
    }

    /// Whether so many elements are possible, as each of them has a block.
    pub fn is_count(&self, count: u64) -> bool {
        (1..=self.kinds.len() as u64).contains(&count)
    }

    /// Whether another element may be visited.
    pub fn step(&mut self) -> bool {
        self.steps = self.steps.saturating_sub(1);
        self.steps > 0
    }

    /// Marks a block as a member of a ring; returns whether it was marked before.
    pub fn see(&mut self, number: u32) -> bool {
        let Some(kind) = self.kinds.get_mut(number as usize) else {
            return true;
        };
        let seen = *kind & SEEN != 0;
        *kind |= SEEN;
        seen
    }

    /// Whether a block is marked as a member of a ring.
    pub fn is_seen(&self, number: u32) -> bool {
        (self.kinds.get(number as usize)).is_none_or(|kind| kind & SEEN != 0)
    }

    /// Sets the role of a block. The role with more evidence wins.
    pub fn found(&mut self, number: u32, container: Container) {
        if let Some(kind) = self.kinds.get_mut(number as usize) {
            *kind = *kind & SEEN | (*kind & !SEEN).max(container as u8);
        }
    }

    /// The same for nodes, which must have the same size.
    pub fn found_nodes(&mut self, nodes: &[u32], container: Container) {
        let blocks = &self.analysis.heap.blocks;
        let sizes = || nodes.iter().filter_map(|node| blocks.get(*node));
        let smallest = sizes().map(|block| block.size).min().unwrap_or(0);
        if sizes().any(|block| block.size - smallest > 16) {
            return;
        }
        for node in nodes {
            self.found(*node, container);
        }
    }
}

/// Whether glibc returns a block of this size for a request: rounded up to 16 bytes with the word for its size, possibly with the
/// remainder of a split free block.
pub(super) fn fits(size: u64, request: u64) -> bool {
    let Some(rounded) =
        (request.checked_add(WORD)).and_then(|all| all.checked_next_multiple_of(16))
    else {
        return false;
    };
    let usable = (rounded - WORD).max(SMALLEST);
    let more = size.checked_sub(usable);
    matches!(more, Some(0 | 16))
        || size >= LARGE && (size.checked_sub(request)).is_some_and(|more| more <= LARGEST_PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_fit_requests_as_glibc_rounds_them() {
        assert!(fits(24, 1) && fits(24, 24) && fits(40, 24) && fits(40, 25));
        assert!(!fits(24, 25) && !fits(56, 24) && !fits(0, 0) && !fits(24, u64::MAX));
        assert!(fits(200_688, 200_000) && !fits(400_000, 200_000));
    }

    #[test]
    fn a_place_ends_where_its_memory_does() {
        let words: Vec<u8> = (1..=3u64).flat_map(u64::to_le_bytes).collect();
        let place = Place { at: 8, within: None, is_owned: false, words: &words, index: 1 };
        let around = [-2, -1, 0, 1, 2].map(|distance| place.word(distance));
        assert_eq!(around, [None, Some(1), Some(2), Some(3), None]);
    }
}

//! The blocks of an allocator, by address.

use serde::Serialize;

/// The state of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Kind {
    /// Allocated by the program.
    Used,
    /// Freed.
    Free,
    /// Freed, but cached by its thread for the next allocation.
    ThreadCached,
}

const KINDS: [Kind; 3] = [Kind::Used, Kind::Free, Kind::ThreadCached];
const KIND_SHIFT: u32 = 56;

/// A block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The address that `malloc` returned.
    pub address: u64,
    /// Usable bytes.
    pub size: u64,
    /// The state of the block.
    pub kind: Kind,
}

impl Block {
    /// The address of its end.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.address + self.size
    }
}

/// Blocks in order of address, 16 bytes each.
#[derive(Debug, Default)]
pub struct Blocks {
    /// The address, and the size with the kind in the upper byte.
    rows: Vec<(u64, u64)>,
}

impl Blocks {
    pub(crate) fn push(&mut self, block: Block) {
        let size = block.size & ((1 << KIND_SHIFT) - 1);
        let kind = u64::from(block.kind as u8) << KIND_SHIFT;
        self.rows.push((block.address, size | kind));
    }

    /// Call it after adding all blocks.
    pub(crate) fn sort(&mut self) {
        self.rows.sort_unstable();
        self.rows.dedup_by_key(|row| row.0);
    }

    /// The number of blocks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no blocks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The block with a number.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<Block> {
        self.rows.get(number as usize).map(|row| block(*row))
    }

    /// All blocks.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Block> + '_ {
        self.rows.iter().map(|row| block(*row))
    }

    pub(crate) fn set_kind(&mut self, number: u32, kind: Kind) {
        if let Some(before) = self.get(number) {
            let size = before.size | (u64::from(kind as u8) << KIND_SHIFT);
            self.rows[number as usize].1 = size;
        }
    }

    /// The number of the block that begins at an address.
    #[must_use]
    pub fn at(&self, address: u64) -> Option<u32> {
        let number = self.rows.binary_search_by_key(&address, |row| row.0).ok()?;
        Some(number as u32)
    }

    /// The number of the block that contains an address.
    #[must_use]
    pub fn containing(&self, address: u64) -> Option<u32> {
        let after = self.rows.partition_point(|row| row.0 <= address);
        self.within(after.checked_sub(1)?, address)
    }

    /// The same, for a block in this range of numbers.
    #[inline]
    pub(crate) fn containing_of(&self, first: usize, behind: usize, address: u64) -> Option<u32> {
        let rows = self.rows.get(first..behind.min(self.rows.len()))?;
        let after = rows.partition_point(|row| row.0 <= address);
        self.within(first + after.checked_sub(1)?, address)
    }

    #[inline]
    fn within(&self, number: usize, address: u64) -> Option<u32> {
        let found = block(*self.rows.get(number)?);
        (address < found.end()).then_some(number as u32)
    }
}

fn block((address, size): (u64, u64)) -> Block {
    Block {
        address,
        size: size & ((1 << KIND_SHIFT) - 1),
        kind: KINDS[(size >> KIND_SHIFT) as usize % KINDS.len()],
    }
}

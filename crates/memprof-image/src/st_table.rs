//! Hash tables of the VM (`struct st_table`), the same since Ruby 2.4.

use std::ops::Range;

use crate::image::WORD;

/// Words of one without its entries.
pub const WORDS: usize = 7;
/// Their bytes.
pub const SIZE: u64 = WORDS as u64 * WORD;
/// Bytes of an entry: hash, key, value.
pub const ENTRY: u64 = 3 * WORD;
/// The hash of an entry that was deleted.
pub const DELETED: u64 = u64::MAX;
/// No table has so many entries: a power of two.
const MOST: u64 = 48;

/// A table that makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StTable {
    /// How many entries there are.
    pub count: u64,
    /// Where it finds them by their hashes.
    pub bins: u64,
    /// The number of the first one that was not deleted.
    pub first: u64,
    /// The number behind the last one that was used.
    pub behind: u64,
    entries: u64,
    power: u64,
}

impl StTable {
    /// The table that these words may be.
    pub fn of(words: [u64; WORDS]) -> Option<StTable> {
        let [powers, _, count, bins, first, behind, entries] = words;
        let power = powers & 0xff;
        let makes_sense = (1..MOST).contains(&power)
            && first <= behind
            && behind <= 1 << power
            && count <= behind - first
            && entries % WORD == 0
            && entries > 4096;
        makes_sense.then_some(StTable {
            count,
            bins,
            first,
            behind,
            entries,
            power,
        })
    }

    /// The memory of the entries that were used.
    pub fn range(&self) -> Range<u64> {
        self.entries..self.entries.saturating_add(self.behind * ENTRY)
    }

    /// Bytes of all entries that there is room for.
    pub fn room(&self) -> u64 {
        (1 << self.power) * ENTRY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_end_where_no_more_were_used() {
        let start = 0x7f00_0000_1000;
        // Of 16 entries 5 were used, and one of these is deleted.
        let table = StTable::of([0x0003_0204, 0x1000, 4, 0x2000, 0, 5, start]).expect("a table");
        assert_eq!(table.range(), start..start + 5 * 24);
        assert_eq!(table.room(), 16 * 24);
    }

    #[test]
    fn other_words_are_none() {
        let start = 0x7f00_0000_1000;
        let none = [
            [4, 0, 6, 0, 0, 5, start],
            [4, 0, 5, 0, 0, 17, start],
            [4, 0, 0, 0, 6, 5, start],
            [60, 0, 0, 0, 0, 0, start],
            [4, 0, 5, 0, 0, 5, start + 1],
            [0; WORDS],
        ];
        for words in none {
            assert_eq!(StTable::of(words), None, "{words:?}");
        }
    }
}

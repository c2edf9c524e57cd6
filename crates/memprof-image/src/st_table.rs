//! Hash tables of the VM (`struct st_table`), the same since Ruby 2.4.

use std::ops::Range;

use crate::image::WORD;

/// Words of a table without its entries.
pub const WORDS: usize = 7;
/// Bytes of a table without its entries.
pub const SIZE: u64 = WORDS as u64 * WORD;
/// Bytes of an entry: hash, key, value.
pub const ENTRY: u64 = 3 * WORD;
/// The hash of a deleted entry.
pub const DELETED: u64 = u64::MAX;
/// Maximum number of entries, as a power of two.
const MOST: u64 = 48;
/// Tables of at most so many entries, as a power of two, have no bins.
const SMALL: u64 = 4;

/// A valid table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StTable {
    /// The number of entries.
    pub count: u64,
    /// The address of the hash bins.
    pub bins: u64,
    /// The number of the first entry that is not deleted.
    pub first: u64,
    /// The number after the last used entry.
    pub behind: u64,
    entries: u64,
    power: u64,
}

impl StTable {
    /// The table in these words, if they are valid.
    pub fn of(words: [u64; WORDS]) -> Option<StTable> {
        let [powers, _, count, bins, first, behind, entries] = words;
        let power = powers & 0xff;
        let makes_sense = (1..MOST).contains(&power)
            && powers & 0xff_ffff == powers_of(power)
            && (power > SMALL) == (bins != 0)
            && first <= behind
            && behind <= 1 << power
            && count <= behind - first
            && entries % WORD == 0
            && entries > 4096;
        makes_sense.then_some(StTable { count, bins, first, behind, entries, power })
    }

    /// The memory of the used entries.
    pub fn range(&self) -> Range<u64> {
        self.entries..self.entries.saturating_add(self.behind * ENTRY)
    }

    /// Bytes allocated for entries.
    pub fn room(&self) -> u64 {
        (1 << self.power) * ENTRY
    }
}

/// The first three bytes: the number of entries and of bins, as powers of two, and the logarithm of a bin's bytes (`features` of
/// CRuby's st.c).
fn powers_of(power: u64) -> u64 {
    let bin = match power {
        0..8 => 0,
        8..16 => 1,
        16..32 => 2,
        _ => 3,
    };
    power | (power + 1) << 8 | bin << 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_end_where_no_more_were_used() {
        let start = 0x7f00_0000_1000;
        // 5 of 16 entries are used, one of them deleted; the table was rebuilt three times.
        let small = StTable::of([3 << 32 | 0x0504, 0x1000, 4, 0, 0, 5, start]).expect("a table");
        assert_eq!(small.range(), start..start + 5 * 24);
        assert_eq!(small.room(), 16 * 24);
        let large = StTable::of([0x01_0a09, 0x1000, 5, 0x2000, 0, 5, start]).expect("a table");
        assert_eq!(large.room(), 512 * 24);
    }

    #[test]
    fn other_words_are_none() {
        let start = 0x7f00_0000_1000;
        let none = [
            [0x0504, 0, 6, 0, 0, 5, start],
            [0x0504, 0, 5, 0, 0, 17, start],
            [0x0504, 0, 0, 0, 6, 5, start],
            [0x0304, 0, 5, 0, 0, 5, start],
            [0x0504, 0, 5, 0x2000, 0, 5, start],
            [0x01_0605, 0, 5, 0x2000, 0, 5, start],
            [0x0605, 0, 5, 0, 0, 5, start],
            [0x03_3d3c, 0, 0, 0x2000, 0, 0, start],
            [0x0504, 0, 5, 0, 0, 5, start + 1],
            [0; WORDS],
        ];
        for words in none {
            assert_eq!(StTable::of(words), None, "{words:?}");
        }
    }
}

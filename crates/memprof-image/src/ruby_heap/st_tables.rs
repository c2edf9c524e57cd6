//! Hash tables of the VM (`st_table`), the same since Ruby 2.4.

use super::RubyHeap;
use crate::image::WORD;

const COUNT: u64 = 2 * WORD;
const BINS: u64 = 3 * WORD;
const FIRST: u64 = 4 * WORD;
const BEHIND: u64 = 5 * WORD;
const ENTRIES: u64 = 6 * WORD;
pub(super) const SIZE: u64 = 7 * WORD;
const ENTRY: u64 = 3 * WORD;
/// The hash of an entry that was deleted.
const DELETED: u64 = u64::MAX;

/// A table that makes sense.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StTable {
    /// How many entries there are.
    pub count: u64,
    /// Where it finds them by their hashes.
    pub bins: u64,
    entries: u64,
    first: u64,
    behind: u64,
}

impl StTable {
    /// The memory of the entries.
    pub fn range(&self) -> std::ops::Range<u64> {
        self.entries..self.entries + self.behind * ENTRY
    }
}

impl RubyHeap<'_> {
    /// The table at an address.
    pub fn st_table(&self, address: u64) -> Option<StTable> {
        let memory = &self.memory;
        let powers = memory.word(address)?;
        let power = powers & 0xff;
        let table = StTable {
            count: memory.word(address + COUNT)?,
            bins: memory.word(address + BINS)?,
            first: memory.word(address + FIRST)?,
            behind: memory.word(address + BEHIND)?,
            entries: memory.word(address + ENTRIES)?,
        };
        let makes_sense = (1..48).contains(&power)
            && table.first <= table.behind
            && table.behind <= 1 << power
            && table.count <= table.behind - table.first
            && table.entries % WORD == 0
            && table.entries > 4096;
        let there = self
            .analysis
            .image
            .segment(table.entries)
            .is_some_and(|segment| {
                table.behind <= (segment.readable().end.saturating_sub(table.entries)) / ENTRY
            });
        (makes_sense && there).then_some(table)
    }

    /// Its keys and values, in order.
    pub fn st_entries(&self, table: StTable) -> impl Iterator<Item = (u64, u64)> + '_ {
        (table.first..table.behind).filter_map(move |number| {
            let entry = table.entries + number * ENTRY;
            let hash = self.memory.word(entry)?;
            if hash == DELETED {
                return None;
            }
            let key = self.memory.word(entry + WORD)?;
            Some((key, self.memory.word(entry + 2 * WORD)?))
        })
    }
}

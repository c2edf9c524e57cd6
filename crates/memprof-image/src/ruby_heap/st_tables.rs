//! Hash tables of objects.

use super::RubyHeap;
use crate::image::WORD;
use crate::st_table::{DELETED, ENTRY, StTable, WORDS};

impl RubyHeap<'_> {
    /// The table at an address.
    pub fn st_table(&self, address: u64) -> Option<StTable> {
        let mut words = [0; WORDS];
        for (word, number) in words.iter_mut().zip(0..) {
            *word = self.memory.word(address.checked_add(number * WORD)?)?;
        }
        let table = StTable::of(words)?;
        let entries = table.range();
        let segment = self.analysis.image.segment(entries.start)?;
        (entries.end <= segment.readable().end).then_some(table)
    }

    /// Its keys and values, in order.
    pub fn st_entries(&self, table: StTable) -> impl Iterator<Item = (u64, u64)> + '_ {
        (table.first..table.behind).filter_map(move |number| {
            let entry = table.range().start + number * ENTRY;
            let hash = self.memory.word(entry)?;
            if hash == DELETED {
                return None;
            }
            let key = self.memory.word(entry + WORD)?;
            Some((key, self.memory.word(entry + 2 * WORD)?))
        })
    }
}

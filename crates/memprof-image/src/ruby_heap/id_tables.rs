//! Tables from IDs to values (`rb_id_table`).

use super::RubyHeap;
use crate::image::WORD;

const ITEM: u64 = 2 * WORD;
/// Maximum number of names in a class.
const MOST: u64 = 1 << 24;

impl RubyHeap<'_> {
    /// ID numbers and values of the table at an address; None if it has no table.
    pub fn id_table(&self, address: u64) -> Option<Vec<(u64, u64)>> {
        let capacity = u64::from(self.memory.half(address)?);
        let count = u64::from(self.memory.half(address + 4)?);
        let used = u64::from(self.memory.half(address + 8)?);
        let items = self.memory.word(address + ITEM)?;
        let makes_sense = count > 0 && count <= used && used <= capacity && capacity < MOST;
        if !makes_sense || self.room(items)? < capacity * ITEM {
            return None;
        }
        let mut pairs = Vec::new();
        for item in (items..).step_by(ITEM as usize).take(capacity as usize) {
            let number = self.memory.half(item)?;
            let value = self.memory.word(item + WORD)?;
            if number != 0 && value != 0 {
                pairs.push((u64::from(number), value));
            }
        }
        (pairs.len() as u64 == count).then_some(pairs)
    }
}

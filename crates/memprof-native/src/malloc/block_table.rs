//! Live blocks by address: a single table, without locks.
//!
//! An entry takes 16 bytes, and a table that has grown is between 8/15 and 2/3 full: 24 to 30 bytes per live block.

use std::ptr;

use super::block_entry::{Block, CODE, Entry, FREE, NOT_RECORDED, key_of};
use super::pages;

/// Adjacent entries for adjacent blocks: two cache lines of the table for 128 bytes of memory. Wider groups make longer runs
/// of displaced entries.
const GROUP: usize = 8;

/// A table starts with a page of entries, and doubles up to this number.
const SMALL: usize = 2048;
const PAGE: usize = 4096 / size_of::<Entry>();

#[inline(always)]
fn home(groups: u64, address: u64) -> usize {
    let region = (address / (2 * GROUP as u64)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let group = (region * groups) >> 32;
    group as usize * GROUP + (address >> 1) as usize % GROUP
}

/// Prefetches the entry of a block in a table with that outline, which may be out of date.
#[inline(always)]
pub(super) fn prefetch((entries, groups): (*mut Entry, u64), address: u64) {
    let place = entries.wrapping_add(home(groups, address));
    // SAFETY: any address may be prefetched.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!("prefetcht0 [{}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
}

/// Linear probing without tombstones.
pub(super) struct Table {
    entries: *mut Entry,
    capacity: usize,
    groups: u64,
    used: usize,
}

impl Table {
    pub(super) const fn new() -> Table {
        Table { entries: ptr::null_mut(), capacity: 0, groups: 0, used: 0 }
    }

    /// The index where a block belongs unless it is displaced.
    #[inline(always)]
    fn home(&self, address: u64) -> usize {
        home(self.groups, address)
    }

    /// The arguments for [`prefetch`].
    pub(super) fn outline(&self) -> (*mut Entry, u64) {
        (self.entries, self.groups)
    }

    #[inline(always)]
    fn next(&self, at: usize) -> usize {
        if at + 1 == self.capacity { 0 } else { at + 1 }
    }

    /// Steps of [`Table::next`] from one index to another.
    #[inline(always)]
    fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.capacity - from }
    }

    #[inline(always)]
    fn at(&self, index: usize) -> Entry {
        debug_assert!(index < self.capacity);
        // SAFETY: `entries` has `capacity` entries, and the shard's lock is held.
        unsafe { *self.entries.add(index) }
    }

    #[inline(always)]
    fn put(&mut self, index: usize, entry: Entry) {
        debug_assert!(index < self.capacity);
        // SAFETY: as above.
        unsafe { *self.entries.add(index) = entry }
    }

    /// The index of the address, or else the index to insert it at.
    #[inline(always)]
    fn find(&self, address: u64) -> Result<usize, usize> {
        let mut at = self.home(address);
        loop {
            let entry = self.at(at);
            if entry == FREE {
                return Err(at);
            }
            if entry.address() == address {
                return Ok(at);
            }
            at = self.next(at);
        }
    }

    /// Returns an earlier block at the address, whose free was not seen.
    pub(super) fn insert(&mut self, entry: Entry) -> Result<Option<Block>, NoMemory> {
        if self.used * 3 >= self.capacity * 2 {
            self.grow()?;
        }
        match self.find(entry.address()) {
            Ok(at) => {
                let before = self.at(at).block();
                self.put(at, entry);
                Ok(Some(before))
            }
            Err(at) => {
                self.put(at, entry);
                self.used += 1;
                Ok(None)
            }
        }
    }

    /// Notes that a block contains code, even one that was not recorded. True if it was not in the table before.
    pub(super) fn mark_code(&mut self, address: usize) -> Result<bool, NoMemory> {
        if self.used > 0 {
            if let Ok(at) = self.find(key_of(address)) {
                let Entry { key, value } = self.at(at);
                let value = value | CODE;
                self.put(at, Entry { key, value });
                return Ok(false);
            }
        }
        let block = Block { size: 0, site: NOT_RECORDED, generation: 0, holds_code: true };
        self.insert(Entry::new(address, block)).map(|_| true)
    }

    #[inline(always)]
    pub(super) fn remove(&mut self, address: u64) -> Option<Block> {
        if self.used == 0 {
            return None;
        }
        let mut hole = self.find(address).ok()?;
        let block = self.at(hole).block();
        self.used -= 1;
        let mut at = hole;
        loop {
            at = self.next(at);
            let entry = self.at(at);
            if entry == FREE {
                break;
            }
            // Move an entry into the hole unless that comes before its home.
            if self.distance(self.home(entry.address()), at) >= self.distance(hole, at) {
                self.put(hole, entry);
                hole = at;
            }
        }
        self.put(hole, FREE);
        Some(block)
    }

    #[cold]
    fn grow(&mut self) -> Result<(), NoMemory> {
        let more = if self.capacity < SMALL { self.capacity } else { self.capacity / 4 };
        let capacity = self.capacity + more.max(PAGE) / GROUP * GROUP;
        let entries: *mut Entry = pages::map(capacity);
        if entries.is_null() {
            return Err(NoMemory);
        }
        let before = std::mem::replace(
            self,
            Table { entries, capacity, groups: (capacity / GROUP) as u64, used: 0 },
        );
        for index in 0..before.capacity {
            let entry = before.at(index);
            if entry != FREE {
                let at = self.find(entry.address()).unwrap_or_else(|at| at);
                self.put(at, entry);
                self.used += 1;
            }
        }
        // SAFETY: the entries were copied, and the lock keeps other threads away.
        unsafe { pages::unmap(before.entries, before.capacity) };
        Ok(())
    }

    pub(super) fn each(&self, visit: impl FnMut(Block)) {
        (0..self.capacity)
            .map(|index| self.at(index))
            .filter(|entry| *entry != FREE)
            .map(Entry::block)
            .filter(Block::is_recorded)
            .for_each(visit);
    }

    pub(super) fn memsize(&self) -> usize {
        self.capacity * size_of::<Entry>()
    }

    pub(super) fn clear(&mut self) {
        // SAFETY: the lock keeps other threads away.
        unsafe { pages::unmap(self.entries, self.capacity) };
        *self = Table::new();
    }
}

/// Out of memory for the table: the block is not recorded.
#[derive(Debug)]
pub(super) struct NoMemory;

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::block_entry::{GENERATION_BITS, MAX_SIZE, SITE_BITS};
    use super::super::sites::SiteId;
    use super::*;

    fn block(number: u64) -> Block {
        Block {
            size: number * 3,
            site: SiteId(number as u32 % 1000),
            generation: number as u32 % 77,
            holds_code: number % 5 == 0,
        }
    }

    /// Its own random generator, for the same sequence on each run.
    fn next(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    #[test]
    fn the_table_is_a_map() {
        let mut table = Table::new();
        let mut map: HashMap<u64, Block> = HashMap::new();
        let mut state = 0x1234_5678_9abc_def1;
        for round in 0..400_000u64 {
            // Few regions, so that runs of entries meet and wrap around.
            let address = key_of(((next(&mut state) % 6000) * 16 + 0x7f00_0000_0000) as usize);
            if next(&mut state) % 5 < if round < 200_000 { 3 } else { 2 } {
                let entry = Entry::new((address << 3) as usize, block(round));
                assert_eq!(table.insert(entry).unwrap(), map.insert(address, block(round)));
            } else {
                assert_eq!(table.remove(address), map.remove(&address));
            }
            assert_eq!(table.used, map.len());
        }
        for (address, block) in &map {
            assert_eq!(table.remove(*address), Some(*block));
        }
        assert_eq!(table.used, 0);
        assert!((0..table.capacity).all(|index| table.at(index) == FREE));
        table.clear();
    }

    #[test]
    fn what_is_kept_of_a_block_fits() {
        let block = Block {
            size: MAX_SIZE,
            site: SiteId((1 << SITE_BITS) - 1),
            generation: (1 << GENERATION_BITS) - 1,
            holds_code: false,
        };
        let entry = Entry::new(0x7fff_ffff_fff8, block);
        assert_eq!((entry.block(), entry.address() << 3), (block, 0x7fff_ffff_fff8));
        assert_eq!(Entry::new(8, Block { size: u64::MAX, ..block }).block().size, MAX_SIZE);
    }

    #[test]
    fn blocks_of_code_are_marked_and_not_counted() {
        let mut table = Table::new();
        assert!(table.mark_code(0x1000).unwrap());
        let recorded = Block { holds_code: false, ..block(3) };
        table.insert(Entry::new(0x2000, recorded)).unwrap();
        assert!(!table.mark_code(0x2000).unwrap());
        let marked = Block { holds_code: true, ..recorded };
        let mut seen = Vec::new();
        table.each(|block| seen.push(block));
        assert_eq!(seen, [marked]);
        let unknown = table.remove(key_of(0x1000)).unwrap();
        assert!(unknown.holds_code && !unknown.is_recorded());
        assert_eq!(table.remove(key_of(0x2000)), Some(marked));
        table.clear();
    }

    #[test]
    fn a_live_block_takes_at_most_32_bytes() {
        let mut table = Table::new();
        for number in 1..=300_000u64 {
            let address = 0x5555_0000_0000 + number * 48;
            table.insert(Entry::new(address as usize, block(number))).unwrap();
            let bytes = table.capacity * size_of::<Entry>();
            assert!(number < 10_000 || bytes <= 32 * number as usize, "{bytes} for {number}");
        }
        table.clear();
    }
}

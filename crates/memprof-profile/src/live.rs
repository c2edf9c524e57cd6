//! The table of live objects: address -> [`Record`], one record per slot of a heap page.
//!
//! Objects are allocated side by side, so the table is an array per 64 KiB of address space, found by the upper bits of the
//! address, with one eight-byte record per slot. That costs 8 bytes per object, against 20 or more in a general hash map, and
//! an allocation touches the same cache line as the one before it.

use rustc_hash::FxHashMap;

use crate::cells::CellId;

/// log2 of the address range that one page of the table covers. CRuby's heap pages are 64 KiB since 3.2 and 16 KiB
/// before; all slots of one page have the same size.
const PAGE_BITS: u32 = 16;
const PAGE_MASK: u64 = (1 << PAGE_BITS) - 1;

const GENERATION_BITS: u32 = 24;
const GENERATION_MASK: u32 = (1 << GENERATION_BITS) - 1;

/// Facts about a live object: its site, its GC generation, and the size of its slot when it was allocated.
///
/// Packed in 64 bits: cell + 1 (32), generation (24), slot size in units of 8 bytes (8). Zero is an empty slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record(u64);

impl Record {
    fn new(cell: CellId, generation: u32, slot_size: u32) -> Self {
        let units = u64::from((slot_size / 8).min(0xff));
        Record((u64::from(cell.0) + 1) << 32 | u64::from(generation & GENERATION_MASK) << 8 | units)
    }

    fn from_bits(bits: u64) -> Option<Self> {
        (bits != 0).then_some(Record(bits))
    }

    /// The counters of the object.
    pub fn cell(self) -> CellId {
        CellId((self.0 >> 32) as u32 - 1)
    }

    /// The same record with another cell.
    pub fn of(self, cell: CellId) -> Self {
        Record((u64::from(cell.0) + 1) << 32 | u64::from(self.0 as u32))
    }

    /// GC generations that the object has survived, if the current one is `now`.
    pub fn age(self, now: u32) -> u32 {
        let allocated = (self.0 >> 8) as u32 & GENERATION_MASK;
        now.wrapping_sub(allocated) & GENERATION_MASK
    }

    /// Bytes of the slot that the object was allocated in.
    pub fn slot_size(self) -> u32 {
        (self.0 & 0xff) as u32 * 8
    }
}

/// Pages that [`LiveTable::clear`] keeps: about 13 KB each.
const KEPT_PAGES: usize = 512;

const NO_PAGE: u32 = u32::MAX;

#[derive(Debug)]
struct Page {
    slot_size: u32,
    /// Offset of the first slot from the page's base modulo the slot size: an address follows from a slot's index.
    phase: u32,
    /// ceil(2^32 / slot_size): turns the division of an offset (< 2^16) by the slot size (< 2^12) into a multiplication
    /// that is exact for all of them.
    reciprocal: u64,
    live: u32,
    records: Vec<u64>,
}

impl Page {
    fn new(slot_size: u32, address: u64) -> Self {
        let slot_size = slot_size.max(8);
        let slots = (1usize << PAGE_BITS) / slot_size as usize + 1;
        Page {
            slot_size,
            phase: ((address & PAGE_MASK) % u64::from(slot_size)) as u32,
            reciprocal: (1u64 << 32).div_ceil(u64::from(slot_size)),
            live: 0,
            records: vec![0; slots],
        }
    }

    #[inline(always)]
    fn index(&self, address: u64) -> usize {
        (((address & PAGE_MASK) * self.reciprocal) >> 32) as usize
    }

    fn iter(&self, base: u64) -> impl Iterator<Item = (u64, Record)> + '_ {
        let address = move |slot: usize| {
            base + slot as u64 * u64::from(self.slot_size) + u64::from(self.phase)
        };
        let records: &[u64] = if self.live > 0 { &self.records } else { &[] };
        let entries = records.iter().enumerate();
        entries.filter_map(move |(slot, bits)| Some((address(slot), Record::from_bits(*bits)?)))
    }
}

/// The live table. Addresses are opaque to it but for one rule: two live objects in the same 64 KiB have slots of the same size
/// and lie whole slots apart. `slot_size` returns that size when the first of them is inserted.
#[derive(Debug, Default)]
pub struct LiveTable {
    pages: Vec<Page>,
    /// Page base -> index in `pages`.
    by_base: FxHashMap<u64, u32>,
    /// The last page touched: allocations and sweeps go through a page from one end to the other.
    last_base: u64,
    last_index: u32,
    live: u64,
}

impl LiveTable {
    /// An empty table.
    pub fn new() -> Self {
        LiveTable { last_base: u64::MAX, ..Default::default() }
    }

    /// Number of objects in the table.
    pub fn len(&self) -> u64 {
        self.live
    }

    /// True if the table has no object.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Memory size of the table in bytes.
    pub fn memsize(&self) -> usize {
        self.pages.iter().map(|page| page.records.capacity() * 8 + size_of::<Page>()).sum::<usize>()
            + self.by_base.capacity() * 16
    }

    /// Bytes of the slots of all objects.
    pub fn slot_bytes(&self) -> u64 {
        let pages = self.pages.iter();
        pages.map(|page| u64::from(page.live) * u64::from(page.slot_size)).sum()
    }

    /// Removes all objects. Keeps the memory of at most `KEPT_PAGES` pages: the next objects are mostly allocated there, too.
    pub fn clear(&mut self) {
        if self.pages.len() > KEPT_PAGES {
            *self = LiveTable::new();
            return;
        }
        for page in self.pages.iter_mut().filter(|page| page.live > 0) {
            page.records.fill(0);
            page.live = 0;
        }
        self.live = 0;
    }

    #[inline(always)]
    fn find(&mut self, address: u64) -> Option<&mut Page> {
        let base = address >> PAGE_BITS;
        if base != self.last_base {
            // A missing page is remembered, too: with sampling, most allocations and frees look up one.
            self.last_index = self.by_base.get(&base).copied().unwrap_or(NO_PAGE);
            self.last_base = base;
        }
        self.pages.get_mut(self.last_index as usize)
    }

    /// Inserts an object, and returns the record previously at the address: an object freed without an event.
    #[inline(always)]
    pub fn insert(
        &mut self,
        address: u64,
        cell: CellId,
        generation: u32,
        slot_size: impl FnOnce() -> u32,
    ) -> Option<Record> {
        let previous = match self.find(address) {
            Some(page) if page.live > 0 => Self::put(page, address, cell, generation),
            _ => self.insert_in_empty_page(address, cell, generation, slot_size()),
        };
        if previous.is_none() {
            self.live += 1;
        }
        previous
    }

    #[inline(always)]
    fn put(page: &mut Page, address: u64, cell: CellId, generation: u32) -> Option<Record> {
        let index = page.index(address);
        let slot = page.records.get_mut(index)?;
        let previous = Record::from_bits(*slot);
        *slot = Record::new(cell, generation, page.slot_size).0;
        page.live += u32::from(previous.is_none());
        previous
    }

    /// The heap may have released a page without live objects and reused its address with slots of another size.
    #[cold]
    fn insert_in_empty_page(
        &mut self,
        address: u64,
        cell: CellId,
        generation: u32,
        slot_size: u32,
    ) -> Option<Record> {
        if let Some(page) = self.find(address) {
            let size = slot_size.max(8);
            if (page.slot_size, u64::from(page.phase))
                != (size, (address & PAGE_MASK) % u64::from(size))
            {
                *page = Page::new(slot_size, address);
            }
            return Self::put(page, address, cell, generation);
        }
        let base = address >> PAGE_BITS;
        let index = self.pages.len() as u32;
        self.pages.push(Page::new(slot_size, address));
        self.by_base.insert(base, index);
        (self.last_base, self.last_index) = (base, index);
        Self::put(self.pages.last_mut()?, address, cell, generation)
    }

    /// Removes an object, if it is in the table.
    #[inline(always)]
    pub fn remove(&mut self, address: u64) -> Option<Record> {
        let page = self.find(address)?;
        let index = page.index(address);
        let slot = page.records.get_mut(index)?;
        let record = Record::from_bits(*slot)?;
        *slot = 0;
        page.live -= 1;
        self.live -= 1;
        Some(record)
    }

    /// Replaces the record of an object in the table.
    pub fn replace(&mut self, address: u64, record: Record) {
        let Some(page) = self.find(address) else {
            return;
        };
        let index = page.index(address);
        if let Some(slot) = page.records.get_mut(index) {
            *slot = record.0;
        }
    }

    /// The record of the object at `address`.
    pub fn get(&self, address: u64) -> Option<Record> {
        let page = self.pages.get(*self.by_base.get(&(address >> PAGE_BITS))? as usize)?;
        Record::from_bits(*page.records.get(page.index(address))?)
    }

    /// False if certainly no object in the table has an address in `start..end`.
    pub fn touches(&self, start: u64, end: u64) -> bool {
        (start >> PAGE_BITS..=end.saturating_sub(1) >> PAGE_BITS).any(|base| {
            self.by_base
                .get(&base)
                .and_then(|index| self.pages.get(*index as usize))
                .is_some_and(|page| page.live > 0)
        })
    }

    /// Bases (lowest addresses) of the pages with live objects, ascending.
    pub fn page_addresses(&self) -> Vec<u64> {
        let live = |index: &u32| self.pages.get(*index as usize).is_some_and(|page| page.live > 0);
        let mut bases: Vec<u64> = self
            .by_base
            .iter()
            .filter(|(_, index)| live(index))
            .map(|(base, _)| base << PAGE_BITS)
            .collect();
        bases.sort_unstable();
        bases
    }

    /// Addresses of the objects in the table, page by page, with their records.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Record)> + '_ {
        self.page_addresses().into_iter().flat_map(|base| self.iter_page(base))
    }

    /// The objects of the page at `base`, ascending.
    pub fn iter_page(&self, base: u64) -> impl Iterator<Item = (u64, Record)> + '_ {
        let page = self
            .by_base
            .get(&(base >> PAGE_BITS))
            .and_then(|index| self.pages.get(*index as usize));
        page.into_iter().flat_map(move |page| page.iter(base))
    }

    /// Moves every object: `moved(address)` returns its new address, or `None` if it was freed. Builds a new table, since
    /// inserting into the one being read could overwrite objects not yet visited. An object keeps the slot size it was
    /// allocated with, even if it moves to a page with slots of another size.
    pub fn relocate(
        &mut self,
        moved: impl Fn(u64) -> Option<u64>,
        slot_size: impl Fn(u64) -> u32,
        mut gone: impl FnMut(Record),
    ) {
        let old = std::mem::replace(self, LiveTable::new());
        for (address, record) in old.iter() {
            match moved(address) {
                Some(address) => {
                    self.insert(address, record.cell(), 0, || slot_size(address));
                    self.replace(address, record);
                }
                None => gone(record),
            }
        }
    }
}

#[cfg(test)]
mod tests;

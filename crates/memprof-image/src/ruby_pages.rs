//! Finds pages of Ruby's heap by their structure, without symbols or version tables.
//!
//! A page begins at a multiple of its size (16 KiB on Ruby 3.1, 64 KiB later). Its first word points to a `heap_page` with the
//! address of the first slot, the size of a slot and the number of slots, which must fill the page. The offsets of these three
//! are learned from the first pages for which they work, and apply to all others. Since Ruby 4.0 a page without objects is not in
//! a heap: all three are 0 until it gets slots of some size again.

use std::ops::Range;

use serde::Serialize;

use crate::image::{GLIMPSE, Image, WORD, Words};

const PAGE_SIZES: [u64; 2] = [1 << 16, 1 << 14];
/// The maximum size of the header before the first slot, with alignment for slots of 640 bytes.
const MAX_HEADER: u64 = 0x400;
/// The required fields are among the first ones.
const FIELDS: u64 = 16 * WORD;
const MIN_SLOT: u64 = 32;
const MAX_SLOT: u64 = 4096;

/// A page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RubyPage {
    /// The address.
    pub address: u64,
    /// The address of its first slot.
    pub slots: u64,
    /// Bytes of a slot.
    pub slot_size: u64,
    /// The number of slots; 0 if it is not in a heap.
    pub count: u64,
    /// The address of its descriptor.
    pub heap_page: u64,
}

impl RubyPage {
    /// The number of the slot that begins at an address.
    #[inline]
    #[must_use]
    pub fn slot_at(&self, address: u64) -> Option<u64> {
        let offset = address.checked_sub(self.slots)?;
        let number = offset / self.slot_size;
        (number < self.count && offset % self.slot_size == 0).then_some(number)
    }

    /// The addresses of its slots.
    pub fn each_slot(&self) -> impl Iterator<Item = u64> + use<> {
        let (slots, size) = (self.slots, self.slot_size);
        (0..self.count).map(move |number| slots + number * size)
    }
}

/// The pages of a Ruby heap.
#[derive(Debug, Default)]
pub struct RubyPages {
    /// Bytes of a page.
    pub page_size: u64,
    /// Pages, by address.
    pub pages: Vec<RubyPage>,
}

/// Offsets of the required fields of a `heap_page`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    page_size: u64,
    start: u64,
    slot_size: u64,
}

impl RubyPages {
    /// Finds the pages; none in a process without Ruby.
    #[must_use]
    pub fn find(image: &Image) -> RubyPages {
        let runs = image.writable_runs(|segment| segment.file.is_none());
        let mut words = image.words(GLIMPSE);
        let Some(layout) = learn(&mut words, &runs) else {
            return RubyPages::default();
        };
        let pages = candidates(&runs, layout.page_size)
            .filter_map(|page| {
                read(&mut words, page, layout).or_else(|| unused(&mut words, page, layout))
            })
            .collect();
        RubyPages { page_size: layout.page_size, pages }
    }

    /// The page that contains an address.
    #[must_use]
    pub fn containing(&self, address: u64) -> Option<usize> {
        let page = address & !(self.page_size.max(1) - 1);
        (self.pages).binary_search_by_key(&page, |page| page.address).ok()
    }

    /// The memory of the pages.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let size = self.page_size;
        (self.pages.iter()).map(move |page| page.address..page.address + size)
    }

    /// The number of slots.
    #[must_use]
    pub fn slots(&self) -> u64 {
        self.pages.iter().map(|page| page.count).sum()
    }
}

fn candidates(runs: &[Range<u64>], size: u64) -> impl Iterator<Item = u64> + '_ {
    runs.iter().flat_map(move |run| {
        let first = run.start.next_multiple_of(size);
        let end = run.end.saturating_sub(size - 1);
        (first..end.max(first)).step_by(size as usize)
    })
}

/// The layout of most of the first pages.
fn learn(words: &mut Words<'_>, runs: &[Range<u64>]) -> Option<Layout> {
    const ENOUGH: usize = 64;
    let mut votes: Vec<(Layout, usize)> = Vec::new();
    for size in PAGE_SIZES {
        for page in candidates(runs, size) {
            for layout in layouts(words, page, size) {
                match votes.iter_mut().find(|(other, _)| *other == layout) {
                    Some((_, count)) => *count += 1,
                    None => votes.push((layout, 1)),
                }
            }
            if votes.iter().any(|(_, count)| *count >= ENOUGH) {
                break;
            }
        }
    }
    // Among equals the first one: slot sizes precede slot counts.
    let most = votes.iter().map(|(_, count)| *count).max()?;
    votes.into_iter().find_map(|(layout, count)| (count == most).then_some(layout))
}

/// Layouts for which an address would be a page.
fn layouts(words: &mut Words<'_>, page: u64, page_size: u64) -> Vec<Layout> {
    let mut found = Vec::new();
    let Some(heap_page) = words.at(page).filter(|address| is_pointer(*address)) else {
        return found;
    };
    for start in (WORD..FIELDS).step_by(WORD as usize) {
        let first = words.at(heap_page + start);
        if !first.is_some_and(|first| (page + 1..page + MAX_HEADER).contains(&first)) {
            continue;
        }
        for slot_size in (0..start).step_by(2) {
            let layout = Layout { page_size, start, slot_size };
            if read(words, page, layout).is_some() {
                found.push(layout);
            }
        }
    }
    found
}

fn read(words: &mut Words<'_>, address: u64, layout: Layout) -> Option<RubyPage> {
    let heap_page = words.at(address).filter(|address| is_pointer(*address))?;
    let slots = words.at(heap_page + layout.start)?;
    let slot_size = short(words, heap_page + layout.slot_size)?;
    let count = short(words, heap_page + layout.slot_size + 2)?;
    let end = slots.checked_add(slot_size * count)?;
    let page_end = address + layout.page_size;
    let fits = (address + WORD..address + MAX_HEADER).contains(&slots)
        && (MIN_SLOT..=MAX_SLOT).contains(&slot_size)
        && slot_size % WORD == 0
        && slots % WORD == 0
        && count > 0
        && end <= page_end
        && page_end - end < 2 * slot_size;
    fits.then_some(RubyPage { address, slots, slot_size, count, heap_page })
}

/// A page that is not in a heap. Its slots have stale contents, which are not references.
fn unused(words: &mut Words<'_>, address: u64, layout: Layout) -> Option<RubyPage> {
    let heap_page = words.at(address).filter(|address| is_pointer(*address))?;
    let is_zero = words.at(heap_page + layout.start)? == 0
        && short(words, heap_page + layout.slot_size)? == 0
        && short(words, heap_page + layout.slot_size + 2)? == 0;
    let mut fields = (WORD..layout.start).step_by(WORD as usize);
    let is_described = fields.any(|field| words.at(heap_page + field) == Some(address));
    (is_zero && is_described).then_some(RubyPage {
        address,
        slots: address,
        slot_size: layout.page_size,
        count: 0,
        heap_page,
    })
}

fn is_pointer(address: u64) -> bool {
    address > 4096 && address % WORD == 0 && address < 1 << 56
}

fn short(words: &mut Words<'_>, address: u64) -> Option<u64> {
    let word = words.at(address & !(WORD - 1))?;
    Some(word >> ((address % WORD) * 8) & 0xffff)
}

/// The type of an object: the five lowest bits of its flags, the same in all versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(into = "&'static str")]
pub struct ObjectType(u8);

impl ObjectType {
    /// The type from the flags; None if the slot is empty, or the object is gone.
    #[must_use]
    pub fn of_flags(flags: u64) -> Option<ObjectType> {
        let number = (flags & 0x1f) as u8;
        (!NAMES[number as usize].is_empty()).then_some(ObjectType(number))
    }

    /// The names of all types.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.into_iter().filter(|name| !name.is_empty())
    }

    /// The name used in dumps.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES[self.0 as usize]
    }
}

impl From<ObjectType> for &'static str {
    fn from(object: ObjectType) -> &'static str {
        object.name()
    }
}

const NAMES: [&str; 32] = [
    "", "OBJECT", "CLASS", "MODULE", "FLOAT", "STRING", "REGEXP", "ARRAY", "HASH", "STRUCT",
    "BIGNUM", "FILE", "DATA", "MATCH", "COMPLEX", "RATIONAL", "", "", "", "", "SYMBOL", "", "", "",
    "", "", "IMEMO", "NODE", "ICLASS", "", "", "",
];

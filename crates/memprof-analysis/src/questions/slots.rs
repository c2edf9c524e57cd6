//! `slots`: how full the heap's pages are, and how much memory compaction could release.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::list::{BY_KEY, List, Measure, Rows};
use super::numbering::Numbering;
use super::tally::percent;
use super::units::bytes;
use super::{Error, Limit};
use memprof_dump::record::NoteKind;
use memprof_heap::Heap;

/// Page size of Ruby 3.2 and later.
const LARGE: u64 = 64 << 10;

/// Page size of earlier versions.
const SMALL: u64 = 16 << 10;

/// Bytes before the first slot of a page.
const HEAD: u64 = 8;

/// Number of objects from which the page size is inferred.
const SAMPLE: u32 = 100_000;

/// `slots`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// Percentage of used slots up to which a page counts as nearly empty (default: 10).
    pub nearly_empty: Option<f64>,
}

/// Pages with the same slot size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfSize {
    /// Bytes of a slot.
    pub slot: u64,
    /// Pages with objects.
    pub pages: u64,
    /// Slots in these pages.
    pub slots: u64,
    /// Slots with an object, including garbage.
    pub used: u64,
    /// Free slots.
    pub free: u64,
    /// Percentage of used slots.
    pub fill: f64,
    /// Pages by used slots: up to 10 %, up to 20 % and so on.
    pub fill_histogram: [u64; 10],
    /// Pages that are nearly empty.
    pub nearly_empty_pages: u64,
    /// Objects that prevent the release of these pages.
    pub nearly_empty_objects: u64,
    /// Pages that compaction could release.
    pub returnable_pages: u64,
    /// Bytes of these pages.
    pub returnable: u64,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Bytes of a page.
    pub page_size: u64,
    /// By slot size.
    pub rows: Vec<OfSize>,
    /// Pages with objects.
    pub pages: u64,
    /// Pages without objects, according to the GC statistics; null if the dump lacks these.
    pub empty_pages: Option<u64>,
    /// Bytes of all pages with objects.
    pub size: u64,
    /// Slots in these pages.
    pub slots: u64,
    /// Slots with an object.
    pub used: u64,
    /// Free slots.
    pub free: u64,
    /// Bytes of the free slots.
    pub free_size: u64,
    /// Percentage of used slots.
    pub fill: f64,
    /// Bytes that compaction could release.
    pub returnable: u64,
    /// Their percentage of all pages' bytes.
    pub percent: f64,
    /// Summary in a sentence.
    pub sentence: String,
}

/// All sizes are shown.
const ALL: usize = usize::MAX;

/// Percentage up to which a page counts as nearly empty.
const NEARLY_EMPTY: f64 = 10.0;

impl OfSize {
    fn new(slot: u64) -> OfSize {
        OfSize {
            slot,
            pages: 0,
            slots: 0,
            used: 0,
            free: 0,
            fill: 0.0,
            fill_histogram: [0; 10],
            nearly_empty_pages: 0,
            nearly_empty_objects: 0,
            returnable_pages: 0,
            returnable: 0,
        }
    }

    fn add(&mut self, slots: u64, used: u64, nearly_empty: f64) {
        let slots = slots.max(used).max(1);
        self.pages += 1;
        self.slots += slots;
        self.used += used;
        let tenth = (used * 10).div_ceil(slots).clamp(1, 10);
        self.fill_histogram[tenth as usize - 1] += 1;
        if used as f64 * 100.0 <= nearly_empty * slots as f64 {
            self.nearly_empty_pages += 1;
            self.nearly_empty_objects += used;
        }
    }

    fn finish(&mut self, page_size: u64) {
        self.free = self.slots - self.used;
        self.fill = percent(self.used, self.slots);
        let needed = match self.slots.checked_div(self.pages) {
            Some(slots) if slots > 0 => self.used.div_ceil(slots),
            _ => self.pages,
        };
        self.returnable_pages = self.pages.saturating_sub(needed);
        self.returnable = self.returnable_pages * page_size;
    }
}

/// Sizes of slots, the smallest first.
impl Rows for Vec<OfSize> {
    fn measure(&self, _: u32, _: Measure) -> Option<u64> {
        None
    }

    fn compare_keys(&self, one: u32, other: u32) -> Ordering {
        self[one as usize].slot.cmp(&self[other as usize].slot)
    }
}

impl Question {
    /// The answer.
    ///
    /// # Errors
    /// If the dump lacks the slot sizes.
    pub fn answer(&self, heap: &Heap) -> Result<Answer, Error> {
        let layout = Layout::of(heap);
        let nearly_empty = self.nearly_empty.unwrap_or(NEARLY_EMPTY);
        let mut sizes = Numbering::default();
        let mut found: Vec<OfSize> = Vec::new();
        layout.each_page(heap, |slot, slots, used| {
            let number = sizes.number(slot) as usize;
            if number == found.len() {
                found.push(OfSize::new(slot));
            }
            found[number].add(slots, used, nearly_empty);
        });
        let numbers = 0..found.len() as u32;
        let page = List::new(&found, BY_KEY).page(numbers, Limit::<ALL>::default(), 0);
        let mut rows = page.of(found);
        if rows.is_empty() && !heap.is_empty() {
            return Err(Error::Question("the dump does not contain the sizes of slots".to_owned()));
        }
        rows.iter_mut().for_each(|row| row.finish(layout.page_size));
        let sum = |part: fn(&OfSize) -> u64| rows.iter().map(part).sum::<u64>();
        let pages = sum(|row| row.pages);
        let size = pages * layout.page_size;
        let returnable = sum(|row| row.returnable);
        let mut answer = Answer {
            page_size: layout.page_size,
            pages,
            empty_pages: layout.allocated_pages.map(|allocated| allocated.saturating_sub(pages)),
            size,
            slots: sum(|row| row.slots),
            used: sum(|row| row.used),
            free: sum(|row| row.free),
            free_size: sum(|row| row.free * row.slot),
            fill: percent(sum(|row| row.used), sum(|row| row.slots)),
            returnable,
            percent: percent(returnable, size),
            sentence: String::new(),
            rows,
        };
        answer.sentence = sentence(&answer);
        Ok(answer)
    }
}

/// Percentage of releasable pages from which fragmentation is worth mentioning.
const FRAGMENTED: f64 = 10.0;

fn sentence(answer: &Answer) -> String {
    let sum = |part: fn(&OfSize) -> u64| answer.rows.iter().map(part).sum::<u64>();
    let fill = format!(
        "{:.0} % of the slots in {} pages ({}) are used",
        answer.fill,
        answer.pages,
        bytes(answer.size)
    );
    if answer.percent < FRAGMENTED {
        return format!("{fill}: the heap is not fragmented.");
    }
    let pages = sum(|row| row.nearly_empty_pages);
    let objects = sum(|row| row.nearly_empty_objects);
    let sparse = match pages {
        0 => String::new(),
        _ => format!(" {objects} objects retain {pages} nearly empty pages."),
    };
    let returnable = bytes(answer.returnable);
    format!(
        "{fill}.{sparse} If objects stood side by side (GC.compact), {returnable} ({:.0} %) could be given back.",
        answer.percent
    )
}

/// The layout of the pages, inferred from the addresses of objects if the dump does not say it.
struct Layout {
    /// Bytes of a page; pages begin at multiples of it.
    page_size: u64,
    /// Number of pages of the process, according to the dump.
    allocated_pages: Option<u64>,
}

impl Layout {
    /// From the dump's header if possible, else from the addresses of objects.
    fn of(heap: &Heap) -> Layout {
        let header = heap.notes().iter().find(|(kind, _)| *kind == NoteKind::Header);
        let header =
            header.and_then(|(_, json)| serde_json::from_str::<serde_json::Value>(json).ok());
        let header = header.unwrap_or_default();
        let version = header["ruby_version"].as_str().and_then(|version| {
            let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
            Some((parts.next()??, parts.next()??))
        });
        let page_size = match version {
            Some(version) if version < (3, 2) => SMALL,
            Some(_) => LARGE,
            None if has_large_pages(heap) => LARGE,
            None => SMALL,
        };
        let gc = &header["gc"];
        Layout { page_size, allocated_pages: gc["heap_allocated_pages"].as_u64() }
    }

    /// Visits each page: slot size, number of slots, number of slots with an object.
    fn each_page(&self, heap: &Heap, mut visit: impl FnMut(u64, u64, u64)) {
        for (slot, objects) in
            heap.pages().filter(|(slot, objects)| *slot > 0 && !objects.is_empty())
        {
            self.each_part(heap, objects, |first, used| {
                visit(u64::from(slot), self.slots(first, u64::from(slot)), used);
            });
        }
    }

    /// The heap indexes addresses by 64 KiB, which may be several pages. Visits each page: its first address and its
    /// objects.
    fn each_part(&self, heap: &Heap, objects: Range<u32>, mut visit: impl FnMut(u64, u64)) {
        let address = |id: u32| heap.addresses().of(id);
        if self.page_size == LARGE {
            return visit(address(objects.start), objects.len() as u64);
        }
        let mut first = address(objects.start);
        let mut used = 0;
        for at in objects.map(address) {
            if at / self.page_size != first / self.page_size {
                visit(first, used);
                (first, used) = (at, 0);
            }
            used += 1;
        }
        visit(first, used);
    }

    /// Number of slots of a page with an object here: they begin as early as the object's position allows, after the
    /// header.
    fn slots(&self, address: u64, slot: u64) -> u64 {
        let phase = address % self.page_size % slot;
        let begin = if phase >= HEAD { phase } else { phase + slot };
        (self.page_size - begin.min(self.page_size)) / slot
    }
}

/// True if an object is located where a small page would begin.
fn has_large_pages(heap: &Heap) -> bool {
    let mut left = SAMPLE;
    for (slot, objects) in heap.pages() {
        for id in objects.take(left as usize) {
            left -= 1;
            let address = heap.addresses().of(id);
            let last = address + u64::from(slot).max(1) - 1;
            if address % SMALL < HEAD || address / SMALL != last / SMALL {
                return true;
            }
        }
    }
    false
}

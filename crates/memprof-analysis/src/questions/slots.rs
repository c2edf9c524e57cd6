//! `slots`: how full the heap's pages are, and how much memory compaction could release.

use std::cmp::Ordering;
use std::io;

use serde::{Deserialize, Serialize};

use super::list::{BY_KEY, List, Measure, Rows};
use super::numbering::Numbering;
use super::tally::percent;
use super::{Error, Limit, leaked};
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
        let layout = Layout::of(heap)?;
        let nearly_empty = self.nearly_empty.unwrap_or(NEARLY_EMPTY);
        let mut sizes = Numbering::default();
        let mut found: Vec<OfSize> = Vec::new();
        layout.each_page(heap, |slot, slots, used| {
            let number = sizes.number(slot) as usize;
            if number == found.len() {
                found.push(OfSize::new(slot));
            }
            found[number].add(slots, used, nearly_empty);
        })?;
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
        Ok(Answer {
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
            rows,
        })
    }
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
    fn of(heap: &Heap) -> io::Result<Layout> {
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
            None if has_large_pages(heap)? => LARGE,
            None => SMALL,
        };
        let gc = &header["gc"];
        Ok(Layout { page_size, allocated_pages: gc["heap_allocated_pages"].as_u64() })
    }

    /// Visits each page: slot size, number of slots, number of slots with an object.
    fn each_page(&self, heap: &Heap, mut visit: impl FnMut(u64, u64, u64)) -> io::Result<()> {
        let is_block = leaked::is_block(heap)?;
        for (slot, objects) in heap.pages().filter(|(slot, _)| *slot > 0) {
            let addresses = objects.filter(|id| !is_block(*id)).map(|id| heap.addresses().of(id));
            self.each_part(addresses, |first, used| {
                visit(u64::from(slot), self.slots(first, u64::from(slot)), used);
            });
        }
        Ok(())
    }

    /// The heap indexes addresses by 64 KiB, which may be several pages. Visits each page: its first address and its
    /// objects.
    fn each_part(&self, mut addresses: impl Iterator<Item = u64>, mut visit: impl FnMut(u64, u64)) {
        let Some(mut first) = addresses.next() else {
            return;
        };
        let mut used = 1;
        for at in addresses {
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
fn has_large_pages(heap: &Heap) -> io::Result<bool> {
    let is_block = leaked::is_block(heap)?;
    let mut left = SAMPLE;
    for (slot, objects) in heap.pages().filter(|(slot, _)| *slot > 0) {
        for id in objects.filter(|id| !is_block(*id)).take(left as usize) {
            left -= 1;
            let address = heap.addresses().of(id);
            let last = address + u64::from(slot).max(1) - 1;
            if address % SMALL < HEAD || address / SMALL != last / SMALL {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::{Answer, Question};
    use crate::tests::ask;
    use memprof_dump::record::Kind;
    use memprof_heap::Heap;
    use memprof_heap::testing::{Random, Thing, heap, heap_of, thing};

    fn answer(heap: &Heap) -> Answer {
        Question::default().answer(heap).expect("an answer")
    }

    fn slot(page: u64, size: u32, number: u64) -> Thing {
        thing((page << 16) + 16 + u64::from(size) * number, Kind::OBJECT, "Object").slot(size)
    }

    /// Slots of a 64 KiB page that begin 16 bytes after its start.
    fn slots(size: u32) -> u64 {
        (65_536 - 16) / u64::from(size)
    }

    #[test]
    fn counts_slots_of_each_size() {
        let mut things: Vec<Thing> = (0..slots(40)).map(|number| slot(1, 40, number)).collect();
        things.extend([slot(2, 40, 5), slot(2, 40, 900), slot(3, 160, 0), slot(3, 160, 399)]);
        let header = r#"{"ruby_version":"3.4.1","gc":{"heap_allocated_pages":5}}"#;
        let answer = answer(&heap_of(header, &[], &things));
        let small = &answer.rows[0];
        assert_eq!((small.slot, small.pages, small.slots, small.used), (40, 2, 2 * 1638, 1640));
        assert_eq!(
            (small.free, small.nearly_empty_pages, small.nearly_empty_objects),
            (1636, 1, 2)
        );
        assert_eq!(small.fill_histogram, [1, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        // 1640 objects need two pages of 1638 slots.
        assert_eq!(
            (small.returnable_pages, answer.empty_pages, answer.page_size),
            (0, Some(2), 65_536)
        );
        let large = &answer.rows[1];
        assert_eq!((large.slot, large.slots, large.used), (160, slots(160), 2));
    }

    #[test]
    fn lists_what_could_be_given_back() {
        let things: Vec<Thing> = (0..20).map(|page| slot(page + 1, 80, page)).collect();
        let heap = heap_of(r#"{"ruby_version":"3.3.0"}"#, &[], &things);
        let answer = answer(&heap);
        assert_eq!((answer.pages, answer.used, answer.returnable), (20, 20, 19 * 65_536));
        assert_eq!(
            (answer.rows[0].nearly_empty_pages, answer.rows[0].nearly_empty_objects),
            (20, 20)
        );
        assert!(answer.percent > 94.0);
        let json =
            ask(&heap, "slots", serde_json::json!({ "nearly_empty": 0.1 })).expect("an answer");
        assert_eq!(json["rows"][0]["nearly_empty_pages"], 0);
    }

    #[test]
    fn finds_the_size_of_pages() {
        // 409 slots in each 16 KiB page, none where the next page begins.
        let small =
            |page: u64, number: u64| thing((page << 14) + 8 + 40 * number, Kind::OBJECT, "Object");
        let things: Vec<Thing> =
            (4..9).flat_map(|page| (0..409).map(move |number| small(page, number))).collect();
        let found = answer(&heap(&[], &things));
        assert_eq!(
            (found.page_size, found.pages, found.slots, found.free),
            (16_384, 5, 5 * 409, 0)
        );
        let things: Vec<Thing> = (0..slots(40)).map(|number| slot(1, 40, number)).collect();
        let found = answer(&heap(&[], &things));
        assert_eq!((found.page_size, found.pages, found.free), (65_536, 1, 0));
        assert_eq!(found.percent, 0.0);
    }

    #[test]
    fn adds_up_and_takes_any_address() {
        let mut random = Random(5);
        for _ in 0..20 {
            let mut things: Vec<Thing> = (0..50)
                .map(|_| {
                    let size = [0, 1, 40, 160, 640, 70_000][random.below(6) as usize];
                    thing(random.below(1 << 20), Kind::OBJECT, "Object").slot(size)
                })
                .collect();
            things.sort_by_key(|thing| thing.address);
            things.dedup_by_key(|thing| thing.address);
            let Ok(answer) = Question::default().answer(&heap(&[], &things)) else {
                continue;
            };
            assert_eq!(answer.used + answer.free, answer.slots);
            assert!(
                answer.rows.iter().all(|row| row.fill_histogram.iter().sum::<u64>() == row.pages)
            );
        }
        assert_eq!(answer(&heap(&[], &[])).pages, 0);
    }
}

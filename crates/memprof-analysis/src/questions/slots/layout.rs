//! The layout of the heap's pages, inferred from the addresses of objects.

use std::ops::Range;

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

/// Pages.
pub(super) struct Layout {
    /// Bytes of a page; pages begin at multiples of it.
    pub page_size: u64,
    /// Number of pages of the process, according to the dump.
    pub allocated_pages: Option<u64>,
}

impl Layout {
    /// From the dump's header if possible, else from the addresses of objects.
    pub fn of(heap: &Heap) -> Layout {
        let header = heap
            .notes()
            .iter()
            .find(|(kind, _)| *kind == NoteKind::Header);
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
        Layout {
            page_size,
            allocated_pages: gc["heap_allocated_pages"].as_u64(),
        }
    }

    /// Visits each page: slot size, number of slots, number of slots with an object.
    pub fn each_page(&self, heap: &Heap, mut visit: impl FnMut(u64, u64, u64)) {
        for (slot, objects) in heap
            .pages()
            .filter(|(slot, objects)| *slot > 0 && !objects.is_empty())
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

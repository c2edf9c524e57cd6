//! Checks whether an address is in the heap, and where compaction moved an object.

use std::cell::{Cell, RefCell};

use rb_sys::VALUE;
use rustc_hash::FxHashMap;

use super::ruby_object::Flags;
use super::symbols::symbols;

/// Pages of the heap, checked before their contents are read: an object of the tracker may have been freed (Ruby drops the free
/// events of a thread that is in another tool's hook), and its heap page released.
#[derive(Default)]
pub struct HeapPages {
    last: Cell<(u64, bool)>,
    mapped: RefCell<FxHashMap<u64, bool>>,
}

/// Page size for queries to the operating system; no platform has smaller pages.
const OS_PAGE_BITS: u32 = 12;

impl HeapPages {
    /// Address of an object after compaction; `None` if it was freed.
    pub fn location(&self, address: u64) -> Option<u64> {
        if !self.is_heap(address) {
            return None;
        }
        // SAFETY: the slot is mapped (just asked).
        if unsafe { Flags::of(address as VALUE) }.0 == 0 {
            return None;
        }
        // SAFETY: called in the reference-update phase, from a compact function, for an address in a heap page.
        Some(unsafe { rb_sys::rb_gc_location(address as VALUE) } as u64)
    }

    /// True if the address is in a page of the heap.
    pub fn is_heap(&self, address: u64) -> bool {
        if let Some(pointer_to_heap_p) = symbols().pointer_to_heap_p {
            // SAFETY: takes any address.
            return unsafe { pointer_to_heap_p(address as VALUE) };
        }
        let page = address >> OS_PAGE_BITS;
        let (last, mapped) = self.last.get();
        if last == page {
            return mapped;
        }
        let mapped = *(self.mapped.borrow_mut().entry(page))
            .or_insert_with(|| is_mapped(page << OS_PAGE_BITS));
        self.last.set((page, mapped));
        mapped
    }
}

fn is_mapped(page: u64) -> bool {
    // SAFETY: sysconf has no conditions.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(4096) as u64;
    let start = page & !(size - 1);
    let mut resident = 0;
    // SAFETY: mincore writes one byte for one page, and fails for addresses that are not mapped.
    unsafe { libc::mincore(start as *mut libc::c_void, 1, (&raw mut resident).cast()) == 0 }
}

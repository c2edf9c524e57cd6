//! The tracker's own object: the VM marks through it and tells it of compaction.

use std::cell::{Cell, RefCell};

use magnus::typed_data::Obj;
use magnus::{DataTypeFunctions, Error, Ruby, TypedData, gc};
use rb_sys::VALUE;
use rustc_hash::FxHashMap;

use super::between_sessions;
use super::ruby_object::{self, Flags};
use super::symbols::symbols;
use super::tracker;

/// Has no contents: what it marks and moves is the tracker's.
///
/// It is not write-barrier protected, so that the VM marks through it in minor collections, too: what it marks may
/// be young.
#[derive(TypedData)]
#[magnus(class = "Memprof::Native::Guard", mark, compact, size)]
pub struct Guard;

impl DataTypeFunctions for Guard {
    fn mark(&self, _: &gc::Marker) {
        tracker::with(|tracker| {
            between_sessions::mark(tracker);
            for object in tracker.frames.pinned() {
                // SAFETY: in a mark function; the object was alive when it was noted and has been marked since.
                unsafe { rb_sys::rb_gc_mark(object) };
            }
        });
    }

    fn compact(&self, _: &gc::Compactor) {
        let pages = Pages::default();
        let moved = |address: u64| pages.location(address);
        tracker::with(|tracker| {
            tracker
                .recorder
                .relocate(moved, |address| ruby_object::slot_size(address as VALUE));
            tracker.recorder.sessions.threads_moved(moved);
            tracker.quiet.relocate(moved);
            tracker.frames.relocate(moved);
            tracker.classes.relocate(moved);
            tracker.places.clear();
        });
    }

    fn size(&self) -> usize {
        tracker::with(|tracker| tracker.recorder.memsize()).unwrap_or(0)
    }
}

/// Makes the object, and keeps it for as long as the process.
pub fn init(ruby: &Ruby) -> Result<(), Error> {
    let guard: Obj<Guard> = ruby.obj_wrap(Guard);
    ruby.gc_register_mark_object(guard);
    Ok(())
}

/// Tells where an object is after compaction. An entry of the tracker may be dead (Ruby drops death events of a thread
/// that is in another tool's hook) and its heap page given back, so a page is looked at before what is on it.
#[derive(Default)]
pub struct Pages {
    last: Cell<(u64, bool)>,
    mapped: RefCell<FxHashMap<u64, bool>>,
}

/// Pages of the operating system that are asked for one by one; no platform has smaller ones.
const OS_PAGE_BITS: u32 = 12;

impl Pages {
    fn location(&self, address: u64) -> Option<u64> {
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

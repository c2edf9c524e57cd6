//! The tracker's own object: the VM marks through it and reports compaction to it.

use magnus::typed_data::Obj;
use magnus::{DataTypeFunctions, Error, Ruby, TypedData, gc};
use rb_sys::VALUE;

use super::agent;
use super::between_sessions;
use super::heap_pages::HeapPages;
use super::ruby_object;
use super::sessions;
use super::tracker;

/// Has no contents: it marks and moves the tracker's references.
///
/// Not write-barrier protected, so that the VM marks through it in minor GCs, too: the objects it marks may be young.
#[derive(TypedData)]
#[magnus(class = "Memprof::Native::Guard", mark, compact, size)]
pub struct Guard;

impl DataTypeFunctions for Guard {
    fn mark(&self, _: &gc::Marker) {
        agent::mark();
        tracker::with(|tracker| {
            between_sessions::mark(tracker);
            for object in tracker.frames.pinned() {
                // SAFETY: in a mark function; the object was alive when it was noted and has been marked since.
                unsafe { rb_sys::rb_gc_mark(object) };
            }
        });
    }

    fn compact(&self, _: &gc::Compactor) {
        let pages = HeapPages::default();
        let moved = |address: u64| pages.location(address);
        agent::relocate(moved);
        tracker::with(|tracker| {
            tracker.recorder.relocate(moved, |address| ruby_object::slot_size(address as VALUE));
            tracker.recorder.sessions.threads_moved(moved);
            tracker.quiet.relocate(moved);
            tracker.frames.relocate(moved);
            tracker.classes.relocate(moved);
            tracker.identities.relocate(moved);
            for facts in tracker.facts.values_mut() {
                facts.older.iter_mut().for_each(|old| old.relocate(moved));
            }
            tracker.places.clear();
            tracker.hidden.clear();
        });
    }

    fn size(&self) -> usize {
        sessions::memsize()
    }
}

/// Allocates the object, and retains it for the lifetime of the process.
pub fn init(ruby: &Ruby) -> Result<(), Error> {
    let guard: Obj<Guard> = ruby.obj_wrap(Guard);
    ruby.gc_register_mark_object(guard);
    Ok(())
}

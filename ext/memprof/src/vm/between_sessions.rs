//! Keeps classes, frames and sites between sessions, as a server's next request uses them again.
//!
//! Without a session there is no hook, so no event reports classes and frames freed meanwhile, and an address may be reused for
//! another object. So they are marked and cannot be freed; those about to be freed by a sweep in progress are dropped at once.
//! Everything is dropped if it is too large, or after a few GCs without a session: tracking must not retain objects that a
//! program no longer uses.

use std::ffi::c_int;
use std::sync::OnceLock;

use rb_sys::VALUE;

use super::heap_pages::HeapPages;
use super::symbols::symbols;
use super::tracker::{self, Pause, Tracker};

/// Maximum bytes kept while no session is open.
const MOST: usize = 16 << 20;

/// GCs without a session after which everything is dropped.
const PATIENCE: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    Marking,
    Sweeping,
    /// This GC implementation does not report its phase.
    Unknown,
}

/// The last session was closed, and the hook removed. Not to be called inside [`tracker::with`].
pub fn pause() {
    let (phase, collections) = (phase(), collections());
    tracker::with(|tracker| {
        tracker.facts.clear();
        tracker.pause = Some(Pause { collections });
        if tracker::ractors_seen() || tracker.memsize() > MOST {
            forget(tracker);
        }
        match phase {
            Phase::Unknown => forget_addresses(tracker),
            Phase::Sweeping => forget_garbage(tracker, collections),
            // Objects marked by an object without write barriers are marked again when marking ends.
            Phase::Idle | Phase::Marking => {}
        }
    });
}

/// The hook was added again. Not to be called inside [`tracker::with`].
pub fn resume() {
    tracker::with(|tracker| {
        if tracker.pause.take().is_some() {
            tracker.recorder.sites.begin_epoch();
        }
    });
}

/// Marks the kept objects. Called in a mark function.
pub fn mark(tracker: &mut Tracker) {
    let Some(pause) = tracker.pause else { return };
    if collections().wrapping_sub(pause.collections) > PATIENCE {
        forget(tracker);
        return;
    }
    for object in (tracker.frames.addresses()).chain(tracker.classes.addresses()) {
        // SAFETY: takes any address: a free without an event leaves one that names no object, or another one.
        unsafe { rb_sys::rb_gc_mark_maybe(object) };
    }
}

/// Drops everything. There is no session.
fn forget(tracker: &mut Tracker) {
    tracker.recorder.forget();
    tracker.frames = Default::default();
    tracker.classes = Default::default();
    tracker.places = Default::default();
}

/// Drops all data keyed by addresses of VM objects.
pub fn forget_addresses(tracker: &mut Tracker) {
    tracker.frames.forget_known();
    tracker.classes = Default::default();
    tracker.identities.forget_addresses();
    tracker.places.clear();
}

/// Drops addresses of objects that the sweep in progress will free, as no hook would see that. Only once per sweep: objects met
/// later are not garbage.
fn forget_garbage(tracker: &mut Tracker, sweep: usize) {
    if tracker.swept == Some(sweep) {
        return;
    }
    tracker.swept = Some(sweep);
    let pages = HeapPages::default();
    let lives = |address: u64| pages.is_heap(address) && survives(address as VALUE);
    let frames = tracker.frames.keep(lives);
    if tracker.classes.keep(lives) || frames {
        tracker.places.clear();
    }
}

/// False if the sweep in progress may free the object, which is in a heap page. An object allocated since the sweep began is
/// not marked either; it is looked up again, which does no harm.
fn survives(object: VALUE) -> bool {
    let symbols = symbols();
    match (symbols.garbage_object_p, symbols.marked_object_p) {
        // SAFETY: an address in a page of the heap, with the GVL.
        (Some(garbage), _) => !unsafe { garbage(object) },
        // SAFETY: as above.
        (None, Some(marked)) => unsafe { marked(object) != 0 },
        (None, None) => false,
    }
}

fn collections() -> usize {
    // SAFETY: reads a counter.
    unsafe { rb_sys::rb_gc_count() as usize }
}

/// Names of the GC's phases.
struct Names {
    state: VALUE,
    none: VALUE,
    marking: VALUE,
    sweeping: VALUE,
}

/// Asks the GC for its phase. Implementations without this key raise.
fn phase() -> Phase {
    static NAMES: OnceLock<Names> = OnceLock::new();
    let names = NAMES.get_or_init(|| Names {
        state: symbol("state"),
        none: symbol("none"),
        marking: symbol("marking"),
        sweeping: symbol("sweeping"),
    });
    unsafe extern "C" fn ask(name: VALUE) -> VALUE {
        // SAFETY: called under rb_protect with a Symbol.
        unsafe { rb_sys::rb_gc_latest_gc_info(name) }
    }
    let mut raised: c_int = 0;
    // SAFETY: called outside hooks and with the GVL; what is raised stays here.
    let state = unsafe { rb_sys::rb_protect(Some(ask), names.state, &mut raised) };
    if raised != 0 {
        // SAFETY: drops the exception that rb_protect left.
        unsafe { rb_sys::rb_set_errinfo(rb_sys::Qnil as VALUE) };
        return Phase::Unknown;
    }
    match state {
        state if state == names.none => Phase::Idle,
        state if state == names.marking => Phase::Marking,
        state if state == names.sweeping => Phase::Sweeping,
        _ => Phase::Unknown,
    }
}

/// A Symbol that is never collected, as it comes from rb_intern.
fn symbol(name: &str) -> VALUE {
    // SAFETY: called outside hooks with the GVL; interns a name of ASCII.
    unsafe { rb_sys::rb_id2sym(rb_sys::rb_intern2(name.as_ptr().cast(), name.len() as _)) }
}

//! What is kept from the last session to the next: classes, frames and sites, which a server's next request meets again.
//!
//! Without a session there is no hook, so no event says which classes and frames are freed meanwhile, and an address may come
//! to name another object. So they are marked meanwhile, and cannot be freed; those that a sweep under way is going to free
//! are forgotten at once. All is dropped if it is too large, or if the collector has run a few times and no session was
//! opened: what a program no longer uses is not to live on because it was tracked once.

use std::ffi::c_int;
use std::sync::OnceLock;

use rb_sys::VALUE;

use super::heap_pages::HeapPages;
use super::symbols::symbols;
use super::tracker::{self, Pause, Tracker};

/// Bytes that may be kept while no session is open.
const MOST: usize = 16 << 20;

/// Collections without a session after which nothing is kept.
const PATIENCE: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    Marking,
    Sweeping,
    /// This collector does not report its phase.
    Unknown,
}

/// The last session is closed, and the hook is gone. Not to be called inside [`tracker::with`].
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
            // What is marked through an object without write barriers is marked again when marking ends.
            Phase::Idle | Phase::Marking => {}
        }
    });
}

/// The hook is back. Not to be called inside [`tracker::with`].
pub fn resume() {
    tracker::with(|tracker| {
        if tracker.pause.take().is_some() {
            tracker.recorder.sites.begin_epoch();
        }
    });
}

/// The VM marks. Called in a mark function.
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

/// Drops all that is kept. There is no session.
fn forget(tracker: &mut Tracker) {
    tracker.recorder.forget();
    tracker.frames = Default::default();
    tracker.classes = Default::default();
    tracker.places = Default::default();
}

/// Drops what names objects of the VM by address.
pub fn forget_addresses(tracker: &mut Tracker) {
    tracker.frames.forget_known();
    tracker.classes = Default::default();
    tracker.identities.forget_addresses();
    tracker.places.clear();
}

/// Drops the addresses of what the sweep under way is going to free: there is no hook that would see them freed. Once for each sweep:
/// what comes to be known later is not garbage.
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

/// False if the sweep under way may free the object, which lies in a page of the heap. An object made since the sweep
/// began is not marked either; it is looked up again, which does no harm.
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

/// Names of the collector's phases.
struct Names {
    state: VALUE,
    none: VALUE,
    marking: VALUE,
    sweeping: VALUE,
}

/// Asks the collector for its phase. One that knows no such question raises.
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

/// A Symbol that is never collected: rb_intern makes none that is.
fn symbol(name: &str) -> VALUE {
    // SAFETY: called outside hooks with the GVL; interns a name of ASCII.
    unsafe { rb_sys::rb_id2sym(rb_sys::rb_intern2(name.as_ptr().cast(), name.len() as _)) }
}

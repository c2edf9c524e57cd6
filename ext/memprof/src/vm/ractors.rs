//! Ruby before 3.1.4 crashes where a Ractor starts while objects or collections are hooked, as the VM looks for the frame of
//! a thread that has none yet (Bug #18464). So all hooks are suspended while there is more than one Ractor.
//!
//! `Memprof::Support` has the VM say when `Ractor.new` is called and returns, and switches this on for such a Ruby. Only the
//! main Ractor has hooks, and while it has, it is alone: so no other starts one. Whether it is alone again only Ruby code can
//! ask, which may be interrupted: so that is not done here, and what was found out counts only if no Ractor has started since.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::event_hook::EventHook;
use super::{hooks, trace};

/// Set for a Ruby that crashes.
static CRASHES: AtomicBool = AtomicBool::new(false);

/// There may be other Ractors.
static BESIDE: AtomicBool = AtomicBool::new(false);

/// Calls of `Ractor.new` that have not returned.
static STARTING: AtomicU32 = AtomicU32::new(0);

/// All calls of `Ractor.new`. These numbers change with the GVL, so no exchange is needed.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// Has hooks suspended from now on while there are several Ractors, as there may be now.
pub fn avoid() {
    BESIDE.store(true, Ordering::Relaxed);
    CRASHES.store(true, Ordering::Relaxed);
}

/// A Ractor is about to start: removes all hooks until it has ended. True if there were any. Not to be called in a hook.
pub fn starts() -> bool {
    STARTING.store(STARTING.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    note_start();
    // All of them: `any` would stop at the first.
    every_hook()
        .into_iter()
        .filter(|hook| hook.suspend())
        .count()
        > 0
}

/// As [`starts`], where the object of a Ractor is allocated: `Ractor.new` was called where the VM reports no calls, as in a
/// TracePoint. Called in a hook for objects, behind which the VM removes the hooks; but not before the end of a TracePoint
/// without a target, which is a hook of the same list.
#[cold]
pub fn is_allocated() {
    if avoided() {
        note_start();
        for hook in every_hook() {
            hook.suspend();
        }
    }
}

fn note_start() {
    BESIDE.store(true, Ordering::Relaxed);
    STARTED.store(
        STARTED.load(Ordering::Relaxed).wrapping_add(1),
        Ordering::Relaxed,
    );
}

/// It has started, and is counted; or it could not.
pub fn started() {
    // One that was under way when the VM began to say so is not counted.
    let count = STARTING.load(Ordering::Relaxed);
    STARTING.store(count.saturating_sub(1), Ordering::Relaxed);
}

/// What is to be given to [`alone`], if it is to be found out whether the main Ractor is.
pub fn doubt() -> Option<u32> {
    let doubt =
        avoided() && BESIDE.load(Ordering::Relaxed) && STARTING.load(Ordering::Relaxed) == 0;
    doubt.then(|| STARTED.load(Ordering::Relaxed))
}

/// The main Ractor was alone after [`doubt`]: hooks may be added again.
pub fn alone(doubt: u32) {
    if self::doubt() == Some(doubt) {
        BESIDE.store(false, Ordering::Relaxed);
    }
}

/// In the child of a fork no other thread is in `Ractor.new`.
pub fn after_fork() {
    STARTING.store(0, Ordering::Relaxed);
}

/// Whether this Ruby crashes.
#[inline]
pub fn avoided() -> bool {
    cfg!(not(ruby_gte_3_2)) && CRASHES.load(Ordering::Relaxed)
}

/// Whether there may be hooks now.
pub fn allow_hooks() -> bool {
    !(avoided() && BESIDE.load(Ordering::Relaxed))
}

fn every_hook() -> [&'static EventHook; 3] {
    let [objects, collections] = trace::hooks();
    [&hooks::HOOK, objects, collections]
}

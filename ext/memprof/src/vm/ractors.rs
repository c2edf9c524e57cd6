//! Ruby before 3.1.4 crashes if a Ractor starts while hooks for objects or GCs are installed, as the VM reads the frame of a
//! thread that has none yet (Bug #18464). So all hooks are suspended while there is more than one Ractor.
//!
//! `Memprof::Support` enables this for such a Ruby, and has the VM report calls and returns of `Ractor.new`. Only the main
//! Ractor has hooks, and only while it is alone, so no other one starts a Ractor. Whether it is alone again can only be checked
//! by Ruby code, which may be interrupted: so that is done elsewhere, and the result only counts if no Ractor has started
//! since.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::event_hook::EventHook;
use super::{agent, hooks, trace};

/// Set for a Ruby that crashes.
static CRASHES: AtomicBool = AtomicBool::new(false);

/// Whether there may be other Ractors.
static BESIDE: AtomicBool = AtomicBool::new(false);

/// Calls of `Ractor.new` that have not returned yet.
static STARTING: AtomicU32 = AtomicU32::new(0);

/// Number of calls of `Ractor.new`. These numbers change with the GVL, so no atomic exchange is needed.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// Suspends hooks from now on while there are several Ractors, as there may be now.
pub fn avoid() {
    BESIDE.store(true, Ordering::Relaxed);
    CRASHES.store(true, Ordering::Relaxed);
}

/// A Ractor is about to start: removes all hooks until it has ended. True if there were any. Not to be called in a hook.
pub fn starts() -> bool {
    STARTING.store(STARTING.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    note_start();
    agent::forbid();
    // All of them: `any` would stop at the first.
    every_hook().into_iter().filter(|hook| hook.suspend()).count() > 0
}

/// As [`starts`], when the object of a Ractor is allocated: `Ractor.new` was called where the VM reports no calls, such as in a
/// TracePoint. Called in an object hook, after which the VM removes the hooks; but not before the end of a TracePoint without a
/// target, which is a hook of the same list.
#[cold]
pub fn is_allocated() {
    if avoided() {
        note_start();
        agent::forbid();
        for hook in every_hook() {
            hook.suspend();
        }
    }
}

fn note_start() {
    BESIDE.store(true, Ordering::Relaxed);
    STARTED.store(STARTED.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

/// The Ractor has started and is counted, or failed to start.
pub fn started() {
    // A call already in progress when reporting began is not counted.
    let count = STARTING.load(Ordering::Relaxed);
    STARTING.store(count.saturating_sub(1), Ordering::Relaxed);
}

/// The argument for [`alone`], if a check whether the main Ractor is alone is needed.
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

/// Whether hooks are allowed now.
pub fn allow_hooks() -> bool {
    !(avoided() && BESIDE.load(Ordering::Relaxed))
}

fn every_hook() -> [&'static EventHook; 5] {
    let [objects, collections] = trace::hooks();
    [&hooks::HOOK, objects, collections, &agent::burst::HOOK, &agent::alive::HOOK]
}

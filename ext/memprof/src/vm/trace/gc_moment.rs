//! A point in time relative to GCs: objects alive then are still at their addresses as long as no GC has begun since.

use std::sync::OnceLock;

use rb_sys::VALUE;

use super::symbol;

/// Symbols to query the VM for the state of a GC.
struct Symbols {
    state: VALUE,
    marking: VALUE,
}

static SYMBOLS: OnceLock<Symbols> = OnceLock::new();

/// Queries once outside of a GC, which makes the VM create its result symbols.
pub fn init() {
    let symbols =
        SYMBOLS.get_or_init(|| Symbols { state: symbol(c"state"), marking: symbol(c"marking") });
    // SAFETY: called with the GVL; asked with a symbol, the VM answers with another.
    unsafe { rb_sys::rb_gc_latest_gc_info(symbols.state) };
}

/// A moment between two GCs, or during one.
#[derive(Clone, Copy)]
pub struct Moment {
    collections: u64,
    /// During marking, an object in use may be considered dead if its last reference is dropped before it is marked.
    marking: bool,
}

impl Moment {
    /// Called with the GVL, not in a hook.
    pub fn now() -> Self {
        // SAFETY: reads a counter.
        let collections = unsafe { rb_sys::rb_gc_count() } as u64;
        let marking = SYMBOLS.get().is_none_or(|symbols| {
            // SAFETY: asked with a symbol, the VM answers with another that `init` had it make.
            unsafe { rb_sys::rb_gc_latest_gc_info(symbols.state) == symbols.marking }
        });
        Moment { collections, marking }
    }

    /// Whether all objects alive then, and since, are still alive: earlier GCs can't free any of them.
    pub fn has_all_alive(self) -> bool {
        // SAFETY: reads a counter.
        !self.marking && self.collections == unsafe { rb_sys::rb_gc_count() } as u64
    }
}

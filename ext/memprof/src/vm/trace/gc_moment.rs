//! When something was noted, in collections of garbage: what was alive then is where it was as long as none has begun since.

use std::sync::OnceLock;

use rb_sys::VALUE;

use super::symbol;

/// Symbols by which the VM is asked how far a collection is.
struct Symbols {
    state: VALUE,
    marking: VALUE,
}

static SYMBOLS: OnceLock<Symbols> = OnceLock::new();

/// Asks once, outside of a collection: the VM makes the symbols that it answers with then.
pub fn init() {
    let symbols = SYMBOLS.get_or_init(|| Symbols {
        state: symbol(c"state"),
        marking: symbol(c"marking"),
    });
    // SAFETY: called with the GVL; asked with a symbol, the VM answers with another.
    unsafe { rb_sys::rb_gc_latest_gc_info(symbols.state) };
}

/// A moment between two collections, or in one.
#[derive(Clone, Copy)]
pub struct Moment {
    collections: u64,
    /// What is used now may be dead in the eyes of a collection that is marking, if it lets go of it before it is marked.
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
        Moment {
            collections,
            marking,
        }
    }

    /// Whether all that was alive then, and since, still is: collections that have begun before can take none of it.
    pub fn has_all_alive(self) -> bool {
        // SAFETY: reads a counter.
        !self.marking && self.collections == unsafe { rb_sys::rb_gc_count() } as u64
    }
}

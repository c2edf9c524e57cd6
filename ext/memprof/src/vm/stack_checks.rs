//! Whether each stack that was not read whole is compared with one that is. For tests: with `MEMPROF_CHECK_STACKS` set.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static RIGHT: AtomicU64 = AtomicU64::new(0);
static WRONG: AtomicU64 = AtomicU64::new(0);

/// Whether they are compared.
#[inline]
pub fn are_on() -> bool {
    static ON: OnceLock<bool> = OnceLock::new();
    *ON.get_or_init(|| std::env::var_os("MEMPROF_CHECK_STACKS").is_some())
}

/// One was compared.
pub fn count(is_right: bool) {
    let counter = if is_right { &RIGHT } else { &WRONG };
    counter.fetch_add(1, Relaxed);
}

/// Stacks that were right, and those that were not.
pub fn counted() -> (u64, u64) {
    (RIGHT.load(Relaxed), WRONG.load(Relaxed))
}

//! Compares each stack that was read incrementally with a full one. For tests, with `MEMPROF_CHECK_STACKS` set.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static RIGHT: AtomicU64 = AtomicU64::new(0);
static WRONG: AtomicU64 = AtomicU64::new(0);

/// Whether stacks are compared.
#[inline]
pub fn are_on() -> bool {
    static ON: OnceLock<bool> = OnceLock::new();
    *ON.get_or_init(|| std::env::var_os("MEMPROF_CHECK_STACKS").is_some())
}

/// Counts a comparison.
pub fn count(is_right: bool) {
    let counter = if is_right { &RIGHT } else { &WRONG };
    counter.fetch_add(1, Relaxed);
}

/// Numbers of correct and of wrong stacks.
pub fn counted() -> (u64, u64) {
    (RIGHT.load(Relaxed), WRONG.load(Relaxed))
}

//! Holds the engine's lock across a fork: otherwise a child forked in the middle of a change would inherit a lock that none
//! of its threads releases.

use std::cell::{Cell, UnsafeCell};
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::engine::{self, Engine};
use crate::at_fork::AtFork;

/// How long a fork waits for a thread that is changing the tables. Not forever: that thread may wait for the loader, and the
/// forking thread may hold the loader's lock.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether this process was forked while another thread was changing the tables.
static ORPHANED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static HAS_LOCK: Cell<bool> = const { Cell::new(false) };
}

struct Place(UnsafeCell<Option<MutexGuard<'static, Engine>>>);

// SAFETY: only the thread that has the lock, and so the guard, accesses it; HAS_LOCK says that it is this one.
unsafe impl Sync for Place {}

static GUARD: Place = Place(UnsafeCell::new(None));

/// Holds the engine's lock across a fork.
pub(crate) const AT_FORK: AtFork = AtFork {
    before: take,
    in_parent: || {
        release();
    },
    in_child: || {
        if !release() {
            ORPHANED.store(true, Relaxed);
        }
    },
};

pub(super) fn is_orphaned() -> bool {
    ORPHANED.load(Relaxed)
}

fn take() {
    let begun = Instant::now();
    loop {
        if let Some(guard) = engine::try_lock() {
            // SAFETY: this thread has the lock.
            unsafe { *GUARD.0.get() = Some(guard) };
            HAS_LOCK.set(true);
            return;
        }
        if is_orphaned() || begun.elapsed() > PATIENCE {
            return;
        }
        std::thread::sleep(Duration::from_micros(50));
    }
}

fn release() -> bool {
    let had_lock = HAS_LOCK.replace(false);
    if had_lock {
        // SAFETY: this thread has the lock, until the guard taken out here is dropped.
        drop(unsafe { (*GUARD.0.get()).take() });
    }
    had_lock
}

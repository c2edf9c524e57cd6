//! A fork in the middle of a change would leave the child with a lock that nobody opens.

use std::cell::{Cell, UnsafeCell};
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::engine::{self, Engine};

/// So long a fork waits for a thread that is changing the tables. Not forever: that thread may wait for the loader,
/// and the forking one may have the loader's lock.
const PATIENCE: Duration = Duration::from_secs(1);

/// This process is a child that was forked while another thread was changing the tables.
static ORPHANED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static HAS_LOCK: Cell<bool> = const { Cell::new(false) };
}

struct Place(UnsafeCell<Option<MutexGuard<'static, Engine>>>);

// SAFETY: only the thread that has the lock, and so the guard, looks inside; HAS_LOCK says that it is this one.
unsafe impl Sync for Place {}

static GUARD: Place = Place(UnsafeCell::new(None));

/// What a fork does to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// Take the lock: to be called before the fork.
    Before,
    /// Let go of it, in the process that goes on.
    InParent,
    /// Let go of it, in the new process.
    InChild,
}

/// To be called around a fork.
pub fn hold(when: Held) {
    match when {
        Held::Before => take(),
        Held::InParent => {
            let_go();
        }
        Held::InChild => {
            if !let_go() {
                ORPHANED.store(true, Relaxed);
            }
        }
    }
}

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

fn let_go() -> bool {
    let had_lock = HAS_LOCK.replace(false);
    if had_lock {
        // SAFETY: this thread has the lock, until the guard that is taken out here is dropped.
        drop(unsafe { (*GUARD.0.get()).take() });
    }
    had_lock
}

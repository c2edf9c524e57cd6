//! A lock for data that hooks share; a fork never leaves it locked.

use std::cell::UnsafeCell;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Relaxed, Release},
};

/// Guards data for a few instructions at a time. A forking thread holds it across the fork; both processes release it.
pub(crate) struct Lock<T> {
    is_taken: AtomicBool,
    data: UnsafeCell<T>,
}

// SAFETY: `with` hands out the data to one thread at a time.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    pub(crate) const fn new(data: T) -> Lock<T> {
        Lock { is_taken: AtomicBool::new(false), data: UnsafeCell::new(data) }
    }

    /// Runs `work` with the data. It must not fork, call back into a hook, or wait for anything.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        struct Taken<'a, T>(&'a Lock<T>);
        impl<T> Drop for Taken<'_, T> {
            fn drop(&mut self) {
                self.0.release();
            }
        }
        self.take();
        let taken = Taken(self);
        // SAFETY: this thread has taken the lock, and releases it only when `work` is done.
        work(unsafe { &mut *taken.0.data.get() })
    }

    /// Takes the lock, to be released by [`Lock::release`].
    pub(crate) fn take(&self) {
        while self.is_taken.compare_exchange_weak(false, true, Acquire, Relaxed).is_err() {
            std::thread::yield_now();
        }
    }

    /// Only the thread that took the lock may call this, or the child that it forked.
    pub(crate) fn release(&self) {
        self.is_taken.store(false, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time() {
        static SUM: Lock<u64> = Lock::new(0);
        let add = || (0..10_000).for_each(|_| SUM.with(|sum| *sum += 1));
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(add))));
        assert_eq!(SUM.with(|sum| *sum), 40_000);
    }

    #[test]
    fn a_panic_releases_it() {
        static LOCK: Lock<()> = Lock::new(());
        let panicked = std::panic::catch_unwind(|| LOCK.with(|()| panic!("on purpose")));
        assert!(panicked.is_err());
        LOCK.with(|()| ());
    }
}

//! The recorder's memory of each thread. When a thread has ended, another one reuses it.

use std::cell::UnsafeCell;

use super::pages;
use super::sampling::Sampler;
use super::site_cache::SiteCache;
use super::stack_cache::StackCache;
use super::tallies::Tallies;
use crate::counters;

/// All zero: new.
pub(super) struct ThreadMemory {
    /// The thread's counts, which others may read.
    pub tallies: Tallies,
    own: UnsafeCell<Own>,
}

/// Data that only the thread itself accesses.
pub(super) struct Own {
    pub sites: SiteCache,
    pub stacks: StackCache,
    pub sampler: Sampler,
}

impl ThreadMemory {
    /// Maps new memory; null if out of memory.
    pub(super) fn map() -> *mut ThreadMemory {
        pages::map(1)
    }

    /// The thread's own part.
    ///
    /// # Safety
    ///
    /// The memory is the calling thread's, which has entered the recorder, and drops the result before it asks again or leaves.
    #[inline(always)]
    #[allow(clippy::mut_from_ref, reason = "one at a time, as the caller promises")]
    pub(super) unsafe fn own(&self) -> &mut Own {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.own.get() }
    }
}

/// The memory of the calling thread. None if out of memory.
#[inline(always)]
pub(super) fn of(thread: &counters::Block) -> Option<&ThreadMemory> {
    thread.recorder_memory(ThreadMemory::map)
}

/// The thread's tallies.
#[inline(always)]
pub(super) fn tallies(thread: &counters::Block) -> Option<&Tallies> {
    of(thread).map(|memory| &memory.tallies)
}

const _: () = assert!(align_of::<ThreadMemory>() <= 4096, "pages are aligned to that");

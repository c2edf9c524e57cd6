//! The counters of a site.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{Counts, sampling};

/// The sums counted at a site.
pub(super) type Sums = [u64; SUMS];
pub(super) const ALLOCATIONS: usize = 0;
pub(super) const ALLOCATED_BYTES: usize = 1;
pub(super) const FREES: usize = 2;
pub(super) const FREED_BYTES: usize = 3;
pub(super) const AGES: usize = 4;
pub(super) const SUMS: usize = 5;

/// The counters of a site. Other threads may read them during counting.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) sums: [AtomicU64; SUMS],
    /// The sums at the last reset, including those of threads.
    pub(super) at_reset: [AtomicU64; SUMS],
    pub(super) max_lifespan: AtomicU64,
}

impl Counters {
    pub(super) fn add(&self, sums: Sums) {
        for (sum, amount) in self.sums.iter().zip(sums) {
            if amount > 0 {
                sum.fetch_add(amount, Relaxed);
            }
        }
    }

    /// The sums, including `elsewhere`, which threads have counted on their own.
    pub(super) fn sums(&self, elsewhere: Sums) -> Sums {
        std::array::from_fn(|at| self.sums[at].load(Relaxed).wrapping_add(elsewhere[at]))
    }

    pub(super) fn counts(&self, elsewhere: Sums) -> Counts {
        let sums = self.sums(elsewhere);
        let since = |at: usize| sums[at].wrapping_sub(self.at_reset[at].load(Relaxed));
        let scale = sampling::scale();
        Counts {
            allocations: scale.blocks(since(ALLOCATIONS)),
            allocated_bytes: scale.bytes(since(ALLOCATED_BYTES)),
            frees: scale.blocks(since(FREES)),
            freed_bytes: scale.bytes(since(FREED_BYTES)),
            age_total: scale.blocks(since(AGES)),
            max_lifespan: self.max_lifespan.load(Relaxed),
            live: scale.blocks(sums[ALLOCATIONS].saturating_sub(sums[FREES])),
            live_bytes: scale.bytes(sums[ALLOCATED_BYTES].saturating_sub(sums[FREED_BYTES])),
        }
    }
}

//! Counts of one thread. Adding to a counter shared with other threads takes six nanoseconds, to an unshared one just one.

use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Relaxed, Release},
};

use super::site_counters::{SUMS, Sums};
use super::sites::{self, SiteId};

/// The running recording's number.
static RECORDING: AtomicU64 = AtomicU64::new(1);

/// Assigns all tallies so far to an earlier recording.
pub(super) fn start_recording() {
    RECORDING.fetch_add(1, Relaxed);
}

/// The running recording's number, starting at 1.
#[inline(always)]
pub(super) fn recording() -> u64 {
    RECORDING.load(Relaxed)
}

/// A thread's counts for a site, not yet added to the site's counters. Only the thread writes, in the recorder.
#[repr(align(64))]
pub(super) struct Tally {
    /// The site's number + 1; 0: no site.
    owner: AtomicU32,
    /// Number of times that another site wanted the slot.
    challenges: AtomicU32,
    sums: [AtomicU64; SUMS],
}

impl Tally {
    /// Adds to a sum; only one thread may do so.
    #[inline(always)]
    pub(super) fn add(&self, sum: usize, amount: u64) {
        let sum = &self.sums[sum];
        sum.store(sum.load(Relaxed).wrapping_add(amount), Relaxed);
    }

    fn read(&self) -> Sums {
        std::array::from_fn(|at| self.sums[at].load(Relaxed))
    }

    fn clear(&self) {
        self.sums.iter().for_each(|sum| sum.store(0, Relaxed));
    }
}

const PLACES: usize = 256;
/// Number of attempts after which a site takes over another one's slot.
const PATIENCE: u32 = 64;

/// A slot for each of the sites that a thread counts most often. All zero: empty.
pub(super) struct Tallies {
    /// The recording that the tallies belong to.
    recording: AtomicU64,
    places: [Tally; PLACES],
}

impl Tallies {
    /// The tally of a site; None if another site has its slot.
    ///
    /// The calling thread must be in the recorder.
    #[inline(always)]
    pub(super) fn of(&self, site: SiteId) -> Option<&Tally> {
        let tally = &self.places[site.0 as usize % PLACES];
        if tally.owner.load(Relaxed) == site.0 + 1 && self.recording.load(Relaxed) == recording() {
            return Some(tally);
        }
        self.claim(tally, site)
    }

    #[cold]
    fn claim<'a>(&self, tally: &'a Tally, site: SiteId) -> Option<&'a Tally> {
        let recording = recording();
        if self.recording.load(Relaxed) != recording {
            for tally in &self.places {
                tally.owner.store(0, Relaxed);
                tally.clear();
            }
            self.recording.store(recording, Release);
        }
        if let Some(owner) = tally.owner.load(Relaxed).checked_sub(1) {
            let challenges = tally.challenges.load(Relaxed) + 1;
            tally.challenges.store(challenges % PATIENCE, Relaxed);
            if challenges < PATIENCE {
                return None;
            }
            sites::move_here(SiteId(owner), || {
                let sums = tally.read();
                tally.clear();
                tally.owner.store(0, Relaxed);
                sums
            });
        }
        tally.owner.store(site.0 + 1, Relaxed);
        Some(tally)
    }

    /// The counts of a site in this recording. The lock of the sites is held.
    pub(super) fn sums_of(&self, site: SiteId) -> Sums {
        let tally = &self.places[site.0 as usize % PLACES];
        let is_its = tally.owner.load(Relaxed) == site.0 + 1;
        if is_its && self.recording.load(Relaxed) == recording() {
            tally.read()
        } else {
            Sums::default()
        }
    }

    /// Visits all counts of this recording. The lock of the sites is held.
    pub(super) fn each(&self, mut visit: impl FnMut(SiteId, Sums)) {
        if self.recording.load(Relaxed) != recording() {
            return;
        }
        for tally in &self.places {
            if let Some(site) = tally.owner.load(Relaxed).checked_sub(1) {
                visit(SiteId(site), tally.read());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Location;
    use memprof_recording::Weight;

    use super::super::sites::{count_allocation, count_free, counts, intern_location};
    use super::super::thread_memory::ThreadMemory;
    use crate::counters;

    #[test]
    fn no_count_is_lost_when_sites_share_a_place() {
        let memory = counters::mine().recorder_memory(ThreadMemory::map).unwrap();
        let tallies = Some(&memory.tallies);
        let sites: Vec<_> = (0..1_000)
            .map(|number| intern_location(Location::Native(0x7777_0000 + number)).unwrap())
            .collect();
        let weight = |bytes| Weight { blocks: 1, bytes };
        for round in 0..200u64 {
            for (number, &site) in sites.iter().enumerate() {
                count_allocation(tallies, site, weight(round));
                if number % 3 == 0 {
                    count_free(tallies, site, weight(round), 2);
                }
            }
        }
        for (number, &site) in sites.iter().enumerate() {
            let counts = counts(&[site]);
            let freed = if number % 3 == 0 { 200 } else { 0 };
            assert_eq!((counts.allocations, counts.allocated_bytes), (200, 19_900));
            assert_eq!((counts.frees, counts.age_total), (freed, 2 * freed));
            assert_eq!(counts.live, 200 - freed);
        }
    }
}

//! Counts of one thread. To add to a counter that other threads add to takes six nanoseconds, and to one's own takes one.

use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Relaxed, Release},
};

use super::site_counters::{SUMS, Sums};
use super::sites::{self, SiteId};

/// The running recording's number.
static RECORDING: AtomicU64 = AtomicU64::new(1);

/// What was tallied up to now belongs to an earlier recording.
pub(super) fn start_recording() {
    RECORDING.fetch_add(1, Relaxed);
}

/// The running recording's number, the first of which is 1.
#[inline(always)]
pub(super) fn recording() -> u64 {
    RECORDING.load(Relaxed)
}

/// What a thread has counted at a site, and not yet added to the site's counters. Only the thread writes, in the recorder.
#[repr(align(64))]
pub(super) struct Tally {
    /// The site's number + 1; 0: none.
    owner: AtomicU32,
    /// How often another site wanted the place.
    challenges: AtomicU32,
    sums: [AtomicU64; SUMS],
}

impl Tally {
    /// Adds; no other thread does.
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
/// A site that wants a place that another one has gets it at that try.
const PATIENCE: u32 = 64;

/// A place for each of the sites that a thread counts at most often. All zero: empty.
pub(super) struct Tallies {
    /// The recording that they belong to.
    recording: AtomicU64,
    places: [Tally; PLACES],
}

impl Tallies {
    /// The tally of a site; None if its place is another site's.
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

    /// What was counted at a site in this recording. The lock of the sites is held.
    pub(super) fn sums_of(&self, site: SiteId) -> Sums {
        let tally = &self.places[site.0 as usize % PLACES];
        let is_its = tally.owner.load(Relaxed) == site.0 + 1;
        if is_its && self.recording.load(Relaxed) == recording() {
            tally.read()
        } else {
            Sums::default()
        }
    }

    /// Visits what was counted in this recording. The lock of the sites is held.
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

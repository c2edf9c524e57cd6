//! Where blocks are allocated: a line of Ruby, or an address of native code; and the counters of each such site.
//!
//! Threads count in [`Tallies`] of their own; what these have no place for is counted here. A site's counts are the sum.

use std::collections::HashMap;
use std::ffi::{CStr, c_char};
use std::ptr;
use std::sync::atomic::{
    AtomicPtr, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use super::tallies::Tallies;
use super::thread_memory::ThreadMemory;
use super::{Counts, Line, Location, Site, pages, sampling};
use crate::counters;
use crate::lock::Lock;

/// A site's number. The first is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SiteId(pub u32);

/// What a block counts for: itself, or in a recording of samples more than itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Weight {
    pub blocks: u64,
    pub bytes: u64,
}

/// What is counted at a site.
pub(super) type Sums = [u64; SUMS];
pub(super) const ALLOCATIONS: usize = 0;
pub(super) const ALLOCATED_BYTES: usize = 1;
pub(super) const FREES: usize = 2;
pub(super) const FREED_BYTES: usize = 3;
pub(super) const AGES: usize = 4;
pub(super) const SUMS: usize = 5;

/// The counters of a site. Others read them while threads count.
#[derive(Default)]
struct Counters {
    sums: [AtomicU64; SUMS],
    /// The sums at the last reset, those of threads included.
    at_reset: [AtomicU64; SUMS],
    max_lifespan: AtomicU64,
}

impl Counters {
    fn add(&self, sums: Sums) {
        for (sum, amount) in self.sums.iter().zip(sums) {
            if amount > 0 {
                sum.fetch_add(amount, Relaxed);
            }
        }
    }

    /// `elsewhere` is what threads have counted on their own.
    fn sums(&self, elsewhere: Sums) -> Sums {
        std::array::from_fn(|at| self.sums[at].load(Relaxed).wrapping_add(elsewhere[at]))
    }

    fn counts(&self, elsewhere: Sums) -> Counts {
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

const SITES_A_CHUNK: usize = 1024;
const CHUNKS: usize = 8 * 1024 - 1;
type Chunk = [Counters; SITES_A_CHUNK];

static COUNTERS: [AtomicPtr<Chunk>; CHUNKS] = [const { AtomicPtr::new(ptr::null_mut()) }; CHUNKS];
static COUNT: AtomicU32 = AtomicU32::new(0);

/// The locations by number, and back. A path is kept for as long as the process lives: caches name it by address.
struct Locations {
    ids: Option<HashMap<Location, SiteId>>,
    all: Vec<Location>,
}

/// Its lock is held, too, while counts move from a thread to the site, and while they are read.
static LOCATIONS: Lock<Locations> = Lock::new(Locations {
    ids: None,
    all: Vec::new(),
});

/// The site of a location. None if there are as many sites as there may be, or no memory. Allocates; what this library
/// allocates is not recorded.
#[cold]
pub(super) fn intern(location: Location) -> Option<SiteId> {
    LOCATIONS.with(|locations| {
        let Locations { ids, all } = locations;
        let ids = ids.get_or_insert_default();
        if let Some(id) = ids.get(&location) {
            return Some(*id);
        }
        let id = SiteId(u32::try_from(all.len()).ok()?);
        let chunk = COUNTERS.get(id.0 as usize / SITES_A_CHUNK)?;
        if chunk.load(Relaxed).is_null() {
            let counters: *mut Chunk = pages::map(1);
            if counters.is_null() {
                return None;
            }
            chunk.store(counters, Release);
        }
        all.push(location.clone());
        ids.insert(location, id);
        COUNT.store(id.0 + 1, Release);
        Some(id)
    })
}

/// The location of a line.
///
/// # Safety
///
/// The path ends with a NUL, and stays as it is meanwhile.
pub(super) unsafe fn line(line: Line) -> Location {
    Location::Line {
        // SAFETY: the caller's.
        path: unsafe { CStr::from_ptr(line.path) }.to_owned(),
        line: line.line,
    }
}

/// The site of a location that was met already.
pub(super) fn find(location: &Location) -> Option<SiteId> {
    LOCATIONS.with(|locations| locations.ids.as_ref()?.get(location).copied())
}

/// The location of a site.
pub(super) fn location(site: SiteId) -> Location {
    LOCATIONS.with(|locations| locations.all[site.0 as usize].clone())
}

/// The text of a site's path; null if it is native code. Locations are never dropped, and the text of a CString does not
/// move with it.
pub(super) fn path_of(site: SiteId) -> *const c_char {
    LOCATIONS.with(|locations| match &locations.all[site.0 as usize] {
        Location::Line { path, .. } => path.as_ptr(),
        Location::Native(_) => ptr::null(),
    })
}

fn all() -> impl Iterator<Item = SiteId> {
    (0..COUNT.load(Acquire)).map(SiteId)
}

#[inline(always)]
fn counters(site: SiteId) -> &'static Counters {
    let (chunk, place) = (
        site.0 as usize / SITES_A_CHUNK,
        site.0 as usize % SITES_A_CHUNK,
    );
    // SAFETY: a site has its number only once its chunk is mapped (`intern`), and chunks are never unmapped; zeroed bytes
    // are valid counters.
    unsafe { &(*COUNTERS[chunk].load(Acquire))[place] }
}

/// A block was allocated by a thread that has these tallies.
#[inline(always)]
pub(super) fn count_allocation(tallies: Option<&Tallies>, site: SiteId, weight: Weight) {
    match tallies.and_then(|tallies| tallies.of(site)) {
        Some(tally) => {
            tally.add(ALLOCATIONS, weight.blocks);
            tally.add(ALLOCATED_BYTES, weight.bytes);
        }
        None => counters(site).add([weight.blocks, weight.bytes, 0, 0, 0]),
    }
}

/// A block was freed at that age, in generations.
#[inline(always)]
pub(super) fn count_free(tallies: Option<&Tallies>, site: SiteId, weight: Weight, age: u64) {
    match tallies.and_then(|tallies| tallies.of(site)) {
        Some(tally) => {
            tally.add(FREES, weight.blocks);
            tally.add(FREED_BYTES, weight.bytes);
            tally.add(AGES, age * weight.blocks);
        }
        None => counters(site).add([0, 0, weight.blocks, weight.bytes, age * weight.blocks]),
    }
    if age > 0 {
        let longest = &counters(site).max_lifespan;
        if age > longest.load(Relaxed) {
            longest.fetch_max(age, Relaxed);
        }
    }
}

/// Moves what a thread has counted to the site, while no other thread reads. `take` returns it, and zeroes it there.
pub(super) fn move_here(site: SiteId, take: impl FnOnce() -> Sums) {
    LOCATIONS.with(|_| counters(site).add(take()));
}

/// What threads have counted on their own. The lock is held meanwhile.
fn memories() -> impl Iterator<Item = &'static ThreadMemory> {
    counters::blocks().filter_map(|block| block.existing_recorder_memory())
}

fn tallied_of(site: SiteId) -> Sums {
    let mut sums = Sums::default();
    for memory in memories() {
        add(&mut sums, memory.tallies.sums_of(site));
    }
    sums
}

fn tallied() -> Vec<Sums> {
    let mut all = vec![Sums::default(); COUNT.load(Acquire) as usize];
    for memory in memories() {
        memory.tallies.each(|site, more| {
            if let Some(sums) = all.get_mut(site.0 as usize) {
                add(sums, more);
            }
        });
    }
    all
}

fn add(sums: &mut Sums, more: Sums) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum = sum.wrapping_add(more);
    }
}

/// What was counted at a site.
pub(super) fn counts(site: SiteId) -> Counts {
    LOCATIONS.with(|_| counters(site).counts(tallied_of(site)))
}

/// All sites where something was counted.
pub(super) fn counted() -> Vec<Site> {
    LOCATIONS.with(|locations| {
        let sites = locations.all.iter().zip(tallied()).zip(all());
        let sites = sites.map(|((location, sums), site)| (location, counters(site).counts(sums)));
        sites
            .filter(|(_, counts)| *counts != Counts::default())
            .map(|(location, counts)| Site {
                location: location.clone(),
                counts,
            })
            .collect()
    })
}

/// Counts from zero again; what is live stays so.
pub(super) fn reset() {
    LOCATIONS.with(|_| {
        for (site, sums) in all().zip(tallied()) {
            let counters = counters(site);
            for (at_reset, sum) in counters.at_reset.iter().zip(counters.sums(sums)) {
                at_reset.store(sum, Relaxed);
            }
            counters.max_lifespan.store(0, Relaxed);
        }
    });
}

/// Forgets all counts. Those of threads are of an earlier recording from now on.
pub(super) fn clear() {
    LOCATIONS.with(|_| {
        super::tallies::start_recording();
        for counters in all().map(counters) {
            counters.sums.iter().for_each(|sum| sum.store(0, Relaxed));
            counters
                .at_reset
                .iter()
                .for_each(|sum| sum.store(0, Relaxed));
            counters.max_lifespan.store(0, Relaxed);
        }
    });
}

/// Takes the lock, for a fork.
pub(super) fn hold() {
    LOCATIONS.take();
}

/// Releases it, in the parent and in the child.
pub(super) fn release() {
    LOCATIONS.release();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(bytes: u64) -> Weight {
        Weight { blocks: 1, bytes }
    }

    #[test]
    fn counters_add_up() {
        let site = intern(Location::Native(0xdead_0000)).unwrap();
        count_allocation(None, site, block(100));
        count_allocation(None, site, block(50));
        count_free(None, site, block(100), 3);
        count_free(None, site, block(50), 1);
        let expected = Counts {
            allocations: 2,
            allocated_bytes: 150,
            frees: 2,
            freed_bytes: 150,
            age_total: 4,
            max_lifespan: 3,
            live: 0,
            live_bytes: 0,
        };
        assert_eq!(counts(site), expected);
        assert_eq!(find(&Location::Native(0xdead_0000)), Some(site));
        count_allocation(None, site, block(7));
        reset();
        let expected = Counts {
            live: 1,
            live_bytes: 7,
            ..Counts::default()
        };
        assert_eq!(counts(site), expected);
    }
}

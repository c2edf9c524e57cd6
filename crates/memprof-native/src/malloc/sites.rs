//! Where blocks are allocated: a line of Ruby, or an address of native code; and the counters of each such site.

use std::collections::HashMap;
use std::ffi::{CStr, c_char};
use std::ptr;
use std::sync::atomic::{
    AtomicPtr, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use super::{Counts, Line, Location, pages};
use crate::lock::Lock;

/// A site's number. The first is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SiteId(pub u32);

/// The counters of a site. Others read them while threads count.
#[derive(Default)]
struct Counters {
    sums: [AtomicU64; SUMS],
    /// The sums at the last reset.
    at_reset: [AtomicU64; SUMS],
    max_lifespan: AtomicU64,
}

const ALLOCATIONS: usize = 0;
const ALLOCATED_BYTES: usize = 1;
const FREES: usize = 2;
const FREED_BYTES: usize = 3;
const AGES: usize = 4;
const SUMS: usize = 5;

impl Counters {
    #[inline(always)]
    fn add(&self, sum: usize, amount: u64) {
        self.sums[sum].fetch_add(amount, Relaxed);
    }

    fn counts(&self) -> Counts {
        let sums: [u64; SUMS] = std::array::from_fn(|at| self.sums[at].load(Relaxed));
        let since = |at: usize| sums[at].wrapping_sub(self.at_reset[at].load(Relaxed));
        Counts {
            allocations: since(ALLOCATIONS),
            allocated_bytes: since(ALLOCATED_BYTES),
            frees: since(FREES),
            freed_bytes: since(FREED_BYTES),
            age_total: since(AGES),
            max_lifespan: self.max_lifespan.load(Relaxed),
            live: sums[ALLOCATIONS].saturating_sub(sums[FREES]),
            live_bytes: sums[ALLOCATED_BYTES].saturating_sub(sums[FREED_BYTES]),
        }
    }
}

const SITES_A_CHUNK: usize = 1024;
const CHUNKS: usize = 16 * 1024;
type Chunk = [Counters; SITES_A_CHUNK];

static COUNTERS: [AtomicPtr<Chunk>; CHUNKS] = [const { AtomicPtr::new(ptr::null_mut()) }; CHUNKS];
static COUNT: AtomicU32 = AtomicU32::new(0);

/// The locations by number, and back. A path is kept for as long as the process lives: caches name it by address.
struct Locations {
    ids: Option<HashMap<Location, SiteId>>,
    all: Vec<Location>,
}

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

/// All sites that there are now.
pub(super) fn all() -> impl Iterator<Item = SiteId> {
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

#[inline(always)]
pub(super) fn count_allocation(site: SiteId, size: u64) {
    let counters = counters(site);
    counters.add(ALLOCATIONS, 1);
    counters.add(ALLOCATED_BYTES, size);
}

/// A block was freed at that age, in generations.
#[inline(always)]
pub(super) fn count_free(site: SiteId, size: u64, age: u64) {
    let counters = counters(site);
    counters.add(FREES, 1);
    counters.add(FREED_BYTES, size);
    if age > 0 {
        counters.add(AGES, age);
        if age > counters.max_lifespan.load(Relaxed) {
            counters.max_lifespan.fetch_max(age, Relaxed);
        }
    }
}

/// What was counted at a site.
pub(super) fn counts(site: SiteId) -> Counts {
    counters(site).counts()
}

/// Counts from zero again; what is live stays so.
pub(super) fn reset() {
    for counters in all().map(counters) {
        for (sum, at_reset) in counters.sums.iter().zip(&counters.at_reset) {
            at_reset.store(sum.load(Relaxed), Relaxed);
        }
        counters.max_lifespan.store(0, Relaxed);
    }
}

/// Forgets all counts.
pub(super) fn clear() {
    for counters in all().map(counters) {
        counters.sums.iter().for_each(|sum| sum.store(0, Relaxed));
        counters
            .at_reset
            .iter()
            .for_each(|sum| sum.store(0, Relaxed));
        counters.max_lifespan.store(0, Relaxed);
    }
}

/// Takes the lock, for a fork.
pub(super) fn hold() {
    LOCATIONS.take();
}

/// Releases it, in the parent and in the child.
pub(super) fn release() {
    LOCATIONS.release();
}

/// The last sites of a thread, by the address of the path and the line. The path's text is compared as well, as another
/// one may have come to its address.
pub(super) struct Cache([Cached; CACHED]);

#[derive(Clone, Copy)]
struct Cached {
    /// The path's address, or that of native code.
    address: usize,
    line: u32,
    site: SiteId,
    /// The path of the site, which is never freed; null for native code.
    path: *const c_char,
}

const CACHED: usize = 512;

impl Cache {
    /// A cache of zeroes, which is an empty one; null without memory.
    pub(super) fn map() -> *mut Cache {
        pages::map(1)
    }

    /// The site of a line.
    ///
    /// # Safety
    ///
    /// `path` ends with a NUL, and stays as it is meanwhile.
    #[inline(always)]
    pub(super) unsafe fn line(&mut self, path: *const c_char, line: u32) -> Option<SiteId> {
        let cached = &mut self.0[place(path as usize, line)];
        if cached.address == path as usize && cached.line == line && !cached.path.is_null() {
            // SAFETY: the caller's path, and one of a site.
            if unsafe { libc::strcmp(cached.path, path) } == 0 {
                return Some(cached.site);
            }
        }
        // SAFETY: the caller's path.
        let site = intern(unsafe { self::line(Line { path, line }) })?;
        *cached = Cached {
            address: path as usize,
            line,
            site,
            path: path_of(site),
        };
        Some(site)
    }

    /// The site of native code.
    #[inline(always)]
    pub(super) fn native(&mut self, address: usize) -> Option<SiteId> {
        let cached = &mut self.0[place(address, 0)];
        if cached.address == address && cached.path.is_null() {
            return Some(cached.site);
        }
        let site = intern(Location::Native(address))?;
        *cached = Cached {
            address,
            line: 0,
            site,
            path: ptr::null(),
        };
        Some(site)
    }
}

#[inline(always)]
fn place(address: usize, line: u32) -> usize {
    let mixed = (address as u64 ^ u64::from(line) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 55) as usize % CACHED
}

/// The text of a site's path. Locations are never dropped, and the text of a CString does not move with it.
fn path_of(site: SiteId) -> *const c_char {
    LOCATIONS.with(|locations| match &locations.all[site.0 as usize] {
        Location::Line { path, .. } => path.as_ptr(),
        Location::Native(_) => ptr::null(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(path: &CStr, line: u32) -> Location {
        Location::Line {
            path: path.to_owned(),
            line,
        }
    }

    #[test]
    fn a_cache_names_the_same_sites() {
        // SAFETY: mapped here, and never unmapped.
        let cache = unsafe { &mut *Cache::map() };
        for round in 0..3 {
            for number in 1..3_000u32 {
                // SAFETY: a literal.
                let site = unsafe { cache.line(c"/app/a.rb".as_ptr(), number) }.unwrap();
                assert_eq!(location(site), line(c"/app/a.rb", number), "round {round}");
                let site = cache.native(number as usize * 4).unwrap();
                assert_eq!(location(site), Location::Native(number as usize * 4));
            }
        }
    }

    #[test]
    fn another_path_at_the_same_address_is_another_site() {
        // SAFETY: mapped here, and never unmapped.
        let cache = unsafe { &mut *Cache::map() };
        let mut text = *b"/app/one.rb\0";
        // SAFETY: both times a text with a NUL behind it.
        let one = unsafe { cache.line(text.as_ptr().cast(), 7) }.unwrap();
        text[5..8].copy_from_slice(b"two");
        // SAFETY: as above.
        let two = unsafe { cache.line(text.as_ptr().cast(), 7) }.unwrap();
        assert_eq!(location(one), line(c"/app/one.rb", 7));
        assert_eq!(location(two), line(c"/app/two.rb", 7));
    }

    #[test]
    fn counters_add_up() {
        let site = intern(Location::Native(0xdead_0000)).unwrap();
        count_allocation(site, 100);
        count_allocation(site, 50);
        count_free(site, 100, 3);
        count_free(site, 50, 1);
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
        count_allocation(site, 7);
        reset();
        let expected = Counts {
            live: 1,
            live_bytes: 7,
            ..Counts::default()
        };
        assert_eq!(counts(site), expected);
    }
}

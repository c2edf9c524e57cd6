//! Allocation sites: a line of Ruby or an address of native code, each with its callers if stacks are recorded, and the
//! counters of each site.
//!
//! Threads count in their own [`Tallies`]; counts that do not fit there are added here. A site's counts are the sum.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char};
use std::ptr;
use std::sync::atomic::{
    AtomicPtr, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

use memprof_recording::Weight;

use super::site_counters::{
    AGES, ALLOCATED_BYTES, ALLOCATIONS, Counters, FREED_BYTES, FREES, Sums,
};
use super::tallies::Tallies;
use super::thread_memory::ThreadMemory;
use super::{Counts, Frame, Line, Location, Site, pages};
use crate::counters;
use crate::lock::Lock;

/// A site's number, starting at 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct SiteId(pub u32);

const SITES_A_CHUNK: usize = 1024;
const CHUNKS: usize = 8 * 1024 - 1;
type Chunk = [Counters; SITES_A_CHUNK];

static COUNTERS: [AtomicPtr<Chunk>; CHUNKS] = [const { AtomicPtr::new(ptr::null_mut()) }; CHUNKS];
static COUNT: AtomicU32 = AtomicU32::new(0);

/// A site is a node in the tree of stacks: a frame and its caller's site.
struct Node {
    /// The caller's number + 1; 0: no caller, or none recorded.
    caller: u32,
    frame: u32,
    /// The frame with the site's location: the innermost line of user code, else of Ruby, else native code.
    at: u32,
    /// Number of interpreter frames in the stack that ends here.
    depth: u32,
}

/// Limit on stack nodes, about 200 MB. Beyond it, only the line of a new stack is recorded.
const MOST_NODES: usize = 1 << 20;

/// Maps sites to numbers and back. Frames are never dropped: caches refer to their paths by address.
#[derive(Default)]
struct Table {
    nodes: Vec<Node>,
    /// Sites by caller and frame, as in [`Node`].
    ids: HashMap<(u32, u32), SiteId>,
    frames: Vec<Frame>,
    frame_ids: HashMap<Frame, u32>,
    /// The sites whose stacks end at a location.
    at: HashMap<Location, Vec<SiteId>>,
}

/// Number of interpreter frames wanted per stack.
static WANTED: AtomicU32 = AtomicU32::new(u32::MAX);

/// Prepares for a new recording.
pub(super) fn want(frames: usize) {
    WANTED.store(u32::try_from(frames).unwrap_or(u32::MAX).max(1), Relaxed);
}

/// The lock is also held while counts move from a thread to the site, and while they are read.
static TABLE: Lock<Option<Table>> = Lock::new(None);

fn with_table<T>(work: impl FnOnce(&mut Table) -> T) -> T {
    TABLE.with(|table| work(table.get_or_insert_default()))
}

/// The site of a frame with this caller. None if there are too many sites, or no memory is left. Allocates; this library's
/// own allocations are not recorded.
#[cold]
pub(super) fn intern(caller: Option<SiteId>, frame: Frame) -> Option<SiteId> {
    with_table(|table| {
        let frame = table.frame(frame)?;
        let caller = caller.map_or(0, |caller| caller.0 + 1);
        if let Some(id) = table.ids.get(&(caller, frame)) {
            return Some(*id);
        }
        if caller > 0 && table.nodes.len() >= MOST_NODES {
            return None;
        }
        let id = SiteId(u32::try_from(table.nodes.len()).ok()?);
        let chunk = COUNTERS.get(id.0 as usize / SITES_A_CHUNK)?;
        if chunk.load(Relaxed).is_null() {
            let counters: *mut Chunk = pages::map(1);
            if counters.is_null() {
                return None;
            }
            chunk.store(counters, Release);
        }
        let at = table.location_of(caller, frame);
        let depth = table.depth_of(caller, frame);
        table.nodes.push(Node { caller, frame, at, depth });
        table.ids.insert((caller, frame), id);
        let location = table.frames[at as usize].location.clone();
        table.at.entry(location).or_default().push(id);
        COUNT.store(id.0 + 1, Release);
        Some(id)
    })
}

/// The site of a location without its callers.
pub(super) fn intern_location(location: Location) -> Option<SiteId> {
    let method = CString::default();
    intern(None, Frame { location, method })
}

impl Table {
    fn frame(&mut self, frame: Frame) -> Option<u32> {
        if let Some(id) = self.frame_ids.get(&frame) {
            return Some(*id);
        }
        let id = u32::try_from(self.frames.len()).ok()?;
        self.frames.push(frame.clone());
        self.frame_ids.insert(frame, id);
        Some(id)
    }

    /// The frame that gives a site with this caller and frame its location.
    fn location_of(&self, caller: u32, frame: u32) -> u32 {
        let origin = |frame: u32| self.frames[frame as usize].location.origin();
        let callers = caller.checked_sub(1);
        let callers = callers.map(|caller| self.nodes[caller as usize].at);
        callers.filter(|&at| origin(at) > origin(frame)).unwrap_or(frame)
    }

    fn is_native(&self, frame: u32) -> bool {
        matches!(self.frames[frame as usize].location, Location::Native(_))
    }

    fn depth_of(&self, caller: u32, frame: u32) -> u32 {
        let callers = caller.checked_sub(1);
        let depth = callers.map_or(0, |caller| self.nodes[caller as usize].depth);
        depth + u32::from(!self.is_native(frame))
    }

    /// The wanted frames of a stack, innermost first: `wanted` interpreter frames, and the native ones up to the next.
    fn innermost(&self, site: SiteId, wanted: u32) -> impl Iterator<Item = u32> {
        let mut left = wanted;
        let mut next = Some(site.0);
        std::iter::from_fn(move || {
            let node = &self.nodes[next? as usize];
            if !self.is_native(node.frame) {
                left = left.checked_sub(1)?;
            }
            next = node.caller.checked_sub(1);
            Some(node.frame)
        })
    }

    fn location(&self, site: SiteId) -> &Location {
        &self.frames[self.nodes[site.0 as usize].at as usize].location
    }
}

/// The location of a line.
///
/// # Safety
///
/// The path is NUL-terminated and stays unchanged meanwhile.
pub(super) unsafe fn line(line: Line) -> Location {
    Location::Line {
        // SAFETY: the caller's promise.
        path: unsafe { CStr::from_ptr(line.path) }.to_owned(),
        line: line.line,
    }
}

/// The known sites of a location.
pub(super) fn find(location: &Location) -> Vec<SiteId> {
    with_table(|table| table.at.get(location).cloned().unwrap_or_default())
}

/// The site of a stack's caller, and the innermost frame.
pub(super) fn node(site: SiteId) -> (Option<SiteId>, Frame) {
    with_table(|table| {
        let node = &table.nodes[site.0 as usize];
        let caller = node.caller.checked_sub(1).map(SiteId);
        (caller, table.frames[node.frame as usize].clone())
    })
}

/// The wanted frames of a stack, innermost first, if it has more than those.
pub(super) fn cut(site: SiteId) -> Option<Vec<Frame>> {
    with_table(|table| {
        let wanted = WANTED.load(Relaxed);
        (table.nodes[site.0 as usize].depth > wanted).then(|| {
            let frames = table.innermost(site, wanted);
            frames.map(|frame| table.frames[frame as usize].clone()).collect()
        })
    })
}

/// The text of a site's path; null for native code. Frames are never dropped, and moving a CString does not move its text.
pub(super) fn path_of(site: SiteId) -> *const c_char {
    with_table(|table| match table.location(site) {
        Location::Line { path, .. } => path.as_ptr(),
        Location::Native(_) => ptr::null(),
    })
}

fn all() -> impl Iterator<Item = SiteId> {
    (0..COUNT.load(Acquire)).map(SiteId)
}

#[inline(always)]
fn counters(site: SiteId) -> &'static Counters {
    let (chunk, place) = (site.0 as usize / SITES_A_CHUNK, site.0 as usize % SITES_A_CHUNK);
    // SAFETY: a site gets its number only after its chunk is mapped (`intern`), and chunks are never unmapped; zeroed bytes
    // are valid counters.
    unsafe { &(*COUNTERS[chunk].load(Acquire))[place] }
}

/// Counts a block allocated by a thread with these tallies.
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

/// Counts a block freed at this age, in generations.
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

/// Moves a thread's counts to the site, while no other thread reads. `take` returns and zeroes them.
pub(super) fn move_here(site: SiteId, take: impl FnOnce() -> Sums) {
    TABLE.with(|_| counters(site).add(take()));
}

/// The memory of all threads, with counts of their own. The lock must be held.
fn memories() -> impl Iterator<Item = &'static ThreadMemory> {
    counters::blocks().filter_map(|block| block.existing_recorder_memory())
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

/// The total counts of these sites.
pub(super) fn counts(sites: &[SiteId]) -> Counts {
    TABLE.with(|_| {
        let mut all = Counts::default();
        for &site in sites {
            let mut elsewhere = Sums::default();
            for memory in memories() {
                add(&mut elsewhere, memory.tallies.sums_of(site));
            }
            all.add(counters(site).counts(elsewhere));
        }
        all
    })
}

/// All locations with counts.
pub(super) fn counted() -> Vec<Site> {
    let mut found: HashMap<Location, Counts> = HashMap::new();
    with_table(|table| {
        for (site, sums) in all().zip(tallied()) {
            let counts = counters(site).counts(sums);
            if counts != Counts::default() {
                let location = table.location(site);
                match found.get_mut(location) {
                    Some(sum) => sum.add(counts),
                    None => {
                        found.insert(location.clone(), counts);
                    }
                }
            }
        }
    });
    found.into_iter().map(|(location, counts)| Site { location, counts }).collect()
}

/// The sites with counts as a tree, whose stacks have as many frames as are wanted; and the counts.
pub(super) fn tree() -> (Vec<Frame>, Vec<memprof_recording::Node>, Vec<(u32, Counts)>) {
    with_table(|table| {
        let wanted = WANTED.load(Relaxed);
        let mut nodes = Vec::new();
        let mut ids: HashMap<(Option<u32>, u32), u32> = HashMap::new();
        let mut found: HashMap<u32, Counts> = HashMap::new();
        let mut frames = Vec::new();
        for (site, sums) in all().zip(tallied()) {
            let counts = counters(site).counts(sums);
            if counts == Counts::default() {
                continue;
            }
            frames.clear();
            frames.extend(table.innermost(site, wanted));
            let outermost_first = frames.iter().rev();
            let node = outermost_first.fold(None, |parent, &frame| {
                Some(*ids.entry((parent, frame)).or_insert_with(|| {
                    nodes.push(memprof_recording::Node { parent, frame });
                    nodes.len() as u32 - 1
                }))
            });
            if let Some(node) = node {
                found.entry(node).or_default().add(counts);
            }
        }
        (table.frames.clone(), nodes, found.into_iter().collect())
    })
}

/// Resets the counts to zero; live blocks stay live.
pub(super) fn reset() {
    TABLE.with(|_| {
        for (site, sums) in all().zip(tallied()) {
            let counters = counters(site);
            for (at_reset, sum) in counters.at_reset.iter().zip(counters.sums(sums)) {
                at_reset.store(sum, Relaxed);
            }
            counters.max_lifespan.store(0, Relaxed);
        }
    });
}

/// Clears all counts. Those of threads now belong to an earlier recording.
pub(super) fn clear() {
    TABLE.with(|_| {
        super::tallies::start_recording();
        for counters in all().map(counters) {
            counters.sums.iter().for_each(|sum| sum.store(0, Relaxed));
            counters.at_reset.iter().for_each(|sum| sum.store(0, Relaxed));
            counters.max_lifespan.store(0, Relaxed);
        }
    });
}

/// Takes the lock for a fork.
pub(super) fn hold() {
    TABLE.take();
}

/// Releases the lock, in the parent and in the child.
pub(super) fn release() {
    TABLE.release();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(bytes: u64) -> Weight {
        Weight { blocks: 1, bytes }
    }

    #[test]
    fn counters_add_up() {
        let site = intern_location(Location::Native(0xdead_0000)).unwrap();
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
        assert_eq!(counts(&[site]), expected);
        assert_eq!(find(&Location::Native(0xdead_0000)), [site]);
        count_allocation(None, site, block(7));
        reset();
        let expected = Counts { live: 1, live_bytes: 7, ..Counts::default() };
        assert_eq!(counts(&[site]), expected);
    }
}

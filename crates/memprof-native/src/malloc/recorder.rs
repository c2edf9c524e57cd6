//! The recording that runs, if any.

use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Mutex, PoisonError};

use super::block_table::{Block, GENERATION_BITS};
use super::blocks;
use super::sites::{self, Cache, SiteId};
use super::{Counts, Host, LiveBlock, Location, Site};
use crate::at_fork::AtFork;
use crate::counters;
use crate::interpose;
use crate::tracers::memory;
use crate::{Refused, trace};

static RECORDS: AtomicBool = AtomicBool::new(false);
/// Whether some thread is quiet.
static QUIET: AtomicBool = AtomicBool::new(false);
/// Blocks that were not recorded: in a signal handler that interrupted the recorder, or without memory.
static MISSED: AtomicU64 = AtomicU64::new(0);
static HOST: AtomicPtr<Host> = AtomicPtr::new(std::ptr::null_mut());
/// Held while a recording starts or stops.
static SWITCH: Mutex<()> = Mutex::new(());

/// Starts recording, from nothing. False if a recording runs already, which goes on.
///
/// # Errors
///
/// When calls of the allocator can't be interposed in this process.
pub fn start(host: &'static Host) -> Result<bool, Refused> {
    let _switch = SWITCH.lock().unwrap_or_else(PoisonError::into_inner);
    if RECORDS.load(Relaxed) {
        return Ok(false);
    }
    if let Some(why) = memory::obstacle() {
        return Err(Refused::Unsupported(why));
    }
    trace::watch_forks();
    reading(|| {
        blocks::clear();
        sites::clear();
    });
    MISSED.store(0, Relaxed);
    HOST.store(std::ptr::from_ref(host).cast_mut(), Release);
    interpose::install(&[&memory::HOOKS])?;
    RECORDS.store(true, Release);
    Ok(true)
}

/// Stops recording; what was recorded can be read until the next start. False if none runs.
pub fn stop() -> bool {
    let _switch = SWITCH.lock().unwrap_or_else(PoisonError::into_inner);
    if !RECORDS.swap(false, Relaxed) {
        return false;
    }
    interpose::remove(&[&memory::HOOKS]);
    true
}

/// Whether a recording runs.
#[inline(always)]
#[must_use]
pub fn is_recording() -> bool {
    RECORDS.load(Relaxed)
}

/// Says whether there are threads that are not to be recorded.
pub fn set_quiet(quiet: bool) {
    QUIET.store(quiet, Relaxed);
}

/// Counts from zero again. Live blocks stay known, and count when they are freed.
pub fn reset() {
    reading(sites::reset);
}

/// Takes locks of the tables in `work`, which a signal handler of this thread that allocates must not wait for.
fn reading<T: Default>(work: impl FnOnce() -> T) -> T {
    let thread = counters::mine();
    if !thread.enter_recorder() {
        return T::default();
    }
    let result = work();
    thread.leave_recorder();
    result
}

/// All sites where something was counted.
#[must_use]
pub fn sites() -> Vec<Site> {
    let counted = sites::all().map(|site| (site, sites::counts(site)));
    let counted = counted.filter(|(_, counts)| *counts != Counts::default());
    let site = |(site, counts)| Site {
        location: sites::location(site),
        counts,
    };
    reading(|| counted.map(site).collect())
}

/// What was counted at a location; None if nothing was ever allocated there.
#[must_use]
pub fn counts(location: &Location) -> Option<Counts> {
    reading(|| sites::find(location).map(sites::counts))
}

/// The live blocks of a location, in no order.
#[must_use]
pub fn live_blocks(location: &Location) -> Vec<LiveBlock> {
    reading(|| {
        let mut found = Vec::new();
        if let Some(site) = sites::find(location) {
            let now = generation();
            blocks::each(|block| {
                if block.site == site {
                    found.push(LiveBlock {
                        size: block.size,
                        age: age(block, now),
                    });
                }
            });
        }
        found
    })
}

/// Blocks that could not be recorded.
#[must_use]
pub fn missed() -> u64 {
    MISSED.load(Relaxed)
}

/// Bytes that the recorder itself takes for live blocks.
#[must_use]
pub fn memsize() -> usize {
    reading(blocks::memsize)
}

/// A block was allocated. `caller` is the address behind the call of the allocator.
#[inline(never)]
pub(crate) fn allocated(address: usize, size: u64, caller: usize) {
    if address == 0 {
        return;
    }
    let thread = counters::mine();
    if !thread.enter_recorder() {
        MISSED.fetch_add(1, Relaxed);
        return;
    }
    record(thread, address, size, caller);
    thread.leave_recorder();
}

#[inline(always)]
fn record(thread: &counters::Block, address: usize, size: u64, caller: usize) {
    let Some(host) = host() else { return };
    if QUIET.load(Relaxed) && (host.is_quiet)() {
        return;
    }
    let Some(site) = site(thread, host, caller) else {
        MISSED.fetch_add(1, Relaxed);
        return;
    };
    let block = Block {
        size,
        site,
        generation: (host.generation)() & GENERATIONS,
    };
    match blocks::insert(address, block) {
        Ok(None) => {}
        // It was freed unseen.
        Ok(Some(before)) => count_free(before, block.generation),
        Err(_) => {
            MISSED.fetch_add(1, Relaxed);
            return;
        }
    }
    sites::count_allocation(site, size);
}

/// A block is about to be freed.
#[inline(never)]
pub(crate) fn freed(address: usize) {
    if let Some(block) = forget(address) {
        count_free(block, generation());
    }
}

/// A block is about to be reallocated, and may be somebody else's as soon as it is: it is forgotten meanwhile.
pub(crate) fn forget(address: usize) -> Option<Block> {
    let thread = counters::mine();
    if address == 0 || !thread.enter_recorder() {
        return None;
    }
    let block = blocks::remove(address);
    thread.leave_recorder();
    block
}

/// The reallocation is over: the block is where it was if it failed, or is freed.
pub(crate) fn reallocated(before: Option<Block>, from: usize, to: usize, size: u64, caller: usize) {
    if to != 0 || size == 0 {
        if let Some(block) = before {
            count_free(block, generation());
        }
        allocated(to, size, caller);
    } else if let Some(block) = before {
        let thread = counters::mine();
        if thread.enter_recorder() {
            let _ = blocks::insert(from, block);
            thread.leave_recorder();
        }
    }
}

const GENERATIONS: u32 = (1 << GENERATION_BITS) - 1;

fn count_free(block: Block, now: u32) {
    sites::count_free(block.site, block.size, u64::from(age(block, now)));
}

fn age(block: Block, now: u32) -> u32 {
    now.wrapping_sub(block.generation) & GENERATIONS
}

#[inline(always)]
fn host() -> Option<&'static Host> {
    // SAFETY: null, or the address of a static (`start`).
    unsafe { HOST.load(Acquire).as_ref() }
}

fn generation() -> u32 {
    host().map_or(0, |host| (host.generation)())
}

#[inline(always)]
fn site(thread: &counters::Block, host: &Host, caller: usize) -> Option<SiteId> {
    let line = (host.line)();
    let Some(cache) = thread.sites(Cache::map) else {
        return sites::intern(match line {
            // SAFETY: the host's path.
            Some(line) => unsafe { sites::line(line) },
            None => Location::Native(caller),
        });
    };
    match line {
        // SAFETY: the host's path.
        Some(line) => unsafe { cache.line(line.path, line.line) },
        None => cache.native(caller),
    }
}

/// Locks are held around a fork, so that the child finds whole tables. Meanwhile the thread counts as being in the recorder:
/// other libraries' functions around the fork may allocate. A thread that forks in a signal handler that interrupted the
/// recorder can't wait for its own locks: its child does not record.
pub(crate) const AT_FORK: AtFork = AtFork {
    before: || {
        let thread = counters::mine();
        if thread.enter_recorder() {
            sites::hold();
            blocks::hold();
            thread.set_forks(true);
        }
    },
    in_parent: || {
        after_fork();
    },
    in_child: || {
        if !after_fork() {
            RECORDS.store(false, Relaxed);
            blocks::release();
            sites::release();
        }
    },
};

/// False if the locks were not held.
fn after_fork() -> bool {
    let thread = counters::mine();
    let held = thread.forks();
    if held {
        thread.set_forks(false);
        blocks::release();
        sites::release();
        thread.leave_recorder();
    }
    held
}

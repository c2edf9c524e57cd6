//! The running recording, if any.

use std::io;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Mutex, PoisonError};

use super::block_entry::{Block, GENERATION_BITS};
use super::sites::{self, SiteId};
use super::stream::{self, Stream};
use super::{Host, Settings};
use super::{block_shards, probes, sampling, site_cache, stack_cache, thread_memory};
use crate::at_fork::AtFork;
use crate::counters;
use crate::interpose;
use crate::tracers::memory;
use crate::{Refused, trace};

static RECORDS: AtomicBool = AtomicBool::new(false);
/// Whether some thread is quiet.
static QUIET: AtomicBool = AtomicBool::new(false);
/// Blocks that were not recorded: in a signal handler that interrupted the recorder, or out of memory.
static MISSED: AtomicU64 = AtomicU64::new(0);
static HOST: AtomicPtr<Host> = AtomicPtr::new(std::ptr::null_mut());
/// Held while a recording starts or stops.
static SWITCH: Mutex<()> = Mutex::new(());

/// Starts a new recording. False if one is running already, which continues.
///
/// # Errors
///
/// When allocator calls can't be interposed in this process.
pub fn start(host: &'static Host, settings: Settings) -> Result<bool, Refused> {
    start_recording(host, settings, None)
}

/// Starts a recording that is written to a file as it runs.
///
/// # Errors
///
/// As for [`start`], and if the file can't be written.
pub fn start_stream(
    host: &'static Host,
    settings: Settings,
    stream: Stream,
) -> Result<bool, Refused> {
    start_recording(host, settings, Some(stream))
}

fn start_recording(
    host: &'static Host,
    settings: Settings,
    stream: Option<Stream>,
) -> Result<bool, Refused> {
    let _switch = SWITCH.lock().unwrap_or_else(PoisonError::into_inner);
    if RECORDS.load(Relaxed) {
        return Ok(false);
    }
    if let Some(why) = memory::obstacle() {
        return Err(Refused::Unsupported(why));
    }
    trace::watch_forks();
    stack_cache::prepare(settings);
    reading(|| {
        block_shards::clear();
        sites::clear();
        site_cache::start();
        sampling::set_period(settings.sample.map(|bytes| u64::from(bytes.get())));
    });
    MISSED.store(0, Relaxed);
    HOST.store(std::ptr::from_ref(host).cast_mut(), Release);
    if let Some(stream) = stream {
        stream::start(stream).map_err(|error| Refused::File(error.to_string()))?;
    }
    if let Err(why) = interpose::install(&[&memory::HOOKS]) {
        let _ = stream::finish();
        return Err(why);
    }
    RECORDS.store(true, Release);
    Ok(true)
}

/// Stops recording; the results remain readable until the next start. False if no recording is running.
///
/// # Errors
///
/// When the recording could not be written completely to its file. It was stopped nevertheless.
pub fn stop() -> io::Result<bool> {
    let _switch = SWITCH.lock().unwrap_or_else(PoisonError::into_inner);
    if !RECORDS.swap(false, Relaxed) {
        return Ok(false);
    }
    interpose::remove(&[&memory::HOOKS]);
    stream::finish()?;
    Ok(true)
}

/// Whether a recording is running.
#[inline(always)]
#[must_use]
pub fn is_recording() -> bool {
    RECORDS.load(Relaxed)
}

/// Sets whether there are threads that are not to be recorded.
pub fn set_quiet(quiet: bool) {
    QUIET.store(quiet, Relaxed);
}

/// Resets the counts to zero. Live blocks stay known, and count when they are freed.
pub fn reset() {
    reading(sites::reset);
}

/// Runs `work`, which locks tables; an allocating signal handler of this thread must not wait for those locks.
pub(super) fn reading<T: Default>(work: impl FnOnce() -> T) -> T {
    let thread = counters::mine();
    if !thread.enter_recorder() {
        return T::default();
    }
    let result = work();
    thread.leave_recorder();
    result
}

/// Mean number of bytes between samples; None if all blocks are recorded.
#[must_use]
pub fn sample() -> Option<u64> {
    sampling::period()
}

/// Number of blocks that could not be recorded.
#[must_use]
pub fn missed() -> u64 {
    MISSED.load(Relaxed)
}

/// Records an allocated block. `caller` is the address after the allocator call.
#[inline(always)]
pub(crate) fn allocated(address: usize, size: u64, caller: usize) {
    if !sampling::is_on() || sampling::may_be_sample(counters::mine(), size) {
        record(address, size, caller);
    }
}

#[inline(never)]
fn record(address: usize, size: u64, caller: usize) {
    if address == 0 {
        return;
    }
    block_shards::prefetch(address);
    let thread = counters::mine();
    if !thread.enter_recorder() {
        MISSED.fetch_add(1, Relaxed);
        return;
    }
    if !sampling::is_on() || sampling::is_sample(thread, size) {
        record_inside(thread, address, size, caller);
    }
    thread.leave_recorder();
}

#[inline(always)]
fn record_inside(thread: &counters::Block, address: usize, size: u64, caller: usize) {
    let Some(host) = host() else { return };
    if QUIET.load(Relaxed) && (host.is_quiet)() {
        return;
    }
    let Some(site) = site(thread, host, caller) else {
        MISSED.fetch_add(1, Relaxed);
        return;
    };
    if site == site_cache::OWN {
        return;
    }
    let block =
        Block { size, site, generation: (host.generation)() & GENERATIONS, holds_code: false };
    match block_shards::insert(address, block) {
        Ok(None) => {}
        // Its free was not seen.
        Ok(Some(before)) => count_free(thread, address, before, block.generation),
        Err(_) => {
            MISSED.fetch_add(1, Relaxed);
            return;
        }
    }
    stream::push(address, site, size, false);
    let weight = sampling::weight(size);
    sites::count_allocation(thread_memory::tallies(thread), site, weight);
    if sampling::is_on() {
        probes::allocated(address, size, sampling::scale().bytes(weight.bytes));
    }
}

/// Records that a block is about to be freed.
#[inline(always)]
pub(crate) fn freed(address: usize) {
    if is_unknown(address) {
        return;
    }
    free_recorded(address);
}

#[inline(never)]
fn free_recorded(address: usize) {
    block_shards::prefetch(address);
    let thread = counters::mine();
    if address == 0 || !thread.enter_recorder() {
        return;
    }
    if let Some(block) = block_shards::remove(address) {
        count_free(thread, address, block, generation());
    }
    thread.leave_recorder();
}

/// Whether a block is certainly not in the table.
#[inline(always)]
fn is_unknown(address: usize) -> bool {
    sampling::is_on() && !sampling::may_be_known(address)
}

/// Forgets a block during its reallocation, which may hand its address to another thread.
pub(crate) fn forget(address: usize) -> Option<Block> {
    let thread = counters::mine();
    if address == 0 || is_unknown(address) || !thread.enter_recorder() {
        return None;
    }
    let block = block_shards::remove(address);
    thread.leave_recorder();
    block
}

/// Records a finished reallocation: if it failed, the block is where it was, else it was freed.
pub(crate) fn reallocated(before: Option<Block>, from: usize, to: usize, size: u64, caller: usize) {
    let is_freed = to != 0 || size == 0;
    if let Some(block) = before {
        let thread = counters::mine();
        if thread.enter_recorder() {
            if is_freed {
                count_free(thread, from, block, generation());
            } else {
                let _ = block_shards::insert(from, block);
            }
            thread.leave_recorder();
        }
    }
    if is_freed {
        allocated(to, size, caller);
    }
}

const GENERATIONS: u32 = (1 << GENERATION_BITS) - 1;

/// Counts a block that was removed from the table. The thread is in the recorder.
#[inline(always)]
fn count_free(thread: &counters::Block, address: usize, block: Block, now: u32) {
    if block.holds_code {
        site_cache::forget_positions();
    }
    if block.is_recorded() {
        if sampling::is_on() {
            probes::freed(address);
        }
        stream::push(address, block.site, block.size, true);
        sites::count_free(
            thread_memory::tallies(thread),
            block.site,
            sampling::weight(block.size),
            u64::from(age(block, now)),
        );
    }
}

pub(super) fn age(block: Block, now: u32) -> u32 {
    now.wrapping_sub(block.generation) & GENERATIONS
}

#[inline(always)]
fn host() -> Option<&'static Host> {
    // SAFETY: null, or the address of a static (`start`).
    unsafe { HOST.load(Acquire).as_ref() }
}

pub(super) fn generation() -> u32 {
    host().map_or(0, |host| (host.generation)())
}

#[inline(always)]
fn site(thread: &counters::Block, host: &Host, caller: usize) -> Option<SiteId> {
    match thread_memory::of(thread) {
        Some(memory) => {
            // SAFETY: the thread's own memory; it is in the recorder (`record`).
            let own = unsafe { memory.own() };
            let stack = if stack_cache::is_on() { own.stacks.site(host, caller) } else { None };
            stack.or_else(|| own.sites.site(host, caller))
        }
        None => site_cache::site_without_cache(host, caller),
    }
}

/// Locks are held across a fork, so that the child finds consistent tables. Meanwhile the thread counts as being in the
/// recorder: other libraries' functions around the fork may allocate. A thread that forks in a signal handler that
/// interrupted the recorder can't wait for its own locks: its child does not record.
pub(crate) const AT_FORK: AtFork = AtFork {
    before: || {
        let thread = counters::mine();
        if thread.enter_recorder() {
            sites::hold();
            block_shards::hold();
            stream::hold();
            thread.set_forks(true);
        }
    },
    in_parent: || {
        after_fork();
    },
    in_child: || {
        stream::abandon();
        if !after_fork() {
            RECORDS.store(false, Relaxed);
            stream::release();
            block_shards::release();
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
        stream::release();
        block_shards::release();
        sites::release();
        thread.leave_recorder();
    }
    held
}

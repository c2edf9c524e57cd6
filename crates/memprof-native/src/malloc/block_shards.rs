//! Live blocks by address: the site that allocated them, their size, and their GC generation.
//!
//! The table is split into shards by page, each with its own lock, since threads free each other's blocks.

use std::cell::UnsafeCell;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use super::block_entry::{Block, Entry, key_of};
use super::block_table::{self, NoMemory, Table};
use super::sampling;

/// A part of the table, with its lock. Shards don't share a cache line.
#[repr(align(64))]
struct Shard {
    is_locked: AtomicBool,
    table: UnsafeCell<Table>,
    /// The table's outline, readable without the lock.
    entries: AtomicPtr<Entry>,
    groups: AtomicU64,
}

// SAFETY: `table` is only accessed while the lock is held (`with`).
unsafe impl Sync for Shard {}

impl Shard {
    #[inline(always)]
    fn lock(&self) {
        while self.is_locked.compare_exchange_weak(false, true, Acquire, Relaxed).is_err() {
            std::thread::yield_now();
        }
    }

    #[inline(always)]
    fn unlock(&self) {
        self.is_locked.store(false, Release);
    }

    #[inline(always)]
    fn with<R>(&self, work: impl FnOnce(&mut Table) -> R) -> R {
        self.lock();
        // SAFETY: the lock is held; `work` does not panic, and does not call back here.
        let result = work(unsafe { &mut *self.table.get() });
        self.unlock();
        result
    }
}

const SHARDS: usize = 128;
static TABLE: [Shard; SHARDS] = [const {
    Shard {
        is_locked: AtomicBool::new(false),
        table: UnsafeCell::new(Table::new()),
        entries: AtomicPtr::new(std::ptr::null_mut()),
        groups: AtomicU64::new(0),
    }
}; SHARDS];

#[inline(always)]
fn shard(address: usize) -> &'static Shard {
    let page = (address as u64 >> 12).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    &TABLE[(page >> 57) as usize]
}

/// Prefetches the entry of a block that is about to be inserted or removed.
#[inline(always)]
pub(super) fn prefetch(address: usize) {
    let shard = shard(address);
    let outline = (shard.entries.load(Relaxed), shard.groups.load(Relaxed));
    block_table::prefetch(outline, key_of(address));
}

/// Records a block; returns an earlier one at this address, whose free was not seen.
#[inline(always)]
pub(super) fn insert(address: usize, block: Block) -> Result<Option<Block>, NoMemory> {
    let shard = shard(address);
    let before = shard.with(|table| {
        let before = table.insert(Entry::new(address, block));
        let (entries, groups) = table.outline();
        shard.entries.store(entries, Relaxed);
        shard.groups.store(groups, Relaxed);
        before
    })?;
    if before.is_none() {
        sampling::added(address);
    }
    Ok(before)
}

/// Notes that a block contains code, even one that was not recorded. It must be live.
pub(super) fn mark_code(address: usize) -> Result<(), NoMemory> {
    if shard(address).with(|table| table.mark_code(address))? {
        sampling::added(address);
    }
    Ok(())
}

/// Forgets a block. None if it is unknown: it was allocated before the recording, or is not a sample.
#[inline(always)]
pub(super) fn remove(address: usize) -> Option<Block> {
    let block = shard(address).with(|table| table.remove(key_of(address)));
    if block.is_some() {
        sampling::removed(address);
    }
    block
}

/// Visits all live blocks, one shard at a time. `visit` must not make recorded allocations.
pub(super) fn each(mut visit: impl FnMut(Block)) {
    for shard in &TABLE {
        shard.with(|table| table.each(&mut visit));
    }
}

/// Forgets all blocks and releases their memory.
pub(super) fn clear() {
    TABLE.iter().for_each(|shard| shard.with(Table::clear));
}

/// Bytes used by the table.
pub(super) fn memsize() -> usize {
    let sizes = TABLE.iter().map(|shard| shard.with(|table| table.memsize()));
    sizes.sum()
}

/// Takes all locks for a fork, so that no other thread is in the middle of a change.
pub(super) fn hold() {
    TABLE.iter().for_each(Shard::lock);
}

/// Releases the locks, in the parent and in the child.
pub(super) fn release() {
    TABLE.iter().for_each(Shard::unlock);
}

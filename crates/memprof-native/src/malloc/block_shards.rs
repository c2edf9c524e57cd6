//! Live blocks by address: which site allocated them, how large they are, and in which GC generation.
//!
//! The table is cut into shards by page, each with a lock of its own, since one thread frees what another allocated.

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
    /// The table's outline, for those that don't hold the lock.
    entries: AtomicPtr<Entry>,
    groups: AtomicU64,
}

// SAFETY: `table` is only touched while the lock is held (`with`).
unsafe impl Sync for Shard {}

impl Shard {
    #[inline(always)]
    fn lock(&self) {
        while self
            .is_locked
            .compare_exchange_weak(false, true, Acquire, Relaxed)
            .is_err()
        {
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
        // SAFETY: the lock is held; `work` does not panic, and does not come back here.
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

/// Has the processor fetch the place of a block, which is inserted or removed next.
#[inline(always)]
pub(super) fn prefetch(address: usize) {
    let shard = shard(address);
    let outline = (shard.entries.load(Relaxed), shard.groups.load(Relaxed));
    block_table::prefetch(outline, key_of(address));
}

/// Records a block; returns the one that was at this address, which was freed unseen.
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

/// Notes that a block holds code, also one that was not recorded. It is live meanwhile.
pub(super) fn mark_code(address: usize) -> Result<(), NoMemory> {
    if shard(address).with(|table| table.mark_code(address))? {
        sampling::added(address);
    }
    Ok(())
}

/// Forgets a block. None if it is unknown: it was allocated before the recording, or is no sample.
#[inline(always)]
pub(super) fn remove(address: usize) -> Option<Block> {
    let block = shard(address).with(|table| table.remove(key_of(address)));
    if block.is_some() {
        sampling::removed(address);
    }
    block
}

/// Visits all live blocks, a shard at a time. `visit` must not allocate where that is recorded.
pub(super) fn each(mut visit: impl FnMut(Block)) {
    for shard in &TABLE {
        shard.with(|table| table.each(&mut visit));
    }
}

/// Forgets all blocks, and gives back the memory.
pub(super) fn clear() {
    TABLE.iter().for_each(|shard| shard.with(Table::clear));
}

/// Bytes that the table takes.
pub(super) fn memsize() -> usize {
    let sizes = TABLE
        .iter()
        .map(|shard| shard.with(|table| table.memsize()));
    sizes.sum()
}

/// Takes all locks, for a fork: no other thread is in the middle of a change then.
pub(super) fn hold() {
    TABLE.iter().for_each(Shard::lock);
}

/// Releases them, in the parent and in the child.
pub(super) fn release() {
    TABLE.iter().for_each(Shard::unlock);
}

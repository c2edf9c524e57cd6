//! Per-thread counters that a hook may use at any point of the program.
//!
//! A thread gets a [`Block`] on its first call of a hook, without an allocator or a destructor. The blocks of ended threads
//! are found by asking the kernel whether their owner still lives, and reused for new threads; they keep their counts, so
//! the sum over all blocks covers the process's whole life.

mod block;
mod slot;

use std::ptr;
use std::sync::atomic::{
    AtomicPtr, AtomicU32, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
};

pub(crate) use block::{Block, CELLS};

use crate::at_fork::AtFork;

const BLOCKS_A_CHUNK: usize = 64;
const CHUNKS: usize = 1024;
type Chunk = [Block; BLOCKS_A_CHUNK];

static POOL: [AtomicPtr<Chunk>; CHUNKS] = [const { AtomicPtr::new(ptr::null_mut()) }; CHUNKS];
/// Blocks handed out so far.
static USED: AtomicUsize = AtomicUsize::new(0);
/// Blocks among them without an owner.
static FREE: AtomicUsize = AtomicUsize::new(0);
/// The process that the owners belong to.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// The block of the calling thread. Allocates nothing, preserves `errno`, may be called in a signal handler.
#[inline(always)]
pub(crate) fn mine() -> &'static Block {
    match slot::get() {
        0 => claim(),
        // SAFETY: only `claim` sets the word, to a block of the pool, and those are never unmapped.
        address => unsafe { &*(address as *const Block) },
    }
}

/// Records that the calling thread waited for the GVL: the calls timed meanwhile finished earlier. Takes no lock and
/// allocates nothing.
pub fn waited_for_gvl(nanoseconds: u64) {
    mine().add_gvl_wait(nanoseconds);
}

/// The sum of each of these counters over all threads, ended ones included.
pub(crate) fn sum(cells: impl Iterator<Item = usize>) -> Vec<u64> {
    cells.map(|cell| blocks().map(|block| block.read(cell)).fold(0, u64::wrapping_add)).collect()
}

/// Hands the blocks over to the new process.
pub(crate) const AT_FORK: AtFork = AtFork { in_child: after_fork, ..AtFork::NONE };

/// Hands the blocks over to this process after a fork: only the calling thread is left.
fn after_fork() {
    let mine = slot::get();
    for block in blocks() {
        let owner = block.owner.load(Relaxed);
        if ptr::from_ref(block) as usize == mine {
            block.owner.store(owned_by(owner, thread()), Relaxed);
        } else if owner as u32 != 0 && block.pins.load(Relaxed) == 0 {
            release(block, owner);
        }
    }
    PROCESS.store(process(), Relaxed);
}

/// All blocks handed out so far.
pub(crate) fn blocks() -> impl Iterator<Item = &'static Block> {
    (0..USED.load(Acquire).min(CHUNKS * BLOCKS_A_CHUNK)).filter_map(block)
}

fn block(index: usize) -> Option<&'static Block> {
    let chunk = POOL[index / BLOCKS_A_CHUNK].load(Acquire);
    // SAFETY: an address in POOL belongs to a mapped chunk, which is never unmapped; zeroed bytes are a valid Block.
    unsafe { chunk.as_ref() }.map(|chunk| &chunk[index % BLOCKS_A_CHUNK])
}

#[cold]
fn claim() -> &'static Block {
    // SAFETY: the address of the thread's errno is always valid for the thread itself.
    let errno = unsafe { *libc::__errno_location() };
    let block = claim_free().or_else(claim_new).unwrap_or(&SPILLED);
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    if slot::get() == 0 {
        slot::set(ptr::from_ref(block) as usize);
        return block;
    }
    // A signal handler of this thread came in between, and has counted in another block.
    if !ptr::eq(block, &SPILLED) {
        release(block, block.owner.load(Relaxed));
    }
    mine()
}

/// Shared by threads without a block of their own: more than 65,536 at a time, or out of memory. Not reported.
static SPILLED: Block = Block::unowned();

fn claim_free() -> Option<&'static Block> {
    if FREE.load(Relaxed) == 0 {
        return None;
    }
    let thread = thread();
    blocks().find(|block| {
        let owner = block.owner.load(Relaxed);
        let taken = owner as u32 == 0
            && block
                .owner
                .compare_exchange(owner, owned_by(owner, thread), Acquire, Relaxed)
                .is_ok();
        if taken {
            // Instead of a free block, the one that `claim_new` is about to take may have been found: never below 0.
            let _ = FREE.fetch_update(Relaxed, Relaxed, |free| free.checked_sub(1));
        }
        taken
    })
}

fn claim_new() -> Option<&'static Block> {
    if USED.load(Relaxed) % BLOCKS_A_CHUNK == 0 && reap() > 0 {
        if let Some(block) = claim_free() {
            return Some(block);
        }
    }
    let index = USED.fetch_add(1, SeqCst);
    if index >= CHUNKS * BLOCKS_A_CHUNK {
        USED.fetch_sub(1, SeqCst);
        return None;
    }
    let place = &POOL[index / BLOCKS_A_CHUNK];
    if place.load(Acquire).is_null() {
        map_chunk(place);
    }
    let block = block(index)?;
    if block.owner.compare_exchange(0, owned_by(0, thread()), Acquire, Relaxed).is_ok() {
        Some(block)
    } else {
        claim_new()
    }
}

fn map_chunk(place: &AtomicPtr<Chunk>) {
    let size = size_of::<Chunk>();
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: maps new pages at any free address; no memory in use is touched.
    let chunk = unsafe {
        libc::mmap(ptr::null_mut(), size, access, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
    };
    if chunk == libc::MAP_FAILED {
        return;
    }
    if place.compare_exchange(ptr::null_mut(), chunk.cast(), Release, Relaxed).is_err() {
        // SAFETY: the pages were mapped above, and no other thread has seen their address: another's chunk came first.
        unsafe { libc::munmap(chunk, size) };
    }
}

/// Frees the blocks of ended threads and returns their number.
fn reap() -> usize {
    if PROCESS.load(Relaxed) != process() {
        after_fork();
    }
    let mut reaped = 0;
    for block in blocks() {
        let owner = block.owner.load(Relaxed);
        if owner as u32 != 0 && block.pins.load(Relaxed) == 0 && has_ended(owner as u32) {
            reaped += usize::from(release(block, owner));
        }
    }
    reaped
}

fn release(block: &Block, owner: u64) -> bool {
    let released =
        block.owner.compare_exchange(owner, owner & !u64::from(u32::MAX), Release, Relaxed).is_ok();
    if released {
        FREE.fetch_add(1, Relaxed);
    }
    released
}

fn owned_by(owner: u64, thread: u32) -> u64 {
    ((owner >> 32).wrapping_add(1) << 32) | u64::from(thread)
}

fn has_ended(thread: u32) -> bool {
    // SAFETY: signal 0 is not delivered, it only checks whether the thread exists.
    let there = unsafe { libc::syscall(libc::SYS_tgkill, process(), thread, 0) };
    // SAFETY: the address of the thread's errno is always valid for the thread itself.
    there == -1 && unsafe { *libc::__errno_location() } == libc::ESRCH
}

fn thread() -> u32 {
    // SAFETY: takes no arguments, cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

fn process() -> u32 {
    // SAFETY: takes no arguments, cannot fail.
    unsafe { libc::syscall(libc::SYS_getpid) as u32 }
}

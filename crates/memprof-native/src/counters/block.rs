//! The counters of one thread.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// So many counters all tracers have together, at most; the registry checks it when it is compiled.
pub(crate) const CELLS: usize = 1000;

/// The counters of a thread. They only ever go up: who wants to know what happened takes the difference, and a thread
/// that is given the block of an ended one goes on from where that stopped.
#[repr(C, align(64))]
pub(crate) struct Block {
    /// The thread in the lower half, how often the block changed hands in the upper. 0 in the lower half: none.
    pub(super) owner: AtomicU64,
    /// Traces that read this block and not the sum of all; it keeps its owner, even an ended one, while there are any.
    pub(super) pins: AtomicU32,
    /// Traces of the thread that run, one in the other.
    traces: AtomicU32,
    /// Nanoseconds that its threads have waited for Ruby's lock.
    gvl_wait: AtomicU64,
    cells: [AtomicU64; CELLS],
}

impl Block {
    pub(super) const fn unowned() -> Block {
        Block {
            owner: AtomicU64::new(0),
            pins: AtomicU32::new(0),
            traces: AtomicU32::new(0),
            gvl_wait: AtomicU64::new(0),
            cells: [const { AtomicU64::new(0) }; CELLS],
        }
    }

    /// Adds to a counter of the calling thread's block. A signal handler of the same thread may do so in the middle.
    #[inline(always)]
    pub(crate) fn add(&self, cell: usize, count: u64) {
        let place = &self.cells[cell];
        // One instruction, so that no signal comes between reading and writing; without a bus lock, as no other thread
        // writes here.
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `place` is a live, aligned counter, and other threads only read it.
        unsafe {
            std::arch::asm!("add qword ptr [{place}], {count}",
                place = in(reg) place.as_ptr(), count = in(reg) count, options(nostack));
        }
        #[cfg(not(target_arch = "x86_64"))]
        place.fetch_add(count, Relaxed);
    }

    /// Adds to a counter that other threads than the block's own count in, and it does not.
    pub(crate) fn add_from_elsewhere(&self, cell: usize, count: u64) {
        self.cells[cell].fetch_add(count, Relaxed);
    }

    /// Distinguishes the thread that has the block now from those that had it before and will have it.
    pub(crate) fn owner(&self) -> u64 {
        self.owner.load(Relaxed)
    }

    pub(crate) fn read(&self, cell: usize) -> u64 {
        self.cells[cell].load(Relaxed)
    }

    /// The kernel's number of the thread that the block belongs to.
    pub(crate) fn thread(&self) -> u32 {
        self.owner.load(Relaxed) as u32
    }

    /// Keeps the block from being given to another thread, until [`Block::unpin`].
    pub(crate) fn pin(&self) {
        self.pins.fetch_add(1, Relaxed);
    }

    pub(crate) fn unpin(&self) {
        self.pins.fetch_sub(1, Relaxed);
    }

    /// How many traces of the thread run.
    pub(crate) fn traces(&self) -> u32 {
        self.traces.load(Relaxed)
    }

    pub(crate) fn enter_trace(&self) {
        self.traces.fetch_add(1, Relaxed);
    }

    pub(crate) fn leave_trace(&self) {
        self.traces.fetch_sub(1, Relaxed);
    }

    /// Nanoseconds that threads with this block have waited for the GVL, ever.
    pub(crate) fn gvl_wait(&self) -> u64 {
        self.gvl_wait.load(Relaxed)
    }

    pub(crate) fn add_gvl_wait(&self, nanoseconds: u64) {
        self.gvl_wait.fetch_add(nanoseconds, Relaxed);
    }
}

//! The counters of one thread.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicPtr, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    compiler_fence,
};

/// The most counters that all tracers together may have; the registry checks it at compile time.
pub(crate) const CELLS: usize = 1000;

/// The counters of a thread. They never decrease: readers take differences, and a thread that inherits the block of an ended
/// one continues from its counts.
#[repr(C, align(64))]
pub(crate) struct Block {
    /// The thread in the lower half, the number of owners so far in the upper. 0 in the lower half: no owner.
    pub(super) owner: AtomicU64,
    /// Traces that read this block instead of the sum of all; meanwhile it keeps its owner, even an ended one.
    pub(super) pins: AtomicU32,
    /// Running traces of the thread, nested in each other.
    traces: AtomicU32,
    /// Nanoseconds that its threads have waited for the GVL.
    gvl_wait: AtomicU64,
    /// Whether the thread is inside the malloc recorder.
    in_recorder: AtomicBool,
    /// Whether the thread holds the recorder's locks for a fork.
    forks: AtomicBool,
    /// Bytes until the thread's next malloc sample; negative: it is due.
    until_sample: AtomicI64,
    /// The malloc recorder's memory for the block; null if its threads never allocated during a recording.
    recorder_memory: AtomicPtr<c_void>,
    cells: [AtomicU64; CELLS],
}

impl Block {
    pub(super) const fn unowned() -> Block {
        Block {
            owner: AtomicU64::new(0),
            pins: AtomicU32::new(0),
            traces: AtomicU32::new(0),
            gvl_wait: AtomicU64::new(0),
            in_recorder: AtomicBool::new(false),
            forks: AtomicBool::new(false),
            until_sample: AtomicI64::new(0),
            recorder_memory: AtomicPtr::new(ptr::null_mut()),
            cells: [const { AtomicU64::new(0) }; CELLS],
        }
    }

    /// Adds to a counter of the calling thread's block. A signal handler of the same thread may interrupt it.
    #[inline(always)]
    pub(crate) fn add(&self, cell: usize, count: u64) {
        let place = &self.cells[cell];
        // A single instruction, so that no signal can come between reading and writing; without a bus lock, since no other
        // thread writes here.
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `place` is a live, aligned counter, and other threads only read it.
        unsafe {
            std::arch::asm!("add qword ptr [{place}], {count}",
                place = in(reg) place.as_ptr(), count = in(reg) count, options(nostack));
        }
        #[cfg(not(target_arch = "x86_64"))]
        place.fetch_add(count, Relaxed);
    }

    /// Adds to a counter that only threads other than the block's owner use.
    pub(crate) fn add_from_elsewhere(&self, cell: usize, count: u64) {
        self.cells[cell].fetch_add(count, Relaxed);
    }

    /// Distinguishes the current owner from all earlier and later ones.
    pub(crate) fn owner(&self) -> u64 {
        self.owner.load(Relaxed)
    }

    pub(crate) fn read(&self, cell: usize) -> u64 {
        self.cells[cell].load(Relaxed)
    }

    /// The kernel's id of the thread that owns the block.
    pub(crate) fn thread(&self) -> u32 {
        self.owner.load(Relaxed) as u32
    }

    /// Prevents the block from being reused by another thread, until [`Block::unpin`].
    pub(crate) fn pin(&self) {
        self.pins.fetch_add(1, Relaxed);
    }

    pub(crate) fn unpin(&self) {
        self.pins.fetch_sub(1, Relaxed);
    }

    /// Number of running traces of the thread.
    pub(crate) fn traces(&self) -> u32 {
        self.traces.load(Relaxed)
    }

    pub(crate) fn enter_trace(&self) {
        self.traces.fetch_add(1, Relaxed);
    }

    pub(crate) fn leave_trace(&self) {
        self.traces.fetch_sub(1, Relaxed);
    }

    /// Total nanoseconds that threads with this block have waited for the GVL.
    pub(crate) fn gvl_wait(&self) -> u64 {
        self.gvl_wait.load(Relaxed)
    }

    pub(crate) fn add_gvl_wait(&self, nanoseconds: u64) {
        self.gvl_wait.fetch_add(nanoseconds, Relaxed);
    }

    /// Enters the malloc recorder. False in a signal handler that interrupted the thread there.
    #[inline(always)]
    pub(crate) fn enter_recorder(&self) -> bool {
        !self.in_recorder.load(Relaxed) && {
            self.in_recorder.store(true, Relaxed);
            compiler_fence(SeqCst);
            true
        }
    }

    #[inline(always)]
    pub(crate) fn leave_recorder(&self) {
        compiler_fence(SeqCst);
        self.in_recorder.store(false, Relaxed);
    }

    /// Whether the thread holds the recorder's locks for a fork.
    pub(crate) fn forks(&self) -> bool {
        self.forks.load(Relaxed)
    }

    pub(crate) fn set_forks(&self, forks: bool) {
        self.forks.store(forks, Relaxed);
    }

    /// Counts allocated bytes and returns whether they contain a sample. An interrupting signal handler costs a few bytes of
    /// the gap, which is random anyway.
    #[inline(always)]
    pub(crate) fn samples(&self, bytes: u64) -> bool {
        let left = self.until_sample.load(Relaxed).wrapping_sub(bytes as i64);
        self.until_sample.store(left, Relaxed);
        left < 0
    }

    /// Sets the bytes until the next sample; negative: it is due.
    pub(crate) fn set_until_sample(&self, bytes: i64) {
        self.until_sample.store(bytes, Relaxed);
    }

    /// The recorder's memory for the block, created by `map`. None if out of memory, and for the shared block.
    #[inline(always)]
    pub(crate) fn recorder_memory<T>(&self, map: fn() -> *mut T) -> Option<&T> {
        let mut memory: *mut T = self.recorder_memory.load(Relaxed).cast();
        if memory.is_null() {
            if ptr::eq(self, &raw const super::SPILLED) {
                return None;
            }
            memory = map();
            self.recorder_memory.store(memory.cast(), Release);
        }
        // SAFETY: null, or a result of `map`, always of the same type, and never unmapped.
        unsafe { memory.as_ref() }
    }

    /// The recorder's memory for the block, if it exists.
    pub(crate) fn existing_recorder_memory<T>(&self) -> Option<&T> {
        // SAFETY: as above; it always has the same type.
        unsafe { self.recorder_memory.load(Acquire).cast::<T>().as_ref() }
    }
}

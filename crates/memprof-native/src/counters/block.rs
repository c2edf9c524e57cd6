//! The counters of one thread.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicPtr, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    compiler_fence,
};

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
    /// Whether the thread is in the recorder of malloc right now.
    in_recorder: AtomicBool,
    /// Whether the thread holds the recorder's locks for a fork.
    forks: AtomicBool,
    /// Bytes until the thread's next sample of malloc; negative: it is due.
    until_sample: AtomicI64,
    /// What the recorder of malloc keeps for the block; null if its threads never allocated while malloc was recorded.
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

    /// The thread enters the recorder of malloc. False if it is inside: this is a signal handler that interrupted it there.
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

    /// That many bytes were allocated: whether they contain a sample. A signal handler in between costs a few bytes of the
    /// gap, which is random anyway.
    #[inline(always)]
    pub(crate) fn samples(&self, bytes: u64) -> bool {
        let left = self.until_sample.load(Relaxed).wrapping_sub(bytes as i64);
        self.until_sample.store(left, Relaxed);
        left < 0
    }

    /// The bytes until the next sample; negative: it is due.
    pub(crate) fn set_until_sample(&self, bytes: i64) {
        self.until_sample.store(bytes, Relaxed);
    }

    /// What the recorder keeps for the block, which `map` makes. None without memory, and for the block that threads share.
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
        // SAFETY: null, or what `map` returned, always of the same type, and never unmapped.
        unsafe { memory.as_ref() }
    }

    /// The same, if it is there.
    pub(crate) fn existing_recorder_memory<T>(&self) -> Option<&T> {
        // SAFETY: as above; there is one type of it.
        unsafe { self.recorder_memory.load(Acquire).cast::<T>().as_ref() }
    }
}

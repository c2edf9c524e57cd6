//! The memory of the calling thread's stack, read without a fault.
//!
//! The thread's own stack is mapped from the stack pointer to its end, which is looked up once. The stack of a Fiber or a
//! signal handler may be unmapped and remapped unnoticed: there the kernel copies, and refuses unmapped memory.

use std::ops::Range;

use super::mappings::each_mapping;

/// Bytes copied at a time.
const WINDOW: usize = 16 << 10;
const WORD: usize = size_of::<u64>();
/// Number of cached Fiber stacks.
const OTHERS: usize = 8;

/// All zero: nothing is cached yet.
pub(super) struct StackMemory {
    /// The thread's own stack, as far as it was mapped when looked up. Empty: not looked up yet.
    own: Range<usize>,
    /// Mappings around stack pointers outside of the thread's own stack, and the slot for the next one.
    others: [Range<usize>; OTHERS],
    next: usize,
    /// The thread that this belongs to; an ended thread's memory is reused by another.
    thread: usize,
    /// The stack pointer.
    from: usize,
    is_own: bool,
    /// The copied words, and their address range.
    window: Range<usize>,
    words: [u64; WINDOW / WORD],
}

impl Default for StackMemory {
    fn default() -> StackMemory {
        StackMemory {
            own: 0..0,
            others: [const { 0..0 }; OTHERS],
            next: 0,
            thread: 0,
            from: 0,
            is_own: false,
            window: 0..0,
            words: [0; WINDOW / WORD],
        }
    }
}

impl StackMemory {
    /// Prepares for reading at and above this stack pointer.
    pub(super) fn begin(&mut self, stack: usize) {
        // SAFETY: has no conditions.
        let thread = unsafe { libc::pthread_self() } as usize;
        if self.thread != thread {
            (self.thread, self.own) = (thread, 0..0);
            self.others.fill(0..0);
        }
        self.from = stack;
        self.window = 0..0;
        // The main thread's stack grows downwards.
        let is_met = |mapping: &Range<usize>| mapping.contains(&stack);
        if !is_met(&self.own) && !self.others.iter().any(is_met) {
            match mapping_of(stack, thread) {
                Some(Mapping::Own(own)) => self.own = own,
                Some(Mapping::Other(other)) => {
                    self.others[self.next] = other;
                    self.next = (self.next + 1) % OTHERS;
                }
                None => {}
            }
        }
        self.is_own = self.own.contains(&stack);
    }

    /// The word at an address; None if it is not on the stack.
    #[inline(always)]
    pub(super) fn word(&mut self, address: usize) -> Option<u64> {
        if address % WORD != 0 || address < self.from {
            return None;
        }
        if self.is_own {
            // SAFETY: above the stack pointer and below the end of this thread's own stack, which is mapped while it runs.
            return (address + WORD <= self.own.end).then(|| unsafe { *(address as *const u64) });
        }
        self.copied(address)
    }

    #[cold]
    fn copied(&mut self, address: usize) -> Option<u64> {
        if !self.window.contains(&address) {
            let local = libc::iovec { iov_base: self.words.as_mut_ptr().cast(), iov_len: WINDOW };
            let remote = libc::iovec { iov_base: address as *mut _, iov_len: WINDOW };
            // SAFETY: copies into an array of that size; the kernel stops at unmapped memory.
            let copied =
                unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
            let length = usize::try_from(copied).ok()? / WORD * WORD;
            self.window = address..address + length;
        }
        if !self.window.contains(&address) {
            return None;
        }
        self.words.get((address - self.window.start) / WORD).copied()
    }
}

/// The mapping around a stack pointer.
enum Mapping {
    Own(Range<usize>),
    Other(Range<usize>),
}

/// The mapping around the stack pointer: the main thread's has a name, and another thread's own stack ends where the thread
/// library's data of the thread begins. Allocates nothing.
fn mapping_of(stack: usize, thread: usize) -> Option<Mapping> {
    let mut found = None;
    each_mapping(|mapping, line| {
        if !mapping.contains(&stack) {
            return true;
        }
        found = Some(if line.ends_with(b"[stack]") {
            Mapping::Own(mapping)
        } else if (stack..mapping.end).contains(&thread) {
            Mapping::Own(mapping.start..thread)
        } else {
            Mapping::Other(mapping)
        });
        false
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_stacks_are_read_up_to_their_end_and_others_as_far_as_they_are_mapped() {
        let test = |name: &str| {
            let word = std::hint::black_box(0x1234_5678_9abc_def0u64);
            let here = std::ptr::from_ref(&word) as usize;
            let mut memory = Box::<StackMemory>::default();
            memory.begin(here);
            assert!(memory.is_own, "{name}");
            assert_eq!(memory.word(here), Some(word));
            assert_eq!(memory.word(here - 8), None, "below the stack pointer");
            assert_eq!(memory.word(here + 1), None, "not aligned");
            let end = memory.own.end;
            assert!(memory.word(end - 8).is_some());
            assert_eq!(memory.word(end), None);
        };
        std::thread::spawn(move || test("thread")).join().unwrap();
        let pages = 3 * 4096;
        // SAFETY: a new mapping, whose last page must not be read. It stays mapped: another thread might get its address.
        let start = unsafe {
            let start = libc::mmap(
                std::ptr::null_mut(),
                pages,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            ) as usize;
            libc::mprotect((start + 2 * 4096) as *mut _, 4096, libc::PROT_NONE);
            *((start + 4096 + 8) as *mut u64) = 77;
            start
        };
        let mut memory = Box::<StackMemory>::default();
        memory.begin(start + 64);
        assert!(!memory.is_own);
        assert_eq!(memory.word(start + 4096 + 8), Some(77));
        assert_eq!(memory.word(start + 2 * 4096 - 8), Some(0));
        assert_eq!(memory.word(start + 2 * 4096), None, "not readable");
        // SAFETY: mapped above.
        unsafe { libc::mprotect(start as *mut _, 2 * 4096, libc::PROT_NONE) };
        memory.begin(start + 64);
        assert_eq!(memory.word(start + 4096 + 8), None, "not readable any more");
    }
}

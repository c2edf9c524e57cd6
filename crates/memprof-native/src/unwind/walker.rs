//! Walks a thread's stack frame by frame.

use framehop::{
    CacheNative, FrameAddress, MustNotAllocateDuringUnwind, UnwindRegsNative, Unwinder,
};

use super::jit_code::JitCode;
use super::stack_memory::StackMemory;
use super::{JIT, loaded_objects};

/// A thread's state for walking its stacks. All zero: new.
pub(crate) struct Walker {
    /// Rules for addresses seen before; allocated on the thread's first walk.
    rules: [Option<Box<Rules>>; RULES],
    memory: StackMemory,
    jit: JitCode,
    /// The frames of the last walk, outermost first.
    frames: [Frame; MOST_FRAMES],
    length: usize,
    /// The end of the last walk.
    end: End,
    /// Frames of this walk that may have changed, innermost first.
    fresh: [Frame; MOST_FRAMES],
}

/// The reason why a walk ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum End {
    /// There was no room for more frames, or none was found.
    #[default]
    Early,
    /// In JIT code, represented by the outermost frame.
    Jit,
    /// At the start of the thread.
    Whole,
}

type Rules = CacheNative<MustNotAllocateDuringUnwind>;

/// A cache has one slot per address, and two addresses that share it evict each other: with several caches that is rare.
const RULES: usize = 16;
pub(crate) const MOST_FRAMES: usize = 1024;
/// Most frames of this library at the top.
const OWN: usize = 64;

/// A frame: its return address, and the stack pointer after the return.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    pub caller: usize,
    stack: usize,
}

#[cfg(test)]
impl Frame {
    /// A frame with this return address.
    pub(crate) fn at(caller: usize) -> Frame {
        Frame { caller, stack: 0 }
    }
}

impl Default for Walker {
    fn default() -> Walker {
        Walker {
            rules: [const { None }; RULES],
            memory: StackMemory::default(),
            jit: JitCode::default(),
            frames: [Frame::default(); MOST_FRAMES],
            length: 0,
            end: End::Early,
            fresh: [Frame::default(); MOST_FRAMES],
        }
    }
}

impl Walker {
    /// Writes the return addresses of the calling thread's frames, innermost first, and returns their number
    /// ([`Walker::follow`]). Where JIT code called, the last one is [`JIT`].
    #[inline(never)]
    pub(crate) fn walk(&mut self, into: &mut [usize], from: Option<usize>) -> usize {
        self.follow(from);
        self.write(into)
    }

    /// Writes the return addresses of the last walk.
    pub(crate) fn write(&self, into: &mut [usize]) -> usize {
        let found = self.frames().iter().rev();
        for (place, frame) in into.iter_mut().zip(found) {
            *place = frame.caller;
        }
        if self.end == End::Jit {
            if let Some(outermost) = into.get_mut(self.length - 1) {
                *outermost = JIT;
            }
        }
        self.length.min(into.len())
    }

    /// The frames of the last walk, outermost first.
    pub(crate) fn frames(&self) -> &[Frame] {
        &self.frames[..self.length]
    }

    /// The end of the last walk.
    pub(crate) fn end(&self) -> End {
        self.end
    }

    /// Walks the calling thread's stack, and returns how many of the outermost frames are unchanged. With `from`, the
    /// address after the call that led here, frames before it are skipped; if it is not among them, there are no frames.
    /// Where JIT code called, its frame is the outermost one.
    #[inline(never)]
    pub(crate) fn follow(&mut self, from: Option<usize>) -> usize {
        let Some(objects) = loaded_objects::current() else {
            (self.length, self.end) = (0, End::Early);
            return 0;
        };
        let (ip, mut registers, stack) = here();
        let Walker { rules, memory, jit, frames, length, end, fresh } = self;
        memory.begin(stack);
        let old = &frames[..*length];
        let mut address = FrameAddress::InstructionPointer(ip);
        let (mut count, mut own) = (0, 0);
        // Old frames that may still be found.
        let mut left = old.len();
        let mut is_own = from.is_some();
        let mut ends = End::Early;
        let mut same = 0;
        let mut code = 0..0;
        while count < MOST_FRAMES {
            let rules = rules[place(&address)].get_or_insert_with(Box::default);
            let next =
                objects.unwinder.unwind_frame(address, &mut registers, rules, &mut |at: u64| {
                    memory.word(at as usize).ok_or(())
                });
            ends = End::Whole;
            let Ok(Some(caller)) = next else { break };
            let Some(next) = FrameAddress::from_return_address(caller) else {
                break;
            };
            address = next;
            let frame = Frame { caller: caller as usize, stack: registers.sp() as usize };
            // Usually the object of the previous frame.
            if !code.contains(&frame.caller) {
                code = objects.code_of(frame.caller).unwrap_or_default();
            }
            if code.is_empty() {
                let is_next = !is_own || from == Some(frame.caller);
                if is_next && jit.contains(frame.caller) {
                    fresh[count] = frame;
                    count += 1;
                    ends = End::Jit;
                }
                break;
            }
            ends = End::Early;
            if is_own {
                is_own = from != Some(frame.caller);
                own += 1;
                if own > OWN {
                    break;
                }
            }
            if is_own {
                continue;
            }
            let skipped = old[..left].iter().rev();
            left -= skipped.take_while(|one| one.stack < frame.stack).count();
            if left > 0 && old[left - 1] == frame {
                let outer = old[..left - 1].iter().rev();
                let there = outer.take_while(|one| is_there(memory, one)).count();
                if there == left - 1 {
                    (same, ends) = (left, *end);
                    break;
                }
                // Skip the frames up to the one that has changed.
                left -= 1 + there;
            }
            fresh[count] = frame;
            count += 1;
        }
        // There may be no room for the outermost frames.
        let dropped = (same + count).saturating_sub(MOST_FRAMES);
        if dropped > 0 {
            frames.copy_within(dropped..same, 0);
            ends = End::Early;
        }
        let kept = same - dropped;
        for (place, frame) in frames[kept..].iter_mut().zip(fresh[..count].iter().rev()) {
            *place = *frame;
        }
        *length = kept + count;
        *end = ends;
        if dropped > 0 { 0 } else { same }
    }
}

/// Whether a frame of the previous walk is still on the stack: its return address is just below the stack pointer after the
/// return. If all outer frames are in place with the same addresses, they are the same.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn is_there(memory: &mut StackMemory, frame: &Frame) -> bool {
    memory.word(frame.stack.wrapping_sub(8)) == Some(frame.caller as u64)
}

/// The position of the return address depends on the function.
#[cfg(not(target_arch = "x86_64"))]
fn is_there(_: &mut StackMemory, _: &Frame) -> bool {
    false
}

#[inline(always)]
fn place(address: &FrameAddress) -> usize {
    (address.address().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as usize % RULES
}

/// The registers and stack pointer of the calling function, which must not return before they are used.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn here() -> (u64, UnwindRegsNative, usize) {
    let (ip, sp, bp): (u64, u64, u64);
    // SAFETY: reads three registers.
    unsafe {
        std::arch::asm!("lea {}, [rip]", "mov {}, rsp", "mov {}, rbp",
            out(reg) ip, out(reg) sp, out(reg) bp, options(nostack, nomem, preserves_flags));
    }
    (ip, UnwindRegsNative::new(ip, sp, bp), sp as usize)
}

/// The registers and stack pointer of the calling function, which must not return before they are used.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn here() -> (u64, UnwindRegsNative, usize) {
    let (ip, sp, fp, lr): (u64, u64, u64, u64);
    // SAFETY: reads four registers. The link register goes first, as the compiler may choose it for a later output.
    unsafe {
        std::arch::asm!("mov {}, x30", "adr {}, .", "mov {}, sp", "mov {}, x29",
            out(reg) lr, out(reg) ip, out(reg) sp, out(reg) fp, options(nostack, nomem, preserves_flags));
    }
    (ip, UnwindRegsNative::new(lr, sp, fp), sp as usize)
}

#[cfg(test)]
mod tests {
    use super::super::{function, prepare};
    use super::*;

    #[inline(never)]
    fn deep(levels: usize, work: &mut dyn FnMut()) {
        if levels == 0 {
            work();
        } else {
            deep(levels - 1, work);
        }
        std::hint::black_box(levels);
    }

    #[test]
    fn a_stack_has_the_function_as_often_as_it_was_called() {
        prepare();
        let here = function(deep as *const () as usize).unwrap();
        for levels in [1, 7, 60] {
            let mut walker = Box::<Walker>::default();
            let mut found = [0; 200];
            let mut count = 0;
            deep(levels, &mut || count = walker.walk(&mut found, None));
            let calls = found[..count].iter().filter(|address| here.contains(address));
            assert_eq!(calls.count(), levels + 1);
        }
    }

    #[test]
    fn what_is_before_a_call_is_left_out() {
        prepare();
        let mut walker = Box::<Walker>::default();
        let (mut all, mut rest) = ([0; 200], [0; 200]);
        let mut counts = (0, 0);
        deep(20, &mut || {
            let count = walker.walk(&mut all, None);
            // After all those of `deep`, which return to one address.
            counts = (count, walker.walk(&mut rest, Some(all[count - 4])));
        });
        let (whole, left) = counts;
        assert!(whole > 24, "{whole}");
        assert_eq!(all[whole - 4..whole], rest[..left]);
        assert_eq!(walker.walk(&mut rest, Some(1)), 0);
    }

    #[test]
    fn a_walk_after_another_finds_what_a_new_one_finds() {
        prepare();
        let mut walker = Box::<Walker>::default();
        let (mut found, mut expected) = ([0; 300], [0; 300]);
        let mut state = 0x1234_5678_9abc_def1u64;
        for _ in 0..2_000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let (levels, is_other) = (state as usize % 40, state & 64 == 0);
            let mut work = || {
                let mut fresh = Box::<Walker>::default();
                let walkers = [(&mut *walker, &mut found), (&mut *fresh, &mut expected)];
                let [count, other] = walkers.map(|(walker, into)| walker.walk(into, None));
                // The first frames belong to the two calls.
                assert_eq!(found[2..count], expected[2..other]);
            };
            if is_other {
                deep(levels, &mut work);
            } else {
                deep_as_well(levels, &mut work);
            }
        }
    }

    /// A function in anonymous memory that calls its first argument with its second.
    fn jit() -> extern "C" fn(extern "C" fn(*mut Calls), *mut Calls) {
        #[cfg(target_arch = "x86_64")]
        // sub rsp, 8; mov rax, rdi; mov rdi, rsi; call rax; add rsp, 8; ret
        const CODE: [u8; 17] = [
            0x48, 0x83, 0xec, 8, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0xff, 0xd0, 0x48, 0x83, 0xc4,
            8, 0xc3,
        ];
        #[cfg(target_arch = "aarch64")]
        // stp x29, x30, [sp, -16]!; mov x29, sp; mov x8, x0; mov x0, x1; blr x8; ldp x29, x30, [sp], 16; ret
        const CODE: [u32; 7] = [
            0xa9bf_7bfd,
            0x9100_03fd,
            0xaa00_03e8,
            0xaa01_03e0,
            0xd63f_0100,
            0xa8c1_7bfd,
            0xd65f_03c0,
        ];
        // SAFETY: a new mapping that stays, larger than the code, which is written before it may be executed and is a
        // function of these arguments.
        unsafe {
            let page = libc::mmap(
                std::ptr::null_mut(),
                4096,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(page, libc::MAP_FAILED);
            page.copy_from_nonoverlapping(CODE.as_ptr().cast(), size_of_val(&CODE));
            libc::mprotect(page, 4096, libc::PROT_READ | libc::PROT_EXEC);
            std::mem::transmute::<
                *mut libc::c_void,
                extern "C" fn(extern "C" fn(*mut Calls), *mut Calls),
            >(page)
        }
    }

    struct Calls {
        walker: Box<Walker>,
        from: Option<usize>,
        found: Vec<usize>,
    }

    #[inline(never)]
    extern "C" fn called(calls: *mut Calls) {
        // SAFETY: the test passes the pointer, and is its only user until this returns.
        let calls = unsafe { &mut *calls };
        let mut into = [0; 200];
        let count = calls.walker.walk(&mut into, calls.from);
        calls.found = into[..count].to_vec();
    }

    #[test]
    fn a_stack_ends_with_one_frame_where_code_of_a_jit_called() {
        prepare();
        let jit = jit();
        let mut calls = Calls { walker: Box::default(), from: None, found: Vec::new() };
        let mut first = Vec::new();
        for _ in 0..3 {
            jit(called, &mut calls);
            let here = function(called as *const () as usize).unwrap();
            assert_eq!(calls.found.last(), Some(&JIT));
            let inner = &calls.found[..calls.found.len() - 1];
            assert!(inner.iter().any(|address| here.contains(address)));
            assert!(!inner.contains(&JIT));
            if !first.is_empty() {
                assert_eq!(calls.found, first);
            }
            first.clone_from(&calls.found);
        }
        // The caller is the JIT code itself.
        #[cfg(target_arch = "x86_64")]
        let behind = jit as usize + 12;
        #[cfg(target_arch = "aarch64")]
        let behind = jit as usize + 20;
        calls.from = Some(behind);
        jit(called, &mut calls);
        assert_eq!(calls.found, [JIT]);
        calls.from = Some(1);
        jit(called, &mut calls);
        assert!(calls.found.is_empty());
    }

    /// Calls [`deep`] and is called by it.
    #[inline(never)]
    fn deep_as_well(levels: usize, work: &mut dyn FnMut()) {
        let room = std::hint::black_box([levels; 16]);
        if levels == 0 {
            work();
        } else {
            deep(levels - 1, work);
        }
        std::hint::black_box(room);
    }
}

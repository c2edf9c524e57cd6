//! Stacks of both kinds of frames, as read by people: interpreter frames replace the frames of its loop.
//!
//! The loop is on the stack once per entry into the interpreter from native code, and the first interpreter frame of each
//! entry is marked. So, from the innermost frame outwards, each frame of the loop stands for the interpreter frames up to
//! the next marked one. Where the native stack can't be followed further, as in JIT code (which is one frame), the
//! interpreter frames continue alone.

use std::ops::Range;
use std::ptr;
use std::sync::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Release},
};

use super::{Interpreter, Running};
use crate::unwind::walker::{self, Frame as NativeFrame};

/// Never dropped: a thread may be reading it.
static INTERPRETER: AtomicPtr<Interpreter> = AtomicPtr::new(ptr::null_mut());

/// Sets the addresses of the interpreter's functions.
pub fn set_interpreter(interpreter: Interpreter) {
    INTERPRETER.store(Box::into_raw(Box::new(interpreter)), Release);
}

fn interpreter() -> Option<&'static Interpreter> {
    // SAFETY: null, or a value that `set_interpreter` made and never drops.
    unsafe { INTERPRETER.load(Acquire).as_ref() }
}

/// Marks a native frame: no interpreted code has this id.
pub(super) const NATIVE: usize = 0;

/// Writes the frames of a stack, innermost first, and returns their number.
pub(super) fn weave(native: &[usize], running: &[Running], into: &mut [Running]) -> usize {
    weave_with(interpreter(), native, running, into)
}

fn weave_with(
    interpreter: Option<&Interpreter>,
    native: &[usize],
    running: &[Running],
    into: &mut [Running],
) -> usize {
    let is_in = |function: &Range<usize>, address: usize| function.contains(&(address - 1));
    let mut running = running.iter().copied();
    let mut woven = Inwards { into, count: 0 };
    for &address in native {
        match interpreter {
            Some(known) if is_in(&known.run, address) => {
                // Dropped frames are the callers of those kept, so the native frames outside of them are dropped, too.
                if running.len() == 0 {
                    return woven.count;
                }
                for frame in running.by_ref() {
                    woven.put(frame);
                    if frame.is_entry {
                        break;
                    }
                }
            }
            Some(known) if known.between.iter().any(|function| is_in(function, address)) => {}
            _ => woven.put(Running {
                instruction: address,
                code: NATIVE,
                is_entry: false,
                is_code: false,
            }),
        }
    }
    running.for_each(|frame| woven.put(frame));
    woven.count
}

struct Inwards<'a> {
    into: &'a mut [Running],
    count: usize,
}

impl Inwards<'_> {
    /// Omits the frame if there is no room.
    #[inline(always)]
    fn put(&mut self, frame: Running) {
        if let Some(place) = self.into.get_mut(self.count) {
            *place = frame;
            self.count += 1;
        }
    }
}

/// Most frames of a stack.
pub(super) const MOST_FRAMES: usize = walker::MOST_FRAMES;

/// The last stack of a thread, woven from its outermost frame inwards, starting only where it differs from the previous one.
/// All zero: none.
pub(super) struct Woven {
    /// Outermost frame first.
    pub frames: [Running; MOST_FRAMES],
    pub length: usize,
    /// Before each native frame and after the last: the number of woven frames, and of interpreter frames used.
    before: [(u16, u16); MOST_FRAMES + 1],
    /// Number of native frames and of interpreter frames; 0: the whole stack has to be woven.
    native: usize,
    running: usize,
}

/// A thread's frames, outermost first, and the number of outermost ones unchanged since the last weaving.
#[derive(Clone, Copy)]
pub(super) struct Followed<'a, F> {
    pub frames: &'a [F],
    pub same: usize,
}

impl Woven {
    /// Weaves a stack, and returns how many of its outermost frames are unchanged. None if the two kinds of frames do not
    /// match from the outermost on: they must then be woven from the innermost on.
    pub(super) fn weave(
        &mut self,
        native: Followed<'_, NativeFrame>,
        running: Followed<'_, Running>,
    ) -> Option<usize> {
        let woven = interpreter().and_then(|known| self.weave_with(known, native, running));
        if woven.is_none() {
            (self.native, self.length) = (0, 0);
        }
        woven
    }

    fn weave_with(
        &mut self,
        interpreter: &Interpreter,
        native: Followed<'_, NativeFrame>,
        running: Followed<'_, Running>,
    ) -> Option<usize> {
        let is_in = |function: &Range<usize>, address: usize| function.contains(&(address - 1));
        // A native frame's result depends on the interpreter frames up to the next unused one.
        let is_as_it_was = |used: usize| {
            used < running.same
                || used == running.same
                    && running.same == self.running
                    && running.same == running.frames.len()
        };
        let mut first = native.same.min(self.native);
        while first > 0 && !is_as_it_was(usize::from(self.before[first].1)) {
            first -= 1;
        }
        let (same, used) = if first > 0 { self.before[first] } else { (0, 0) };
        let same = usize::from(same);
        let (mut length, mut used) = (same, usize::from(used));
        self.native = 0;
        for (at, frame) in native.frames.iter().enumerate().skip(first) {
            self.before[at] = (length as u16, used as u16);
            let address = frame.caller;
            if is_in(&interpreter.run, address) {
                let mut is_first = true;
                while let Some(frame) = running.frames.get(used) {
                    if frame.is_code {
                        if frame.is_entry != is_first {
                            break;
                        }
                        is_first = false;
                        *self.frames.get_mut(length)? = *frame;
                        length += 1;
                    }
                    used += 1;
                }
                if is_first {
                    return None;
                }
            } else if !(interpreter.between.iter()).any(|function| is_in(function, address)) {
                *self.frames.get_mut(length)? =
                    Running { instruction: address, code: NATIVE, is_entry: false, is_code: false };
                length += 1;
            }
        }
        if running.frames[used..].iter().any(|frame| frame.is_code) {
            return None;
        }
        self.before[native.frames.len()] = (length as u16, used as u16);
        (self.native, self.running, self.length) =
            (native.frames.len(), running.frames.len(), length);
        Some(same)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: Range<usize> = 1_000..2_000;
    const BETWEEN: Range<usize> = 2_000..3_000;

    fn woven(native: &[usize], running: &[(usize, bool)], room: usize) -> Vec<usize> {
        let interpreter = Interpreter { run: RUN, between: vec![BETWEEN] };
        let running: Vec<Running> = running
            .iter()
            .map(|&(instruction, is_entry)| Running {
                instruction,
                code: 7,
                is_entry,
                is_code: true,
            })
            .collect();
        let mut into = vec![Running::default(); room];
        let count = weave_with(Some(&interpreter), native, &running, &mut into);
        into[..count].iter().map(|frame| frame.instruction).collect()
    }

    /// malloc <- xmalloc <- each <- (call) <- loop [block, work] <- each <- loop [main] <- main
    const NATIVE_STACK: [usize; 8] = [10, 11, 2_500, 1_500, 12, 2_500, 2_000, 13];
    const RUBY_STACK: [(usize, bool); 3] = [(101, false), (102, true), (103, true)];

    #[test]
    fn the_interpreters_frames_stand_in_place_of_its_loop() {
        let expected = [10, 11, 101, 102, 12, 103, 13];
        assert_eq!(woven(&NATIVE_STACK, &RUBY_STACK, 100), expected);
        assert_eq!(woven(&NATIVE_STACK, &RUBY_STACK, 4), expected[..4]);
    }

    #[test]
    fn where_one_of_them_ends_the_other_goes_on() {
        assert_eq!(woven(&NATIVE_STACK[..3], &RUBY_STACK, 100), [10, 11, 101, 102, 103]);
        assert_eq!(woven(&[], &RUBY_STACK, 100), [101, 102, 103]);
        assert_eq!(woven(&[10, 13], &[], 100), [10, 13]);
        // Two frames were kept: the third one's callers are not its callers.
        assert_eq!(woven(&NATIVE_STACK, &RUBY_STACK[..2], 100), [10, 11, 101, 102, 12]);
    }

    /// A stack that grows, shrinks and changes within: native and interpreter frames, outermost first.
    struct Program {
        state: u64,
        segments: Vec<(usize, Vec<usize>)>,
    }

    impl Program {
        fn random(&mut self, below: usize) -> usize {
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            (self.state >> 20) as usize % below
        }

        fn change(&mut self) {
            let kept = self.segments.len() - self.random(4).min(self.segments.len());
            self.segments.truncate(kept);
            if let Some((_, frames)) = self.segments.last_mut() {
                frames.truncate(1 + kept % 2);
            }
            for _ in 0..self.random(4) {
                let native = self.random(3);
                let count = 1 + self.random(4);
                let frames = (0..count).map(|_| 5_000 + self.random(4)).collect();
                self.segments.push((native, frames));
            }
        }

        fn native(&self) -> Vec<usize> {
            let frames = self.segments.iter().flat_map(|(native, _)| {
                let outer = (0..*native).map(|at| 10 + at);
                outer.chain([1_500, 2_500])
            });
            std::iter::once(13).chain(frames).chain([11, 12]).collect()
        }

        fn running(&self) -> Vec<Running> {
            let frames = self.segments.iter().flat_map(|(native, frames)| {
                let in_c = Running { code: *native, ..Running::default() };
                let frames = frames.iter().enumerate().map(|(at, &instruction)| Running {
                    instruction,
                    code: 7,
                    is_entry: at == 0,
                    is_code: true,
                });
                frames.chain([in_c])
            });
            frames.collect()
        }
    }

    fn same<T: PartialEq>(one: &[T], other: &[T]) -> usize {
        let both = one.iter().zip(other);
        both.take_while(|(one, other)| one == other).count()
    }

    #[test]
    fn what_is_woven_inwards_from_a_change_is_what_is_woven_outwards() {
        let interpreter = Interpreter { run: RUN, between: vec![BETWEEN] };
        let mut program = Program { state: 0x1234_5678_9abc_def1, segments: Vec::new() };
        // SAFETY: all zero is a stack of no frames.
        let mut woven: Box<Woven> = unsafe { Box::new_zeroed().assume_init() };
        let (mut native, mut running): (Vec<usize>, Vec<Running>) = Default::default();
        let (mut kept, mut all) = (0, 0);
        for _ in 0..5_000 {
            program.change();
            let (before, after) = (
                (std::mem::take(&mut native), std::mem::take(&mut running)),
                (program.native(), program.running()),
            );
            let outcome = woven.weave_with(
                &interpreter,
                Followed {
                    frames: &after.0.iter().copied().map(NativeFrame::at).collect::<Vec<_>>(),
                    same: same(&before.0, &after.0),
                },
                Followed { frames: &after.1, same: same(&before.1, &after.1) },
            );
            (native, running) = after;
            let inner_native: Vec<usize> = native.iter().rev().copied().collect();
            let inner_running: Vec<Running> =
                (running.iter().rev().copied().filter(|frame| frame.is_code)).collect();
            let mut expected = vec![Running::default(); 500];
            let count =
                weave_with(Some(&interpreter), &inner_native, &inner_running, &mut expected);
            expected.truncate(count);
            expected.reverse();
            kept += outcome.expect("frames that fit");
            all += count;
            assert_eq!(woven.frames[..woven.length], expected);
        }
        assert!(kept * 4 > all, "{kept} of {all} frames were kept");
        // One of the interpreter's frames is missing.
        let missing = woven.weave_with(
            &interpreter,
            Followed { frames: &[NativeFrame::at(1_500), NativeFrame::at(1_500)], same: 0 },
            Followed { frames: &running[..0], same: 0 },
        );
        assert_eq!(missing, None);
    }
}

//! Stacks of both kinds of frames as one reads them: the interpreter's frames stand where its loop is on the native stack.
//!
//! The loop is on the stack once for each time that the interpreter was entered from native code, and the frame that it was
//! entered with is marked. So from the innermost frame outwards, each frame of the loop stands for the interpreter's frames
//! up to the next marked one. Where the native stack can't be followed any more, as in code that a JIT has written (which is
//! one frame), the interpreter's frames go on alone.

use std::ops::Range;
use std::ptr;
use std::sync::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Release},
};

use super::{Interpreter, Running};

/// Never dropped: a thread may be reading it.
static INTERPRETER: AtomicPtr<Interpreter> = AtomicPtr::new(ptr::null_mut());

/// Says where the interpreter's functions are.
pub fn set_interpreter(interpreter: Interpreter) {
    INTERPRETER.store(Box::into_raw(Box::new(interpreter)), Release);
}

fn interpreter() -> Option<&'static Interpreter> {
    // SAFETY: null, or what `set_interpreter` has made and never drops.
    unsafe { INTERPRETER.load(Acquire).as_ref() }
}

/// What a frame of native code is among frames: no interpreter's code has this name.
pub(super) const NATIVE: usize = 0;

/// Writes the frames of a stack, innermost first, and returns how many.
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
    let mut woven = Woven { into, count: 0 };
    for &address in native {
        match interpreter {
            Some(known) if is_in(&known.run, address) => {
                // Frames that were not kept are the callers of those that were, and so is what called them.
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
            Some(known)
                if known
                    .between
                    .iter()
                    .any(|function| is_in(function, address)) => {}
            _ => woven.put(Running {
                instruction: address,
                code: NATIVE,
                is_entry: false,
            }),
        }
    }
    running.for_each(|frame| woven.put(frame));
    woven.count
}

struct Woven<'a> {
    into: &'a mut [Running],
    count: usize,
}

impl Woven<'_> {
    /// What there is no room for is left out.
    #[inline(always)]
    fn put(&mut self, frame: Running) {
        if let Some(place) = self.into.get_mut(self.count) {
            *place = frame;
            self.count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: Range<usize> = 1_000..2_000;
    const BETWEEN: Range<usize> = 2_000..3_000;

    fn woven(native: &[usize], running: &[(usize, bool)], room: usize) -> Vec<usize> {
        let interpreter = Interpreter {
            run: RUN,
            between: vec![BETWEEN],
        };
        let running: Vec<Running> = running
            .iter()
            .map(|&(instruction, is_entry)| Running {
                instruction,
                code: 7,
                is_entry,
            })
            .collect();
        let none = Running {
            instruction: 0,
            code: 0,
            is_entry: false,
        };
        let mut into = vec![none; room];
        let count = weave_with(Some(&interpreter), native, &running, &mut into);
        into[..count]
            .iter()
            .map(|frame| frame.instruction)
            .collect()
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
        assert_eq!(
            woven(&NATIVE_STACK[..3], &RUBY_STACK, 100),
            [10, 11, 101, 102, 103]
        );
        assert_eq!(woven(&[], &RUBY_STACK, 100), [101, 102, 103]);
        assert_eq!(woven(&[10, 13], &[], 100), [10, 13]);
        // Two frames were kept: the third one's callers are not its callers.
        assert_eq!(
            woven(&NATIVE_STACK, &RUBY_STACK[..2], 100),
            [10, 11, 101, 102, 12]
        );
    }
}

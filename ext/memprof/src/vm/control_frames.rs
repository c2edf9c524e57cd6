//! Files of evaluated code.
//!
//! `rb_profile_frames` returns the method of a frame, and so the method's file, even if the frame runs code that the method
//! evaluates: `eval`, `instance_eval` of a String, an ERB template. The right file is that of the frame's iseq, which no
//! function of the VM returns without allocating. So it is read from the control frame, whose first five words are the same in
//! CRuby 3.1 to 4.0 (vm_core.h); only its length differs. The first walks are compared with `rb_profile_frames`; on a mismatch
//! control frames are no longer read, and only the file of the innermost frame is right, as reported by the event.

use std::ffi::c_int;
use std::mem::offset_of;
use std::ops::Range;
use std::sync::atomic::{AtomicI8, Ordering};

use rb_sys::VALUE;

use super::layouts;

/// The head of struct rb_execution_context_struct.
#[repr(C)]
pub struct Context {
    stack: *const VALUE,
    /// Size of the stack in words.
    size: usize,
    frame: *const ControlFrame,
}

/// struct rb_control_frame_struct.
#[repr(C)]
pub struct ControlFrame {
    pc: *const VALUE,
    sp: *const VALUE,
    iseq: VALUE,
    receiver: VALUE,
    environment: *const VALUE,
    block: usize,
    #[cfg(not(ruby_gte_3_2))]
    base: usize,
    jit_return: usize,
}

impl ControlFrame {
    /// The running code; 0 for a C method. An iseq only if there is an [instruction](ControlFrame::instruction).
    #[inline(always)]
    pub fn iseq(&self) -> VALUE {
        self.iseq
    }

    /// Address of the instruction after the current one, in a frame of Ruby code.
    #[inline(always)]
    pub fn instruction(&self) -> Option<usize> {
        // SAFETY: each frame of a stack whose layout is known has an environment (`stack`).
        let flags = unsafe { *self.environment };
        runs(self, flags).then_some(self.pc as usize)
    }
}

impl ControlFrame {
    /// Whether the frame has this [`ControlFrame::word_of_instruction`] and [`ControlFrame::iseq`]. A C method has no iseq, and
    /// JIT code leaves its instruction word unchanged.
    #[inline(always)]
    pub fn is(&self, instruction: usize, iseq: VALUE) -> bool {
        self.iseq == iseq && (iseq == 0 || self.pc as usize == instruction)
    }

    /// `self`.
    #[inline(always)]
    pub fn receiver(&self) -> VALUE {
        self.receiver
    }

    /// The instruction word, even if no instruction runs.
    #[inline(always)]
    pub fn word_of_instruction(&self) -> usize {
        self.pc as usize
    }

    /// Whether `vm_exec` was called for it, which returns when the frame ends (VM_FRAME_FLAG_FINISH).
    #[inline(always)]
    pub fn is_entry(&self) -> bool {
        // SAFETY: as for `instruction`.
        unsafe { *self.environment & FINISH != 0 }
    }
}

/// The word of a frame's environment that has its method, or instead of that a `struct vm_svar` with a method's `$~`, or the
/// surrounding environment of a block.
#[derive(Clone, Copy)]
pub enum Entry {
    /// Blocks and others that are identified by their code.
    None,
    /// The method.
    Method(VALUE),
    /// A `vm_svar` and its method.
    Within(VALUE, VALUE),
    /// The surrounding method of a frame without Ruby code; 0 if there is none.
    Around(VALUE),
}

impl Entry {
    /// Whether a frame that runs the same code has the same method.
    ///
    /// # Safety
    /// The frame is one of the running thread, whose layout is known.
    #[inline(always)]
    pub unsafe fn is_that_of(&self, frame: &ControlFrame) -> bool {
        // SAFETY: a frame has this word (`ControlFrame::entry`), and a `vm_svar` that is there is alive.
        unsafe {
            match *self {
                Entry::None => true,
                Entry::Method(word) => frame.entry_word() == word,
                Entry::Within(word, method) => {
                    frame.entry_word() == word && within(word) == Some(method)
                }
                Entry::Around(method) => frame.method_around() == method,
            }
        }
    }
}

/// Words of an environment before its flags: the method, and the outer environment.
const ENTRY: usize = 2;
const OUTER: usize = 1;

/// Flag of an environment that has no outer one.
const LOCAL: VALUE = 2;

/// Maximum depth of nested environments to search.
const NESTED: usize = 256;

/// The method of a `vm_svar`; None for another object.
///
/// # Safety
/// An object, or 0.
#[inline(always)]
unsafe fn within(word: VALUE) -> Option<VALUE> {
    // SAFETY: an object has flags, and a `vm_svar` a second word (internal/imemo.h).
    unsafe {
        let is_svar = word != 0 && word % 8 == 0 && *(word as *const VALUE) & OBJECT_KIND == SVAR;
        is_svar.then(|| *(word as *const VALUE).add(1))
    }
}

impl ControlFrame {
    /// The word of the environment that [`ControlFrame::entry`] reads first.
    ///
    /// # Safety
    /// A frame of the running thread, whose layout is known.
    #[inline(always)]
    pub unsafe fn entry_word(&self) -> VALUE {
        // SAFETY: each environment ends with three words: method, outer environment, flags (vm_core.h).
        unsafe { *self.environment.sub(ENTRY) }
    }

    /// The running method, for the frame of a method or one without Ruby code; 0 for others, and for those without a method
    /// (`rb_vm_frame_method_entry`).
    ///
    /// # Safety
    /// A frame of the running thread, whose layout is known.
    pub unsafe fn entry(&self) -> (Entry, VALUE) {
        // SAFETY: each environment ends with three words: method, outer environment, flags (vm_core.h).
        unsafe {
            let flags = *self.environment;
            match flags & MAGIC {
                METHOD | C_FUNCTION => {
                    let word = self.entry_word();
                    match within(word) {
                        Some(method) => (Entry::Within(word, method), method),
                        None => (Entry::Method(word), word),
                    }
                }
                _ if self.instruction().is_some() => (Entry::None, 0),
                _ => {
                    let method = self.method_around();
                    (Entry::Around(method), method)
                }
            }
        }
    }

    /// The method of the innermost environment with one.
    ///
    /// # Safety
    /// As for [`ControlFrame::entry`].
    unsafe fn method_around(&self) -> VALUE {
        let mut environment = self.environment;
        for _ in 0..NESTED {
            // SAFETY: as in `entry`; what an environment is nested in is alive.
            unsafe {
                let word = *environment.sub(ENTRY);
                let is_method = |word: VALUE| {
                    word != 0
                        && word % 8 == 0
                        && *(word as *const VALUE) & OBJECT_KIND == METHOD_ENTRY
                };
                let method = within(word).unwrap_or(word);
                if is_method(method) {
                    return method;
                }
                if *environment & LOCAL != 0 {
                    return 0;
                }
                environment = (*environment.sub(OUTER) & !3) as *const VALUE;
                if environment.is_null() {
                    return 0;
                }
            }
        }
        0
    }
}

/// The innermost frames of a stack, at most `room` or fewer: the outermost of them is the same while the stack grows and
/// shrinks by less than half of `room`.
pub fn innermost(frames: &[ControlFrame], room: usize) -> &[ControlFrame] {
    let step = (room / 2).max(1);
    let cut = if frames.len() <= room { 0 } else { (frames.len() - room).div_ceil(step) * step };
    &frames[..frames.len() - cut]
}

/// Bits of a frame's flags, the word that its environment points to.
pub const C_FRAME: VALUE = 0x80;
const FINISH: VALUE = 0x20;
const MAGIC: VALUE = 0x7fff_0001;
const METHOD: VALUE = 0x1111_0001;
const BLOCK: VALUE = 0x2222_0001;
const C_FUNCTION: VALUE = 0x5555_0001;
const EVAL: VALUE = 0x7777_0001;
const RESCUE: VALUE = 0x7888_0001;
const DUMMY: VALUE = 0x7999_0001;

/// Type and kind of an iseq, in the flags of an object (see docs/ruby-internals.md).
const OBJECT_KIND: VALUE = 0xf01f;
const ISEQ: VALUE = 0x701a;
const METHOD_ENTRY: VALUE = 0x601a;
const SVAR: VALUE = 0x201a;

/// Maximum plausible stack size in words.
const MOST_WORDS: usize = 1 << 28;

/// Number of walks that confirmed the layout; negative if one did not.
static CHECKED: AtomicI8 = AtomicI8::new(0);

/// Number of walks to check before the layout is trusted.
const ENOUGH: i8 = 64;

/// Whether the layout was confirmed often enough.
pub fn is_trusted() -> bool {
    CHECKED.load(Ordering::Relaxed) >= ENOUGH
}

/// Result of `rb_profile_frames` at the same moment.
#[derive(Clone, Copy)]
pub struct Profiled<'a> {
    /// Frames, innermost first.
    pub values: &'a [VALUE],
    /// Their lines.
    pub lines: &'a [c_int],
}

impl Profiled<'_> {
    /// The frames of Ruby code.
    fn ruby(&self) -> impl Iterator<Item = VALUE> + '_ {
        let frames = self.values.iter().zip(self.lines);
        let ruby = |(frame, line): &(&VALUE, &c_int)| {
            **line != 0 || !super::frame_keys::is_native(**frame)
        };
        frames.filter(ruby).map(|(frame, _)| *frame)
    }
}

/// Writes one word for each frame of Ruby code, innermost first: the path of its file if it may differ from its method's, as in
/// blocks and evaluated code, or else 0. False if the layout is unknown.
///
/// # Safety
/// `context` is that of the event that a hook was called with, and `profiled` was read in the same hook.
#[inline]
pub unsafe fn paths(context: *const Context, profiled: Profiled, paths: &mut Vec<VALUE>) -> bool {
    paths.clear();
    let checked = CHECKED.load(Ordering::Relaxed);
    if checked < 0 || !cfg!(target_pointer_width = "64") {
        return false;
    }
    // SAFETY: as for this function; the layout was checked, or is now, before anything is read through it.
    unsafe {
        if checked < ENOUGH {
            let right = check(context, profiled);
            CHECKED.store(if right { checked + 1 } else { -1 }, Ordering::Relaxed);
            if !right {
                return false;
            }
        }
        for frame in frames(context) {
            if paths.len() == profiled.values.len() {
                break;
            }
            let flags = *frame.environment;
            if is_ruby(frame, flags) {
                paths.push(match flags & MAGIC {
                    BLOCK | EVAL | RESCUE => rb_sys::rb_profile_frame_path(frame.iseq),
                    _ => 0,
                });
            } else if is_extension(frame, flags)
                && profiled.ruby().nth(paths.len()) == Some(frame.iseq)
            {
                paths.push(0);
            }
        }
    }
    true
}

/// The innermost frame of Ruby code: the address of the instruction after the current one, and the iseq. None if there is no
/// such frame, or the VM stores no instruction there, or the frame never runs, in which case its file changes.
///
/// # Safety
/// `context` is that of the calling thread, whose layout is known ([`is_context`], [`layouts::check`]).
#[inline(always)]
pub unsafe fn running(context: *const Context) -> Option<(usize, VALUE)> {
    // SAFETY: as for this function.
    unsafe {
        for frame in frames(context) {
            let flags = *frame.environment;
            if flags & C_FRAME == 0 {
                return runs(frame, flags).then_some((frame.pc as usize, frame.iseq));
            }
        }
    }
    None
}

/// A frame of Ruby code.
pub struct RubyFrame {
    /// Address of the instruction after the current one.
    pub instruction: usize,
    /// Its iseq.
    pub iseq: VALUE,
    /// Whether `vm_exec` was called for it, which returns when the frame ends (VM_FRAME_FLAG_FINISH).
    pub is_entry: bool,
}

/// All frames of Ruby code, innermost first.
///
/// # Safety
/// As for [`running`]; and the result is used up before the thread goes on.
pub unsafe fn ruby_frames(context: *const Context) -> impl Iterator<Item = RubyFrame> {
    // SAFETY: as for this function.
    unsafe {
        frames(context).filter_map(|frame| {
            let flags = *frame.environment;
            runs(frame, flags).then_some(RubyFrame {
                instruction: frame.pc as usize,
                iseq: frame.iseq,
                is_entry: flags & FINISH != 0,
            })
        })
    }
}

/// Address of the block with an iseq's instructions. None if the instruction is not among them.
///
/// # Safety
/// `iseq` is that of a running frame, no GC runs, and the layout is known.
pub unsafe fn instructions(iseq: VALUE, instruction: usize) -> Option<usize> {
    /// Word of struct rb_iseq_struct that points to the body.
    const BODY: usize = 2;
    // SAFETY: an iseq that runs has a body, whose first words are type and number of words, each of half a word, and the
    // address of the instructions, in all versions.
    unsafe {
        if iseq % 8 != 0 || *(iseq as *const VALUE) & OBJECT_KIND != ISEQ {
            return None;
        }
        let body = *(iseq as *const *const u32).add(BODY);
        let words = *body.add(1) as usize;
        let start = *body.cast::<usize>().add(1);
        (start..=start + words * 8).contains(&instruction).then_some(start)
    }
}

/// True if the context refers to a stack with frames.
///
/// # Safety
/// If it is a small number or not divisible by 8, it is not an address; else three words can be read there.
pub unsafe fn is_context(context: *const Context) -> bool {
    let aligned = |address: usize| address > 0xffff && address % 8 == 0;
    if !aligned(context as usize) {
        return false;
    }
    // SAFETY: as for this function.
    let Context { stack, size, frame } = unsafe { &*context };
    bounds(*stack as usize, *size, *frame as usize).is_some()
}

/// The address range of a stack with this many words and this innermost frame; `None` if that is impossible.
pub fn bounds(stack: usize, size: usize, first: usize) -> Option<Range<usize>> {
    let aligned = |address: usize| address > 0xffff && address % 8 == 0;
    if !aligned(stack) || !aligned(first) || size > MOST_WORDS {
        return None;
    }
    let end = stack.checked_add(size * 8)?;
    let fits = (stack..end).contains(&first) && (end - first) % size_of::<ControlFrame>() == 0;
    fits.then_some(stack..end)
}

/// Words of a frame on a copied stack.
#[derive(Clone, Copy)]
pub struct FrameWords {
    /// Address for its next value.
    pub stack_pointer: usize,
    /// The iseq; 0 for a C function.
    pub iseq: VALUE,
    /// `self`.
    pub receiver: VALUE,
    /// End of its environment: the address of the frame's flags.
    pub environment: usize,
}

impl FrameWords {
    /// The frames in these words, in order.
    pub fn each(words: &[u64]) -> impl Iterator<Item = FrameWords> {
        words.chunks_exact(size_of::<ControlFrame>() / 8).map(|frame| FrameWords {
            stack_pointer: frame[offset_of!(ControlFrame, sp) / 8] as usize,
            iseq: frame[offset_of!(ControlFrame, iseq) / 8],
            receiver: frame[offset_of!(ControlFrame, receiver) / 8],
            environment: frame[offset_of!(ControlFrame, environment) / 8] as usize,
        })
    }
}

/// The frames of a thread, innermost first.
///
/// # Safety
/// As for [`running`]; and the result is used up before the thread goes on.
#[inline(always)]
pub unsafe fn stack<'a>(context: *const Context) -> &'a [ControlFrame] {
    // SAFETY: control frames lie side by side, from the innermost up to the end of the stack.
    unsafe {
        let Context { stack, size, frame } = &*context;
        let end = stack.wrapping_add(*size).cast::<ControlFrame>();
        match (*frame).is_null() || *frame >= end {
            true => &[],
            false => std::slice::from_raw_parts(*frame, end.offset_from(*frame) as usize),
        }
    }
}

/// The same, one by one.
///
/// # Safety
/// `context` is alive and does not change while the result is used.
unsafe fn frames<'a>(context: *const Context) -> impl Iterator<Item = &'a ControlFrame> {
    // SAFETY: control frames lie side by side, from the innermost up to the end of the stack.
    unsafe {
        let end = (*context).stack.wrapping_add((*context).size).cast::<ControlFrame>();
        let mut next = (*context).frame;
        std::iter::from_fn(move || {
            if next.is_null() || next >= end {
                return None;
            }
            let frame = &*next;
            next = next.add(1);
            Some(frame)
        })
    }
}

/// True for a frame that `rb_profile_frames` treats as Ruby code.
#[inline]
fn is_ruby(frame: &ControlFrame, flags: VALUE) -> bool {
    flags & C_FRAME == 0 && frame.iseq != 0 && !frame.pc.is_null()
}

/// The same without the frame below the first one, which exists in 3.1 and never runs.
#[inline(always)]
fn runs(frame: &ControlFrame, flags: VALUE) -> bool {
    is_ruby(frame, flags) && flags & MAGIC != DUMMY
}

/// True for the frame of an extension being loaded: it has the name of its file, and runs no code. 3.1 treats it as Ruby code.
#[inline]
fn is_extension(frame: &ControlFrame, flags: VALUE) -> bool {
    flags & C_FRAME == 0 && frame.iseq != 0 && frame.pc.is_null()
}

/// True if this Ruby is known, and the layout matches the frames that `rb_profile_frames` returned.
///
/// # Safety
/// As for [`paths`].
#[cold]
unsafe fn check(context: *const Context, profiled: Profiled) -> bool {
    let aligned = |address: usize| address != 0 && address % 8 == 0;
    // SAFETY: the context of an event is readable; what is read through it lies inside the thread's stack, as long as the
    // comparisons before hold.
    unsafe {
        if layouts::check().is_err() || !is_context(context) {
            return false;
        }
        let mut ruby = profiled.ruby().peekable();
        for frame in frames(context) {
            if !aligned(frame.environment as usize) {
                return false;
            }
            let flags = *frame.environment;
            if !is_ruby(frame, flags) {
                ruby.next_if(|value| is_extension(frame, flags) && *value == frame.iseq);
                continue;
            }
            let Some(value) = ruby.next() else {
                return true;
            };
            if flags & MAGIC != DUMMY && !same(frame, flags & MAGIC, value) {
                return false;
            }
        }
        ruby.next().is_none()
    }
}

/// True if a control frame may be the one that `rb_profile_frames` returned as `value`.
///
/// # Safety
/// As for [`paths`].
unsafe fn same(frame: &ControlFrame, magic: VALUE, value: VALUE) -> bool {
    // SAFETY: `value` is a frame; the frame's iseq is the same object, or one whose flags say that it is an iseq.
    unsafe {
        if frame.iseq % 8 != 0 || *(frame.iseq as *const VALUE) & OBJECT_KIND != ISEQ {
            return false;
        }
        match magic {
            METHOD => {
                value == frame.iseq
                    || rb_sys::rb_profile_frame_path(value)
                        == rb_sys::rb_profile_frame_path(frame.iseq)
            }
            BLOCK | EVAL | RESCUE => true,
            _ => value == frame.iseq,
        }
    }
}

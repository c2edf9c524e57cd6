//! Reads the event and the object that a hook receives.
//!
//! The VM's accessors cost a substantial part of a hook. So both fields are read directly from struct rb_trace_arg_struct,
//! which is the same in CRuby 3.1 to 4.0 (vm_core.h). The first allocations are checked against the accessors; on a mismatch
//! those are called every time.

use std::sync::atomic::{AtomicI8, Ordering};

use rb_sys::{VALUE, rb_trace_arg_t};

use super::control_frames::{self, Context};
use super::layouts;

/// The head of struct rb_trace_arg_struct.
#[repr(C)]
struct Fields {
    event: u32,
    context: *const Context,
    frame: usize,
    receiver: VALUE,
    id: usize,
    called_id: usize,
    class: VALUE,
    object: VALUE,
}

/// Number of allocations that confirmed the fields; negative if one did not.
static CHECKED: AtomicI8 = AtomicI8::new(0);

/// Number of allocations that confirmed the position; negative if one did not.
static POSITIONS: AtomicI8 = AtomicI8::new(0);

/// Number of checks before they are trusted.
const ENOUGH: i8 = 16;

/// An event and its data.
#[derive(Clone, Copy)]
pub struct Event(*mut rb_trace_arg_t);

impl Event {
    /// The event of a hook's argument.
    ///
    /// # Safety
    /// `arg` was given to a hook that does not return before the last use of the result.
    #[inline(always)]
    pub unsafe fn of(arg: *mut rb_trace_arg_t) -> Self {
        Event(arg)
    }

    /// RUBY_INTERNAL_EVENT_NEWOBJ or another.
    #[inline(always)]
    pub fn kind(self) -> u32 {
        if trusted() {
            // SAFETY: the fields were found to be where they are looked for.
            return unsafe { (*self.0.cast::<Fields>()).event };
        }
        // SAFETY: as for `of`.
        unsafe { rb_sys::rb_tracearg_event_flag(self.0) }
    }

    /// The allocated or freed object. Only valid in these events.
    #[inline(always)]
    pub fn object(self) -> VALUE {
        if trusted() {
            // SAFETY: as in `kind`.
            return unsafe { (*self.0.cast::<Fields>()).object };
        }
        self.checked_object()
    }

    #[cold]
    fn checked_object(self) -> VALUE {
        // SAFETY: as for `of`. The structure is no smaller than Fields in any version that has these hooks.
        let (object, kind, fields) = unsafe {
            (
                rb_sys::rb_tracearg_object(self.0),
                rb_sys::rb_tracearg_event_flag(self.0),
                &*self.0.cast::<Fields>(),
            )
        };
        let checked = CHECKED.load(Ordering::Relaxed);
        if (0..ENOUGH).contains(&checked) {
            let right = fields.object == object && fields.event == kind;
            CHECKED.store(if right { checked + 1 } else { -1 }, Ordering::Relaxed);
        }
        object
    }

    /// The thread's stack; `None` if the fields are not at the expected offsets. Call it after `object`, which checks them.
    #[inline(always)]
    pub fn context(self) -> Option<*const Context> {
        let right = cfg!(target_pointer_width = "64") && CHECKED.load(Ordering::Relaxed) > 0;
        // SAFETY: as in `kind`.
        right.then(|| unsafe { (*self.0.cast::<Fields>()).context })
    }

    /// Position of the innermost Ruby frame: the address of the instruction after the current one, and the iseq. Doesn't call
    /// the VM, which takes longer for path and line than the rest of a hook. `None` until that was confirmed often enough. Call
    /// it after `object`.
    #[inline(always)]
    pub fn position(self) -> Option<(usize, VALUE)> {
        if POSITIONS.load(Ordering::Relaxed) != ENOUGH {
            self.check_position();
            return None;
        }
        // SAFETY: the context of the running thread, whose layout was found right.
        self.context().and_then(|context| unsafe { control_frames::running(context) })
    }

    #[cold]
    fn check_position(self) {
        let checked = POSITIONS.load(Ordering::Relaxed);
        if checked >= 0 && trusted() {
            let right = layouts::check().is_ok() && self.has_position();
            POSITIONS.store(if right { checked + 1 } else { -1 }, Ordering::Relaxed);
        }
    }

    /// True if the position is in an iseq of the file reported by the VM, or if there is none.
    fn has_position(self) -> bool {
        let Some(context) = self.context() else {
            return false;
        };
        // SAFETY: nothing is followed that was not found to be an address, nor the iseq before its flags say that it is one.
        unsafe {
            if !control_frames::is_context(context) {
                return false;
            }
            match control_frames::running(context) {
                Some((instruction, iseq)) => {
                    control_frames::instructions(iseq, instruction).is_some()
                        && rb_sys::rb_profile_frame_path(iseq) == self.path()
                }
                None => true,
            }
        }
    }

    /// Path of the file of the innermost Ruby frame: a String owned by the VM, or nil.
    #[inline(always)]
    pub fn path(self) -> VALUE {
        // SAFETY: as for `of`.
        unsafe { rb_sys::rb_tracearg_path(self.0) }
    }

    /// Line of the innermost Ruby frame, from its program counter.
    #[inline(always)]
    pub fn line(self) -> u32 {
        // SAFETY: as for `of`; returns a Fixnum.
        let line = unsafe { rb_sys::rb_tracearg_lineno(self.0) };
        u32::try_from(line as usize >> 1).unwrap_or(0)
    }
}

#[inline(always)]
fn trusted() -> bool {
    cfg!(target_pointer_width = "64") && CHECKED.load(Ordering::Relaxed) == ENOUGH
}

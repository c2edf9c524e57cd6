//! The frames of one stack, as reported by the VM.

use std::ffi::c_int;

use rb_sys::VALUE;

use super::control_frames::{self, Profiled};
use super::event::Event;

/// Maximum number of frames read from one stack.
const MAX_FRAMES: usize = 2048;

/// The last stack read, innermost frame first.
pub struct StackBuffer {
    pub values: Vec<VALUE>,
    pub lines: Vec<c_int>,
    /// Paths of evaluated code (see [`control_frames::paths`]).
    pub paths: Vec<VALUE>,
}

impl Default for StackBuffer {
    fn default() -> Self {
        StackBuffer {
            values: vec![0; MAX_FRAMES],
            lines: vec![0; MAX_FRAMES],
            paths: Vec::with_capacity(MAX_FRAMES),
        }
    }
}

impl StackBuffer {
    /// Reads the innermost `limit` frames of the current thread and returns their number.
    #[inline]
    pub fn read_frames(&mut self, limit: usize) -> usize {
        let limit = limit.min(MAX_FRAMES);
        // SAFETY: both buffers hold MAX_FRAMES entries; called with the GVL or under the VM lock, in a hook.
        let count = unsafe {
            rb_sys::rb_profile_frames(
                0,
                limit as c_int,
                self.values.as_mut_ptr(),
                self.lines.as_mut_ptr(),
            )
        };
        usize::try_from(count).unwrap_or(0)
    }

    /// Reads the paths of the evaluated code among the `count` frames just read.
    #[inline]
    pub fn read_paths(&mut self, count: usize, event: Event) {
        let profiled = Profiled { values: &self.values[..count], lines: &self.lines[..count] };
        // SAFETY: the context of the event of this hook, and the frames that were read in it.
        let known = event.context().is_some_and(|context| unsafe {
            control_frames::paths(context, profiled, &mut self.paths)
        });
        if !known {
            self.paths.clear();
            self.paths.push(event.path());
        }
    }
}

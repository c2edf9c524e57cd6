//! What hooks can't do: names of methods, and memsizes of the objects that have survived a GC.

use rb_sys::{VALUE, ruby_value_type};

use super::Agent;
use crate::vm::memsize;
use crate::vm::naming;
use crate::vm::ruby_object::Flags;
use crate::vm::tracker;

/// Objects to measure in one job.
pub const PER_JOB: usize = 256;

/// Resolves the pending names. Not to be called inside [`super::with`].
pub fn name_frames() {
    while let Some((frame, id)) =
        super::with(|agent| agent.frames.unnamed.last().copied()).flatten()
    {
        let name = tracker::suspended(|| naming::qualified_name(frame));
        super::with(|agent| {
            let unnamed = &mut agent.frames.unnamed;
            if let Some(at) = unnamed.iter().rposition(|(other, _)| *other == frame) {
                unnamed.swap_remove(at);
            }
            if let Some(name) = name {
                agent.sites.name_method(id, name);
            }
        });
    }
}

/// Reads the memsizes of at most `most` sampled objects. Called outside of a GC: each marking drops those that it did not mark,
/// so all others are alive until the next one ends.
pub fn sizes(agent: &mut Agent, most: usize) {
    agent.samples.measure(most, |address| {
        let object = address as VALUE;
        // SAFETY: an object that was marked by the last GC, and so is alive.
        unsafe {
            let flags = Flags::of(object);
            if is_core(flags) { memsize::memsize(object, flags) } else { None }
        }
    });
}

/// Types of which the VM reads only memory of the object itself.
fn is_core(flags: Flags) -> bool {
    [
        ruby_value_type::RUBY_T_STRING,
        ruby_value_type::RUBY_T_ARRAY,
        ruby_value_type::RUBY_T_HASH,
        ruby_value_type::RUBY_T_OBJECT,
        ruby_value_type::RUBY_T_STRUCT,
        ruby_value_type::RUBY_T_BIGNUM,
        ruby_value_type::RUBY_T_MATCH,
        ruby_value_type::RUBY_T_REGEXP,
    ]
    .iter()
    .any(|core| flags.is(*core))
}

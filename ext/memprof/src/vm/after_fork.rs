//! What happens in the child of a fork, in two steps.
//!
//! At once, before any Ruby code runs ([`init`]): the tracker and the tracers' counters learn that their process is another
//! one. This also happens where C code forks. Later, with the GVL ([`remove_hooks`]): the hooks of the parent's traces go,
//! which takes calls of the VM. Ruby's `_fork` leads there.

use memprof_native::at_fork::{self, AtFork};

use super::{ractors, trace, tracker};

/// Registers the first step. Called once, while the extension is loaded.
pub fn init() {
    at_fork::register(AtFork {
        in_child: || {
            tracker::after_fork();
            trace::after_fork();
            ractors::after_fork();
        },
        ..AtFork::NONE
    });
}

/// The second step.
pub fn remove_hooks() {
    trace::remove_hooks();
}

//! Handles the child of a fork, in two steps.
//!
//! First, before any Ruby code runs ([`init`]): the tracker and the tracers' counters are switched to the new process, also if
//! C code forks. Later, with the GVL ([`remove_hooks`]): the hooks of the parent's traces are removed, which requires calls of
//! the VM. Ruby's `_fork` triggers that.

use memprof_native::at_fork::{self, AtFork};

use super::{agent, ractors, trace, tracker};

/// Registers the first step. Called once, while the extension is loaded.
pub fn init() {
    at_fork::register(AtFork {
        in_child: || {
            tracker::after_fork();
            trace::after_fork();
            ractors::after_fork();
            agent::after_fork();
        },
        ..AtFork::NONE
    });
}

/// The second step.
pub fn remove_hooks() {
    trace::remove_hooks();
}

//! Functions run around a fork, memprof's one use of `pthread_atfork`.
//!
//! Before a fork the functions registered last run first, after it those registered first: later registrations may rely on
//! earlier ones.

use std::cell::Cell;
use std::sync::{Once, OnceLock};

/// Functions to run around a fork. Other threads may hold any lock meanwhile, and do not exist in the child: touch atomics
/// and locks that `before` took, allocate nothing, and call no Ruby.
#[derive(Clone, Copy, Debug)]
pub struct AtFork {
    /// Runs before the fork.
    pub before: fn(),
    /// Runs after the fork, in the process that forked.
    pub in_parent: fn(),
    /// Runs after the fork, in the new process.
    pub in_child: fn(),
}

impl AtFork {
    /// Does nothing.
    pub const NONE: AtFork = AtFork { before: || {}, in_parent: || {}, in_child: || {} };
}

/// Room for all functions, in order of registration.
static REGISTERED: [OnceLock<AtFork>; 8] = [const { OnceLock::new() }; 8];

thread_local! {
    /// Number of `before` functions run for the current fork: registrations made meanwhile wait for the next fork.
    static RAN: Cell<usize> = const { Cell::new(0) };
}

/// Runs these functions around each fork from now on.
///
/// # Panics
///
/// If there are too many registrations: each caller registers once.
pub fn register(functions: AtFork) {
    static HOOKED: Once = Once::new();
    // SAFETY: the functions have the required signature. When this object is unloaded, libc drops them.
    HOOKED.call_once(|| unsafe {
        libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child));
    });
    let registered = REGISTERED.iter().any(|slot| slot.set(functions).is_ok());
    assert!(registered, "too many functions to run at a fork");
}

fn registered() -> impl DoubleEndedIterator<Item = &'static AtFork> + ExactSizeIterator {
    let count = REGISTERED.iter().take_while(|slot| slot.get().is_some());
    let count = count.count();
    (0..count).map(|at| REGISTERED[at].get().unwrap_or(&AtFork::NONE))
}

extern "C" fn before() {
    let registered = registered();
    RAN.set(registered.len());
    registered.rev().for_each(|functions| (functions.before)());
}

extern "C" fn in_parent() {
    let ran = registered().take(RAN.take());
    ran.for_each(|functions| (functions.in_parent)());
}

extern "C" fn in_child() {
    let ran = registered().take(RAN.take());
    ran.for_each(|functions| (functions.in_child)());
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use super::*;

    /// One hexadecimal digit for each function that ran in a fork of the thread below, the first leftmost.
    static STEPS: AtomicU32 = AtomicU32::new(0);

    thread_local! {
        static FORKS: Cell<bool> = const { Cell::new(false) };
    }

    fn step(digit: u32) {
        if FORKS.get() {
            STEPS.store(STEPS.load(Relaxed) << 4 | digit, Relaxed);
        }
    }

    /// Forks; returns the steps of the parent and those of the child.
    fn fork() -> (u32, u32) {
        let mut pipe = [0; 2];
        STEPS.store(0, Relaxed);
        // SAFETY: room for two descriptors.
        assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
        FORKS.set(true);
        // SAFETY: the child writes and exits, and both calls are allowed after a fork.
        let child = unsafe { libc::fork() };
        let mut steps = STEPS.load(Relaxed);
        let size = size_of_val(&steps);
        // SAFETY: as above; the buffer is a whole number of this size.
        unsafe {
            if child == 0 {
                libc::write(pipe[1], (&raw const steps).cast(), size);
                libc::_exit(0);
            }
        }
        FORKS.set(false);
        let in_parent = steps;
        let mut status = 0;
        // SAFETY: this pipe's descriptors, the forked process, and room for the answers.
        unsafe {
            let read = libc::read(pipe[0], (&raw mut steps).cast(), size);
            assert_eq!(read, size as isize);
            assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
            libc::close(pipe[0]);
            libc::close(pipe[1]);
        }
        assert_eq!(status, 0);
        (in_parent, steps)
    }

    #[test]
    fn functions_run_around_a_fork_in_their_order() {
        register(AtFork { before: || step(1), in_parent: || step(2), in_child: || step(3) });
        register(AtFork {
            // Too late for this fork: its `before` was not called.
            before: || {
                step(4);
                register(AtFork { in_parent: || step(7), in_child: || step(7), ..AtFork::NONE });
            },
            in_parent: || step(5),
            in_child: || step(6),
        });
        assert_eq!(fork(), (0x4125, 0x4136));
    }
}

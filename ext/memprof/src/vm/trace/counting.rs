//! Counters updated by a hook while a trace follows them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::counter_owners::{Owner, Owners};
use crate::vm::event_hook::EventHook;

/// Further state of a tracer's hook.
pub trait Own: Send + 'static {
    /// No trace counts any more, and the hook may be removed.
    fn rest(&mut self);
}

/// The counters of a tracer, and its hook. There is one per tracer, for the lifetime of the process.
pub struct Counting<C, O> {
    hook: EventHook,
    /// Set in the child of a fork, until the state is accessed.
    forked: AtomicBool,
    state: Mutex<State<C, O>>,
}

/// The state behind the lock.
pub struct State<C, O> {
    pub owners: Owners<C>,
    pub own: O,
    installed: bool,
}

impl<C: Clone + Default, O: Own> Counting<C, O> {
    /// No trace counts, and the hook is not added yet.
    pub const fn new(hook: EventHook, own: O) -> Self {
        Counting {
            hook,
            forked: AtomicBool::new(false),
            state: Mutex::new(State { owners: Owners::new(), own, installed: false }),
        }
    }

    /// The hook called by the VM while a trace counts.
    pub const fn hook(&self) -> &EventHook {
        &self.hook
    }

    /// Runs in the child of a fork; only sets an atomic.
    pub fn after_fork(&self) {
        self.forked.store(true, Ordering::Relaxed);
    }

    /// The counters. While they are locked nothing may allocate a Ruby object or run Ruby code: that would run the hook, which
    /// needs the lock, too.
    ///
    /// In a forked process, all users of the counters are gone except for the forking thread, whose traces belong to the
    /// parent.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, State<C, O>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if self.forked.load(Ordering::Relaxed) && self.forked.swap(false, Ordering::Relaxed) {
            state.owners.forget();
        }
        state
    }

    /// Starts counting; `prepare` initializes the state that the hook needs.
    pub fn follow(&'static self, owner: Owner, prepare: impl FnOnce(&mut O)) -> Place<C, O> {
        let (place, install) = {
            let mut state = self.lock();
            if state.owners.is_empty() {
                state.own.rest();
            }
            prepare(&mut state.own);
            let place = Place {
                counting: self,
                owner,
                epoch: state.owners.epoch,
                then: state.owners.follow(owner),
                left: false,
            };
            (place, !std::mem::replace(&mut state.installed, true))
        };
        if install {
            self.hook.add();
        } else {
            self.hook.resume();
        }
        place
    }

    /// Removes the hook of the parent's traces in the child of a fork.
    pub fn remove_hook(&self) {
        let remove = {
            let mut state = self.lock();
            state.owners.forget();
            state.own.rest();
            std::mem::take(&mut state.installed)
        };
        if remove {
            self.hook.remove();
        }
    }
}

/// A snapshot of the counters, which go on counting.
pub struct Place<C: Clone + Default + 'static, O: Own> {
    counting: &'static Counting<C, O>,
    owner: Owner,
    epoch: u64,
    then: C,
    left: bool,
}

impl<C: Clone + Default, O: Own> Place<C, O> {
    /// Stops counting. `read` receives the current counters and the snapshot; there is no result after a fork.
    pub fn finish<R>(mut self, read: impl FnOnce(C, &C, &O) -> R) -> Option<R> {
        let then = std::mem::take(&mut self.then);
        self.leave(|now, own| read(now, &then, own))
    }

    /// Not to be called in a hook: see [`EventHook::remove`].
    fn leave<R>(&mut self, read: impl FnOnce(C, &O) -> R) -> Option<R> {
        self.left = true;
        let (result, remove) = {
            let mut state = self.counting.lock();
            if state.owners.epoch != self.epoch {
                return None;
            }
            let now = state.owners.leave(self.owner);
            let result = now.map(|now| read(now, &state.own));
            let remove = state.owners.is_empty();
            if remove {
                state.own.rest();
                state.installed = false;
            }
            (result, remove)
        };
        if remove {
            self.counting.hook.remove();
        }
        result
    }
}

impl<C: Clone + Default, O: Own> Drop for Place<C, O> {
    /// For a trace that was never ended: its fiber is garbage. The VM drops such objects after the GC.
    fn drop(&mut self) {
        if !self.left {
            self.leave(|_, _| ());
        }
    }
}

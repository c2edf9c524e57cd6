//! Adds and removes hooks for the VM's events.

use std::ffi::c_uint;
use std::sync::atomic::{AtomicBool, Ordering};

use rb_sys::VALUE;

use super::ractors;
use super::symbols::{RawHook, symbols};

/// rb_event_hook_flag_t in ruby/debug.h: bits. With RAW_ARG no TracePoint object is needed, and calls are cheapest.
const SAFE: c_uint = 1;
const RAW_ARG: c_uint = 4;

/// A function and the events that trigger it. Each function belongs to one hook.
pub struct EventHook {
    events: u32,
    function: RawHook,
    /// Whether the hook is wanted.
    wanted: AtomicBool,
    /// Whether the hook is added to the VM.
    added: AtomicBool,
}

impl EventHook {
    /// `events`: bits such as RUBY_INTERNAL_EVENT_NEWOBJ. `function` must neither panic nor allocate objects.
    pub const fn new(events: u32, function: RawHook) -> Self {
        EventHook {
            events,
            function,
            wanted: AtomicBool::new(false),
            added: AtomicBool::new(false),
        }
    }

    /// Address of the function.
    pub fn address(&self) -> usize {
        self.function as usize
    }

    /// Adds the hook, now or once the VM permits it ([`ractors`]). The caller must not hold a lock that the function needs.
    pub fn add(&self) {
        self.wanted.store(true, Ordering::Relaxed);
        self.resume();
    }

    /// Removes the hook. Not to be called in a hook: the VM then defers the removal until after the hook, and may walk the heap
    /// for it, which is not allowed during a GC.
    pub fn remove(&self) {
        self.wanted.store(false, Ordering::Relaxed);
        self.suspend();
    }

    /// Adds the hook again after [`suspend`](Self::suspend), if it is still wanted and permitted.
    pub fn resume(&self) {
        if !self.is_suspended() || !ractors::allow_hooks() {
            return;
        }
        self.added.store(true, Ordering::Relaxed);
        if let Some(add_event_hook) = symbols().add_event_hook {
            let data = rb_sys::Qnil as VALUE;
            // SAFETY: called with the GVL; with RAW_ARG the VM calls the function with the arguments that it takes.
            unsafe { add_event_hook(self.function, self.events, data, SAFE | RAW_ARG) };
        }
    }

    /// Whether it is wanted, but not added.
    pub fn is_suspended(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) && !self.added.load(Ordering::Relaxed)
    }

    /// Removes the hook until [`resume`](Self::resume). True if it was added. The restriction of [`remove`](Self::remove)
    /// applies, except in allocation hooks: there the VM may walk the heap.
    pub fn suspend(&self) -> bool {
        if !self.added.swap(false, Ordering::Relaxed) {
            return false;
        }
        if let Some(remove_event_hook) = symbols().remove_event_hook {
            // SAFETY: called with the GVL; the VM defers the removal itself while it runs hooks.
            unsafe { remove_event_hook(self.function) };
        }
        true
    }
}

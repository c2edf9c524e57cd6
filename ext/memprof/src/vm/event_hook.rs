//! Adding and removing a hook for the VM's events.

use std::ffi::c_uint;

use rb_sys::VALUE;

use super::symbols::{RawHook, symbols};

/// rb_event_hook_flag_t in ruby/debug.h: bits. With RAW_ARG no TracePoint object is needed, and a call costs least.
const SAFE: c_uint = 1;
const RAW_ARG: c_uint = 4;

/// A function and the events that it wants to hear of. Each function belongs to one hook.
pub struct EventHook {
    /// RUBY_INTERNAL_EVENT_NEWOBJ and others: bits.
    pub events: u32,
    /// What the VM calls. It must neither panic nor make objects.
    pub function: RawHook,
}

impl EventHook {
    /// Adds the hook. The caller ensures that it is done once, and holds no lock that the function wants.
    pub fn add(&self) {
        if let Some(add_event_hook) = symbols().add_event_hook {
            let data = rb_sys::Qnil as VALUE;
            // SAFETY: called with the GVL; with RAW_ARG the VM calls the function with the arguments that it takes.
            unsafe { add_event_hook(self.function, self.events, data, SAFE | RAW_ARG) };
        }
    }

    /// Removes the hook. Not to be called in a hook: the VM then takes up the removal behind the hook, and may look
    /// through the heap for that, which it must not during a collection.
    pub fn remove(&self) {
        if let Some(remove_event_hook) = symbols().remove_event_hook {
            // SAFETY: called with the GVL; the VM defers the removal itself while it runs hooks.
            unsafe { remove_event_hook(self.function) };
        }
    }
}

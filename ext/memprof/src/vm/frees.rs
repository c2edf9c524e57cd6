//! Handles the free event of an object: removes its record, counts the free in its cell, and drops its address.

use std::sync::atomic::{AtomicBool, Ordering};

use memprof_profile::live::Record;
use rb_sys::{VALUE, ruby_value_type};

use super::memsize;
use super::revealed;
use super::ruby_object::{self, Flags};
use super::tracker::{self, Tracker};

/// Set when a recorded object with a finalizer is freed: objects it references are freed by the next GC only.
static FINALIZED: AtomicBool = AtomicBool::new(false);

/// Whether a recorded object with a finalizer was freed since the last call.
pub fn take_finalized() -> bool {
    FINALIZED.swap(false, Ordering::Relaxed)
}

/// # Safety
/// Called in a free hook with the object that is freed.
#[inline]
pub unsafe fn free(object: VALUE) {
    // SAFETY: the object's slot has not been cleared yet.
    let flags = unsafe { Flags::of(object) };
    tracker::with(|tracker| {
        forget_name(tracker, flags, object);
        if flags.is(ruby_value_type::RUBY_T_DATA) {
            tracker.quiet.forget(object);
            if tracker.recorder.sessions.by_thread() {
                tracker.recorder.sessions.thread_ended(object);
            }
        }
        // With sampling, most objects are not in the table: the rest is for the others.
        if let Some(record) = tracker.recorder.take(object) {
            // SAFETY: as for this function.
            unsafe { count_free(tracker, flags, object, record) };
        }
    });
}

/// # Safety
/// Called in a free hook with the object that is freed.
#[inline(never)]
unsafe fn count_free(tracker: &mut Tracker, flags: Flags, object: VALUE, record: Record) {
    // SAFETY: as for this function.
    let record = unsafe { revealed::record_now(tracker, flags, object, record, false) };
    // SAFETY: as for this function.
    let bytes = unsafe { memsize::of_freed(object, flags) };
    (tracker.recorder).count_free(record, bytes.unwrap_or(u64::from(record.slot_size())));
    if flags.has_finalizer() {
        FINALIZED.store(true, Ordering::Relaxed);
    }
    if flags.is(ruby_value_type::RUBY_T_STRING) && tracker.recorder.wants_string(record) {
        // SAFETY: a T_STRING that is being freed; the bytes are copied at once.
        if let Some(value) = unsafe { ruby_object::string_bytes(object) } {
            tracker.recorder.string_freed(record, value);
        }
    }
}

/// Addresses of freed classes and frames may be reused.
#[inline(always)]
pub(super) fn forget_name(tracker: &mut Tracker, flags: Flags, object: VALUE) {
    let forget = if flags.is(ruby_value_type::RUBY_T_IMEMO) {
        // Most are others, such as call caches.
        tracker.frames.may_be_frame(flags)
    } else {
        is_module(flags)
    };
    if forget {
        forget_known(tracker, flags, object);
    }
}

#[cold]
fn forget_known(tracker: &mut Tracker, flags: Flags, object: VALUE) {
    let known = if flags.is(ruby_value_type::RUBY_T_IMEMO) {
        tracker.frames.forget(object)
    } else {
        tracker.identities.forget(object);
        tracker.classes.forget(object)
    };
    if known {
        tracker.places.clear();
    }
}

/// True for a class or a module.
#[inline(always)]
fn is_module(flags: Flags) -> bool {
    flags.is(ruby_value_type::RUBY_T_CLASS) || flags.is(ruby_value_type::RUBY_T_MODULE)
}

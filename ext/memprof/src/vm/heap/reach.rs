//! Outgoing references of objects and roots, as reported by the VM.

use std::ffi::{CStr, c_char, c_void};

use rb_sys::VALUE;

use super::prefetch;
use crate::vm::symbols::symbols;

/// Outgoing references of `object` as reported by the VM, in marking order. If references are to be `looked_at`, their memory
/// is prefetched.
///
/// # Safety
/// `object` is a slot that holds an object, and no GC runs.
pub unsafe fn reachable(object: VALUE, references: &mut Vec<VALUE>, looked_at: bool) {
    unsafe extern "C" fn collect<const LOOKED_AT: bool>(reference: VALUE, references: *mut c_void) {
        // SAFETY: the vector outlives the call that this is a callback of. Room was made for the push by Rust's own
        // allocator, which calls nothing of Ruby's; it ends the process where it has no memory left.
        unsafe { &mut *references.cast::<Vec<VALUE>>() }.push(reference);
        // Its flags are read for a label.
        if LOOKED_AT {
            prefetch::touch(reference);
        }
    }
    references.clear();
    if let Some(reachable_from) = symbols().reachable_from {
        let references: *mut Vec<VALUE> = references;
        // SAFETY: the caller vouches for the object.
        unsafe {
            if looked_at {
                reachable_from(object, collect::<true>, references.cast());
            } else {
                reachable_from(object, collect::<false>, references.cast());
            }
        }
    }
}

/// Calls `visit` for each root with its category.
pub fn reachable_from_roots(mut visit: impl FnMut(&str, VALUE)) {
    unsafe extern "C" fn collect(category: *const c_char, reference: VALUE, visit: *mut c_void) {
        // SAFETY: the closure outlives the call that this is a callback of; categories are static strings.
        unsafe {
            let visit = &mut *visit.cast::<&mut dyn FnMut(&str, VALUE)>();
            visit(&CStr::from_ptr(category).to_string_lossy(), reference);
        }
    }
    if let Some(reachable_from_root) = symbols().reachable_from_root {
        let mut visit: &mut dyn FnMut(&str, VALUE) = &mut visit;
        // SAFETY: called with the GVL, outside a GC.
        unsafe { reachable_from_root(collect, (&raw mut visit).cast()) };
    }
}

//! Iterates over all slots of the heap, one by one or by page.

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rb_sys::{VALUE, ruby_value_type};
use rustc_hash::FxHashSet;

use super::protect::protect;
use super::ruby_object::Flags;
use super::symbols::symbols;

/// The free slots at one moment, used to find objects allocated later.
pub struct FreeSlots {
    /// First slots of the existing pages.
    pages: FxHashSet<usize>,
    free: FxHashSet<usize>,
}

impl FreeSlots {
    /// The slots that are free now.
    ///
    /// # Errors
    /// As [`each_page`].
    pub fn now() -> Result<FreeSlots, String> {
        let mut now = FreeSlots { pages: FxHashSet::default(), free: FxHashSet::default() };
        each_page(|slots, size| {
            now.pages.insert(slots.start);
            now.free.extend(slots.step_by(size).filter(|slot| is_free(*slot)));
        })?;
        Ok(now)
    }

    /// The objects allocated since then, in these slots or in new pages.
    ///
    /// # Errors
    /// As [`each_page`].
    pub fn used_since(&self) -> Result<Vec<usize>, String> {
        let mut used = Vec::new();
        each_page(|slots, size| {
            let is_old_page = self.pages.contains(&slots.start);
            let was_free = |slot: &usize| !is_old_page || self.free.contains(slot);
            used.extend((slots.step_by(size)).filter(|slot| was_free(slot) && !is_free(*slot)));
        })?;
        Ok(used)
    }
}

/// Whether a slot visited by the walk is free.
fn is_free(slot: usize) -> bool {
    // SAFETY: a slot of the heap page that the walk is at.
    unsafe { Flags::of(slot as VALUE) }.is(ruby_value_type::RUBY_T_NONE)
}

struct Visitor<F> {
    visit: F,
    panicked: bool,
}

/// Calls `visit` with each slot of the heap and its flags, which are 0 in a free one; see [`each_page`].
///
/// # Errors
/// As [`each_page`].
pub fn each_slot<F: FnMut(VALUE, Flags)>(mut visit: F) -> Result<(), String> {
    each_page(|slots, size| {
        for slot in slots.step_by(size) {
            let object = slot as VALUE;
            // SAFETY: a slot of the heap page that the walk is at.
            visit(object, unsafe { Flags::of(object) });
        }
    })
}

/// Calls `visit` with the address range of the slots of each page with objects, and the slot size. Garbage is swept first.
/// `visit` must not allocate a Ruby object or run Ruby code. Not to be called inside `tracker::with`: sweeping runs the free
/// hook.
///
/// # Errors
/// If this Ruby does not offer the walk, the VM raised in it, or `visit` panicked.
pub fn each_page<F: FnMut(Range<usize>, usize)>(visit: F) -> Result<(), String> {
    let each_objects = symbols()
        .each_objects
        .ok_or("this Ruby does not let its heap be walked (rb_objspace_each_objects is missing)")?;
    let mut visitor = Visitor { visit, panicked: false };
    let data: *mut c_void = (&raw mut visitor).cast();
    // SAFETY: called with the GVL, outside a GC; `page` is given the visitor, which outlives the call.
    protect(|| unsafe { each_objects(page::<F>, data) }).map_err(|raised| raised.to_string())?;
    if visitor.panicked {
        return Err("internal error in memprof (please report it)".into());
    }
    Ok(())
}

unsafe extern "C" fn page<F: FnMut(Range<usize>, usize)>(
    start: *mut c_void,
    end: *mut c_void,
    stride: usize,
    visitor: *mut c_void,
) -> c_int {
    // SAFETY: `each_page` passed the visitor, and uses it again only when the walk is done.
    let visitor = unsafe { &mut *visitor.cast::<Visitor<F>>() };
    if visitor.panicked {
        return 1;
    }
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        (visitor.visit)(start as usize..end as usize, stride.max(8));
    }));
    visitor.panicked = outcome.is_err();
    c_int::from(visitor.panicked)
}

//! Instance variables.
//!
//! The VM looks up their names for each object again. Objects with the same layout have the same names in the same slots. So
//! the VM is asked for some objects; if its answers match their slots in order, the others are read without it.

use std::ffi::c_int;

use memprof_dump::record::NameId;
use rb_sys::{ID, VALUE};

use super::details;
use super::name_table::Names;
use super::visitor::Visitor;
use crate::vm::ruby_object::Flags;

const UNDEF: VALUE = rb_sys::Qundef as VALUE;

/// Number of objects with matching slots but duplicate values that count as much as one with distinct values, which identify
/// the slots.
const AGREEING: u32 = 32;

/// Maps an object's slots to instance variables.
#[derive(Default)]
pub struct Layout {
    /// By slot; `None` for one that was always empty so far.
    names: Vec<Option<NameId>>,
    /// Number of objects that matched.
    seen: u32,
    /// Whether one did not match.
    refuted: bool,
}

impl Layout {
    /// True if these slots can be read without the VM.
    #[inline(always)]
    pub fn knows(&self, slots: &[VALUE]) -> bool {
        let known = |(at, value): (usize, &VALUE)| {
            *value == UNDEF || matches!(self.names.get(at), Some(Some(_)))
        };
        self.seen >= AGREEING && !self.refuted && slots.iter().enumerate().all(known)
    }

    /// The instance variable in a slot, if there is one.
    #[inline(always)]
    pub fn name(&self, slot: usize, value: VALUE) -> Option<NameId> {
        if value == UNDEF {
            return None;
        }
        self.names.get(slot).copied().flatten()
    }

    /// Compares the slots of an object with the VM's answer.
    pub fn learn(&mut self, names: &mut Names, slots: &[VALUE], answer: &[(ID, VALUE)]) {
        let filled = || (slots.iter().enumerate()).filter(|(_, value)| **value != UNDEF);
        let values = answer.iter().map(|(_, value)| value);
        if !filled().map(|(_, value)| value).eq(values) {
            self.refuted = true;
            return;
        }
        if slots.len() > self.names.len() {
            self.names.resize(slots.len(), None);
        }
        for ((at, _), (id, _)) in filled().zip(answer) {
            let name = names.id(*id);
            self.refuted |= self.names[at].replace(name).is_some_and(|old| old != name);
        }
        let mut sorted: Vec<VALUE> = answer.iter().map(|(_, value)| *value).collect();
        sorted.sort_unstable();
        let distinct = sorted.windows(2).all(|pair| pair[0] != pair[1]);
        self.seen += if distinct { AGREEING } else { 1 };
    }
}

/// Slots for instance variables of an object.
///
/// # Safety
/// `object` is a T_OBJECT with these flags and this many slots (before Ruby 3.2 it knows itself how many) whose instance
/// variables are not in a hash table. Nothing changes it while the result is used.
#[inline(always)]
pub unsafe fn slots<'a>(object: VALUE, flags: Flags, count: u64) -> &'a [VALUE] {
    // SAFETY: struct RObject (robject.h): values behind the header, or the address of an array of them. What is read is
    // believed when it is what the VM says (`Layout::learn`).
    unsafe {
        let first = (object as *const VALUE).add(2);
        let start = if details::has_slots_inside(flags) {
            first
        } else if cfg!(ruby_gte_3_2) {
            first.cast::<*const VALUE>().read()
        } else {
            first.add(1).cast::<*const VALUE>().read()
        };
        if start.is_null() || count == 0 {
            return &[];
        }
        std::slice::from_raw_parts(start, count as usize)
    }
}

/// Calls `visit` with each instance variable of any object.
pub fn each<F: FnMut(ID, VALUE)>(object: VALUE, visit: F) {
    unsafe extern "C" fn collect<F: FnMut(ID, VALUE)>(
        name: ID,
        value: VALUE,
        visitor: rb_sys::st_data_t,
    ) -> c_int {
        // SAFETY: the visitor outlives the call that this is a callback of, and nothing else uses it meanwhile.
        let visitor = unsafe { &mut *(visitor as *mut Visitor<F>) };
        visitor.call(|visit| visit(name, value))
    }
    let mut visitor = Visitor::new(visit);
    // SAFETY: an object of the walk; the callback is given the visitor.
    unsafe {
        rb_sys::rb_ivar_foreach(object, Some(collect::<F>), (&raw mut visitor) as rb_sys::st_data_t)
    };
    visitor.end();
}

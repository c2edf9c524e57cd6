//! What an object takes, as the VM counts it.

use rb_sys::{VALUE, ruby_value_type};

use super::protect::protect;
use super::ruby_object::Flags;
use super::symbols::symbols;

/// Bytes of an object with what it holds by malloc, as the VM counts them. `None` if it does not: the VM refuses a T_NODE,
/// and the function of an extension's own type may raise. Called with the GVL.
///
/// # Safety
/// `object` is a slot with these flags that holds an object, and that no collection frees meanwhile.
pub unsafe fn memsize(object: VALUE, flags: Flags) -> Option<u64> {
    let memsize_of = symbols().memsize_of?;
    if flags.is(ruby_value_type::RUBY_T_NODE) {
        return None;
    }
    // SAFETY: the caller vouches for the object.
    let asked = || unsafe { memsize_of(object) as u64 };
    if flags.is(ruby_value_type::RUBY_T_DATA) {
        protect(asked).ok()
    } else {
        Some(asked())
    }
}

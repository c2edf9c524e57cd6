//! Method entries: rb_method_entry_t (method.h) is flags, defined_class, def, called_id, owner in all versions.

use memprof_dump::record::Value;
use rb_sys::{ID, VALUE, ruby_value_type};

use super::imemo;
use super::reach::reachable;
use super::walk::Walk;
use super::{details, ruby_value};
use crate::vm::ruby_object::Flags;

const DEFINITION: usize = 2;
const CALLED_ID: usize = 3;
const OWNER: usize = 4;

/// Flag bits (IMEMO_FL_USER3 and 5): created for a module's method in the class that includes it; replaced by another.
const COMPLEMENTED: usize = 1 << 19;
const INVALIDATED: usize = 1 << 21;

/// enum rb_method_type_t: the lowest four bits of a definition.
const UNDEFINED: u8 = 7;
const REFINED: u8 = 11;

/// # Safety
/// `entry` is a method entry.
unsafe fn word(entry: VALUE, index: usize) -> VALUE {
    // SAFETY: the caller vouches.
    unsafe { details::word(entry, index) }
}

/// Name of the method of an entry.
///
/// # Safety
/// `entry` is a method entry.
pub unsafe fn id(entry: VALUE) -> ID {
    // SAFETY: the caller vouches.
    unsafe { word(entry, CALLED_ID) as ID }
}

/// True for a method of this class or module itself. Its other references are entries of its caches: inherited methods, and
/// negative lookups.
///
/// # Safety
/// `entry` is a method entry of the walk.
pub unsafe fn is_of(entry: VALUE, owner: VALUE) -> bool {
    // SAFETY: the caller vouches; a definition begins with its type.
    unsafe {
        let flags = Flags::of(entry);
        let definition = word(entry, DEFINITION) as *const u8;
        if word(entry, OWNER) != owner
            || flags.0 & (COMPLEMENTED | INVALIDATED) != 0
            || definition.is_null()
        {
            return false;
        }
        match *definition & 0xf {
            UNDEFINED => false,
            REFINED => has_method_behind(entry),
            _ => true,
        }
    }
}

/// True for a refined method that the class also has without the refinement: the entry refers to that one.
///
/// # Safety
/// As [`is_of`].
unsafe fn has_method_behind(entry: VALUE) -> bool {
    let mut references = Vec::new();
    // SAFETY: the caller vouches; what an object of the walk refers to is an object.
    unsafe {
        reachable(entry, &mut references, false);
        references.iter().any(|reference| {
            let flags = Flags::of(*reference);
            flags.is(ruby_value_type::RUBY_T_IMEMO) && flags.imemo_type() == imemo::METHOD
        })
    }
}

/// Name and owner of a method entry, as facts.
///
/// # Safety
/// `entry` is a method entry of the walk.
pub unsafe fn facts(walk: &mut Walk, entry: VALUE) {
    // SAFETY: the caller vouches; the owner is a class that the entry refers to.
    unsafe {
        let id = id(entry);
        if id != 0 {
            let name = walk.names.id(id);
            walk.field("name", Value::Name(name));
        }
        let owner = word(entry, OWNER);
        if ruby_value::is_address(owner) && details::is_module(owner) {
            if let Some(name) = walk.names.class(owner) {
                walk.field("owner", Value::Name(name));
            }
        }
    }
}

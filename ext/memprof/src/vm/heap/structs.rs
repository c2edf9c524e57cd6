//! Members of structs.

use std::sync::OnceLock;

use memprof_dump::record::NameId;
use rb_sys::{ID, StableApiDefinition, VALUE, ruby_value_type};

use super::name_table::Names;
use super::{ruby_value, text};
use crate::vm::ruby_object::Flags;

/// Internal name of a struct or Data class's members (struct.c).
fn members_id() -> ID {
    static MEMBERS: OnceLock<ID> = OnceLock::new();
    // SAFETY: interns a name that struct.c interns, too.
    *MEMBERS.get_or_init(|| unsafe { rb_sys::rb_intern(c"__members__".as_ptr()) })
}

/// Interns the name in advance: that may allocate, which the walk must not do.
pub fn init() {
    members_id();
}

/// Names of the members of a struct class, in order, from the nearest ancestor that has them: the VM's own function would store
/// them in the class.
pub fn members(names: &mut Names, mut class: VALUE) -> Vec<NameId> {
    let api = rb_sys::stable_api::get_default();
    while class != 0 {
        // SAFETY: a class that is alive; reads an instance variable.
        let members = unsafe { rb_sys::rb_attr_get(class, members_id()) };
        // SAFETY: the value of an instance variable; an array of symbols that nothing changes.
        unsafe {
            if ruby_value::is_address(members)
                && Flags::of(members).is(ruby_value_type::RUBY_T_ARRAY)
            {
                let length = usize::try_from(api.rarray_len(members)).unwrap_or(0);
                return (0..length)
                    .map(|index| member(names, api.rarray_aref(members, index as isize)))
                    .collect();
            }
            class = rb_sys::rb_class_get_superclass(class);
        }
    }
    Vec::new()
}

fn member(names: &mut Names, symbol: VALUE) -> NameId {
    if ruby_value::is_address(symbol) {
        // SAFETY: a Symbol that is an object; its name is a String that it holds.
        let name = unsafe { rb_sys::rb_sym2str(symbol) };
        // SAFETY: as above.
        if unsafe { text::is_string(name) } {
            if let Some(name) = names.string(name) {
                return name;
            }
        }
    }
    names.id((symbol >> 8) as ID)
}

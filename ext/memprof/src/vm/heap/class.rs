//! Classes and modules: name, superclass, methods, constants, variables.

use std::ffi::c_int;

use memprof_dump::record::{Detail, Flags as Bits, Label};
use rb_sys::{ID, VALUE, ruby_value_type};

use super::walk::Walk;
use super::{imemo, method, ruby_value};
use crate::vm::classes::{self, is_singleton};
use crate::vm::ruby_object::Flags;
use crate::vm::symbols::symbols;

/// Data of a class, module or included module.
///
/// # Safety
/// `object` is one of these.
pub unsafe fn detail(
    walk: &mut Walk,
    object: VALUE,
    flags: Flags,
    bits: &mut Bits,
) -> Detail<'static> {
    // SAFETY: the caller vouches; the functions follow superclasses and read names that classes hold.
    unsafe {
        let superclass = rb_sys::rb_class_get_superclass(object);
        let super_name =
            if superclass == 0 || !walk.scope.labels { None } else { walk.names.class(superclass) };
        let iclass = flags.is(ruby_value_type::RUBY_T_ICLASS);
        let hidden = crate::vm::ruby_object::class_word(object) == 0;
        let name =
            if iclass || hidden { None } else { walk.names.string(rb_sys::rb_mod_name(object)) };
        let real_name = match name {
            None if !iclass && !hidden => {
                let real = classes::real(object);
                if real == 0 { None } else { walk.names.string(rb_sys::rb_mod_name(real)) }
            }
            _ => None,
        };
        bits.set(Bits::SINGLETON, !iclass && !hidden && is_singleton(object, flags));
        Detail::Class {
            name,
            real_name,
            superclass,
            super_name,
            variations: if flags.is(ruby_value_type::RUBY_T_CLASS) {
                variations(object)
            } else {
                None
            },
        }
    }
}

/// Number of shapes below a class; unavailable in Ruby 3.1.
///
/// # Safety
/// `class` is a T_CLASS.
unsafe fn variations(class: VALUE) -> Option<u32> {
    if !cfg!(ruby_gte_3_2) {
        return None;
    }
    if let Some(count) = symbols().class_variation_count {
        // SAFETY: a class.
        return Some(unsafe { count(class) });
    }
    /// struct rb_classext_struct, behind struct RClass: 14 words, then max_iv_count (32 bits), then the count, which
    /// has 8 bits since 3.3 and 32 before.
    const COUNT: usize = 32 + 14 * 8 + 4;
    // SAFETY: a class of Ruby 3.2 to 3.4 has its extension in its slot.
    unsafe {
        let count = (class as *const u8).add(COUNT);
        Some(if cfg!(ruby_gte_3_3) { u32::from(*count) } else { count.cast::<u32>().read() })
    }
}

/// Labels of a class's outgoing references.
///
/// # Safety
/// `object` is a class, module or included module of the walk; `walk.references` has what it refers to.
pub unsafe fn label(
    walk: &mut Walk,
    object: VALUE,
    flags: Flags,
    labels: &mut Vec<(Label, VALUE)>,
) {
    let role = walk.names.word("super");
    // SAFETY: the caller vouches.
    unsafe {
        labels.push((Label::Role(role), rb_sys::rb_class_get_superclass(object)));
        if !flags.is(ruby_value_type::RUBY_T_ICLASS) {
            // Before instance variables: since Ruby 4.0 the class's `fields` refer to the values of these, and the first of
            // two labels for one reference wins.
            constants(walk, object, labels);
            super::contents::collect_ivars(walk, object, labels);
            if is_singleton(object, flags) {
                if let Some(attached_object) = symbols().attached_object {
                    let role = walk.names.word("attached");
                    labels.push((Label::Role(role), attached_object(object)));
                }
            }
        }
    }
    // SAFETY: as above. Methods of a class that has prepended modules are those of an included class that stands for it;
    // what the class itself refers to then are entries of its caches.
    let owner = unsafe {
        if flags.is(ruby_value_type::RUBY_T_ICLASS) {
            Some(crate::vm::ruby_object::class_word(object))
        } else {
            (!has_prepended(object)).then_some(object)
        }
    };
    let mut names = std::mem::take(&mut walk.methods);
    names.clear();
    for index in 0..walk.references.len() {
        let reference = walk.references[index];
        // SAFETY: what an object of the walk refers to is an object.
        let other = unsafe { Flags::of(reference) };
        if !other.is(ruby_value_type::RUBY_T_IMEMO) {
            continue;
        }
        if other.imemo_type() == imemo::METHOD {
            // SAFETY: a method entry. The table of methods comes before the caches, which may have another of its name.
            let (id, own) = unsafe {
                let own = owner.is_some_and(|owner| method::is_of(reference, owner));
                (method::id(reference), own)
            };
            let label = if own && names.insert(id) {
                Label::Method(walk.names.id(id))
            } else {
                Label::Role(walk.names.word("cache"))
            };
            labels.push((label, reference));
        } else if imemo::is_fields(other) {
            labels.push((Label::Role(walk.names.word("fields")), reference));
        }
    }
    walk.methods = names;
}

/// True for a class or module with prepended modules: one of the included classes right above represents it.
///
/// # Safety
/// `class` is a class or module of the walk.
unsafe fn has_prepended(class: VALUE) -> bool {
    // SAFETY: what stands above a class is a class, or 0.
    unsafe {
        let mut above = rb_sys::rb_class_get_superclass(class);
        while ruby_value::is_address(above) && Flags::of(above).is(ruby_value_type::RUBY_T_ICLASS) {
            if crate::vm::ruby_object::class_word(above) == class {
                return true;
            }
            above = rb_sys::rb_class_get_superclass(above);
        }
        false
    }
}

/// Constants of the class itself. Never triggers an autoload.
unsafe fn constants(walk: &mut Walk, class: VALUE, labels: &mut Vec<(Label, VALUE)>) {
    /// rb_const_entry_t in constant.h: flag and line (32 bits each), value, file.
    const VALUE_WORD: usize = 1;
    unsafe extern "C" fn collect(name: usize, entry: usize, found: usize) -> c_int {
        // SAFETY: the vector outlives the call that this is a callback of; the entry is that of a constant.
        unsafe {
            let value = *(entry as *const VALUE).add(VALUE_WORD);
            (*(found as *mut Vec<(ID, VALUE)>)).push((name as ID, value));
        }
        0
    }
    let mut found: Vec<(ID, VALUE)> = Vec::new();
    // SAFETY: a class or module; the table, which is the walk's own, gets the entries that the class holds. Memory for
    // it comes from Ruby's allocator, whose GC is disabled during the walk.
    unsafe {
        let table = walk.constants.table();
        rb_sys::rb_mod_const_at(class, table.cast());
        each_entry(table, collect, (&raw mut found) as usize);
        if !found.is_empty() {
            rb_sys::rb_st_clear(table);
        }
    }
    for (id, value) in found {
        // An autoload constant that is not loaded yet has no value.
        if value != rb_sys::Qundef as VALUE {
            labels.push((Label::Constant(walk.names.id(id)), value));
        }
    }
}

/// A table reused for the constants of one class after the other.
#[derive(Default)]
pub struct Constants(Option<*mut rb_sys::st_table>);

impl Constants {
    fn table(&mut self) -> *mut rb_sys::st_table {
        // SAFETY: makes an empty table; the walk has GC disabled.
        *self.0.get_or_insert_with(|| unsafe { rb_sys::rb_st_init_numtable() })
    }
}

impl Drop for Constants {
    fn drop(&mut self) {
        if let Some(table) = self.0 {
            // SAFETY: made by `table`, and ours alone.
            unsafe { rb_sys::rb_st_free_table(table) };
        }
    }
}

unsafe fn each_entry(
    table: *mut rb_sys::st_table,
    callback: unsafe extern "C" fn(usize, usize, usize) -> c_int,
    data: usize,
) {
    if let Some(table_foreach) = symbols().table_foreach {
        // SAFETY: the caller passes a table and what its callback takes.
        unsafe { table_foreach(table.cast(), callback, data) };
    }
}

//! Internal objects of the VM: iseqs, environments, method entries, call caches.
//!
//! The words of their structs (vm_core.h, method.h, vm_callinfo.h) that are read here are the same from Ruby 3.1 to 4.0.

use memprof_dump::record::{Detail, Label, NameId, Value};
use rb_sys::{ID, VALUE};

use super::walk::Walk;
use super::{method, ruby_value};
pub use crate::vm::layouts::{CALLCACHE, CALLINFO, CREF, ENV, ISEQ, METHOD};
use crate::vm::ruby_object::Flags;

#[cfg(ruby_gte_4_0)]
const FIELDS: u32 = 13;

/// True for the object with the instance variables of one that has no room for them (Ruby 4.0).
#[cfg(ruby_gte_4_0)]
pub fn is_fields(flags: Flags) -> bool {
    flags.imemo_type() == FIELDS
}

/// Doesn't exist before Ruby 4.0.
#[cfg(not(ruby_gte_4_0))]
pub fn is_fields(_: Flags) -> bool {
    false
}

/// True for types without malloc'ed memory: the VM counts only their slot.
#[inline]
pub fn is_in_slot(flags: Flags) -> bool {
    matches!(flags.imemo_type(), CREF | CALLCACHE)
}

/// # Safety
/// `object` is an imemo; an imemo has at least five words.
unsafe fn word(object: VALUE, index: usize) -> VALUE {
    // SAFETY: the caller vouches.
    unsafe { *(object as *const VALUE).add(index) }
}

/// Data of an imemo.
///
/// # Safety
/// `object` is an imemo of the walk.
pub unsafe fn detail(walk: &mut Walk, object: VALUE, flags: Flags) -> Detail<'static> {
    let kind = flags.imemo_type();
    let name = walk.names.imemo(flags);
    let (mut mid, mut called_id, mut receiver_class) = (None, None, 0);
    // SAFETY: an imemo, of the type whose struct is read.
    unsafe {
        if kind == CALLINFO {
            let id = word(object, 2);
            mid = (id != 0).then(|| walk.names.id(id as ID));
        } else if kind == CALLCACHE {
            let class = word(object, 1);
            let entry = word(object, 2);
            let live = class != 0 && class != rb_sys::Qundef as VALUE;
            // Before 4.0 objspace names the method even if the class was freed.
            let names_method = if cfg!(ruby_gte_4_0) { live } else { true };
            if cfg!(ruby_gte_3_3) && names_method && ruby_value::is_address(entry) {
                let id = word(entry, 3);
                called_id = (id != 0).then(|| walk.names.id(id as ID));
            }
            receiver_class = if cfg!(ruby_gte_3_3) && live { class } else { 0 };
        } else if kind == METHOD && walk.scope.labels {
            method::facts(walk, object);
        } else if kind == ISEQ && walk.scope.labels {
            place(walk, object);
        }
    }
    Detail::Imemo { name, mid, called_id, receiver_class }
}

/// File, first line and name of an iseq, as facts.
///
/// # Safety
/// `iseq` is an iseq, or something else that the VM stores in its place, which is ignored.
pub unsafe fn place(walk: &mut Walk, iseq: VALUE) {
    // SAFETY: an object of the walk. The functions read what an iseq with a body has; none of them allocates.
    unsafe {
        let flags = Flags::of(iseq);
        let is_iseq = flags.is(rb_sys::ruby_value_type::RUBY_T_IMEMO) && flags.imemo_type() == ISEQ;
        if !is_iseq || word(iseq, 2) == 0 || !complete(walk, iseq) {
            return;
        }
        if let Some(path) = walk.names.string(rb_sys::rb_profile_frame_path(iseq)) {
            let file = walk.names.file(path);
            walk.field("source_file", Value::Name(file));
        }
        let line = rb_sys::rb_profile_frame_first_lineno(iseq);
        if line & 1 == 1 {
            walk.field("source_line", Value::Int((line as i64) >> 1));
        }
        if let Some(name) = walk.names.string(rb_sys::rb_profile_frame_base_label(iseq)) {
            walk.field("name", Value::Name(name));
        }
    }
}

/// True if the iseq has its path: during compilation it may have none, and the VM's functions would dereference a null.
unsafe fn complete(walk: &Walk, iseq: VALUE) -> bool {
    match &walk.data_types.locals {
        // SAFETY: an iseq with a body.
        Some(locals) => unsafe { locals.has_path(iseq) },
        None => false,
    }
}

/// Labels of an imemo's outgoing references.
///
/// # Safety
/// `object` is an imemo of the walk.
pub unsafe fn label(
    walk: &mut Walk,
    object: VALUE,
    flags: Flags,
    labels: &mut Vec<(Label, VALUE)>,
) {
    let words: &[(usize, &'static str)] = match flags.imemo_type() {
        // SAFETY: an environment.
        ENV => return unsafe { env(walk, object, labels) },
        METHOD => &[(1, "defined_class"), (4, "owner")],
        CREF => &[(1, "refinements"), (2, "class"), (3, "next")],
        CALLCACHE => &[(2, "method")],
        ISEQ => &[(1, "wrapper")],
        _ if is_fields(flags) => {
            super::contents::collect_ivars(walk, object, labels);
            return;
        }
        _ => &[],
    };
    for (index, name) in words {
        let role = walk.names.word(name);
        // SAFETY: an imemo has these words.
        labels.push((Label::Role(role), unsafe { word(object, *index) }));
    }
    for index in 0..walk.references.len() {
        let reference = walk.references[index];
        // SAFETY: what an object of the walk refers to is an object.
        let other = unsafe { Flags::of(reference) };
        if other.is(rb_sys::ruby_value_type::RUBY_T_IMEMO) && other.imemo_type() == ISEQ {
            let role = if flags.imemo_type() == METHOD { "body" } else { "child" };
            labels.push((Label::Role(walk.names.word(role)), reference));
        }
    }
}

/// Variables of an environment by name: rb_env_t is flags, iseq, ep, env, env_size.
///
/// # Safety
/// `object` is an environment.
pub unsafe fn variables(walk: &mut Walk, object: VALUE) -> Vec<(NameId, VALUE)> {
    // SAFETY: an environment; `env` has `env_size` words, the first of which are the local variables.
    unsafe {
        let (iseq, env) = (word(object, 1), word(object, 3) as *const VALUE);
        let size = word(object, 4) as u32 as usize;
        let Some(locals) = walk.data_types.locals else {
            return Vec::new();
        };
        if env.is_null() || iseq == 0 {
            return Vec::new();
        }
        let names = locals.names(iseq).iter().take(size).enumerate();
        names.map(|(index, id)| (walk.names.id(*id), *env.add(index))).collect()
    }
}

/// # Safety
/// `object` is an environment.
unsafe fn env(walk: &mut Walk, object: VALUE, labels: &mut Vec<(Label, VALUE)>) {
    // SAFETY: the caller vouches.
    let variables = unsafe { variables(walk, object) };
    labels.extend((variables.into_iter()).map(|(name, value)| (Label::Local(name), value)));
    // SAFETY: as above; its second word is the iseq, which is a label only if the VM refers to it, too.
    labels.push((Label::Role(walk.names.word("iseq")), unsafe { word(object, 1) }));
    // The outer environment.
    for index in 0..walk.references.len() {
        let reference = walk.references[index];
        // SAFETY: what an object of the walk refers to is an object.
        let flags = unsafe { Flags::of(reference) };
        let outer = flags.is(rb_sys::ruby_value_type::RUBY_T_IMEMO) && flags.imemo_type() == ENV;
        if outer && reference != object {
            labels.push((Label::Role(walk.names.word("outer")), reference));
        }
    }
}

//! What an object refers to, with labels.

use std::ffi::c_int;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use memprof_heap::dump::record::{Kind, Label, NameId, PREVIEW};
use memprof_heap::dump::values::beginning;
use rb_sys::{ID, StableApiDefinition, VALUE, ruby_value_type};

use super::walk::{Walk, reachable};
use super::{class, details, imemo, known, shapes, text, values};
use crate::vm::object::Flags;
use crate::vm::symbols::symbols;

/// True if an object that is no T_OBJECT, class or module has instance variables or the like.
#[inline]
pub fn has_fields(flags: Flags) -> bool {
    if cfg!(ruby_gte_4_0) {
        shapes::has_fields(flags)
    } else {
        flags.0 & rb_sys::ruby_fl_type::RUBY_FL_EXIVAR as usize != 0
    }
}

/// True if all that an object refers to is found in the object itself, so that the VM need not be asked.
#[inline]
fn is_plain(flags: Flags) -> bool {
    match Kind(flags.value_type() as u8) {
        Kind::OBJECT => true,
        Kind::STRING => !text::is_shared(flags) && !has_fields(flags),
        Kind::ARRAY => !details::is_shared_array(flags) && !has_fields(flags),
        Kind::HASH | Kind::FLOAT | Kind::BIGNUM => !has_fields(flags),
        _ => false,
    }
}

/// Asks the VM what an object refers to, if that is needed.
///
/// # Safety
/// `object` is a slot that holds an object; the collector does not run.
#[inline]
pub unsafe fn references(walk: &mut Walk<'_>, object: VALUE, flags: Flags) {
    walk.references.clear();
    if !is_plain(flags) {
        // SAFETY: the caller vouches.
        unsafe { reachable(object, &mut walk.references) };
    }
}

/// Writes the edges of an object. The class is none of them.
///
/// # Safety
/// As [`references`], which was called for the object.
#[inline]
pub unsafe fn edges(
    walk: &mut Walk<'_>,
    object: VALUE,
    flags: Flags,
    class: VALUE,
) -> io::Result<()> {
    // SAFETY: the caller vouches.
    unsafe {
        if is_plain(flags) {
            return match Kind(flags.value_type() as u8) {
                Kind::OBJECT => ivars(walk, object),
                Kind::ARRAY => array(walk, object),
                Kind::HASH => hash(walk, object),
                _ => Ok(()),
            };
        }
        if !walk.scope.labels {
            for index in 0..walk.references.len() {
                let reference = walk.references[index];
                if reference != class {
                    walk.value_edge(Label::None, reference)?;
                }
            }
            return Ok(());
        }
        let mut labels = std::mem::take(&mut walk.labels);
        labels.clear();
        label(walk, object, flags, &mut labels);
        let outcome = merge(walk, &labels, class);
        walk.labels = labels;
        outcome
    }
}

/// Labels of what an object refers to, by its type; values that are no references are among them.
unsafe fn label(
    walk: &mut Walk<'_>,
    object: VALUE,
    flags: Flags,
    labels: &mut Vec<(Label, VALUE)>,
) {
    // SAFETY: an object of the walk; each arm reads the struct of its type.
    unsafe {
        match Kind(flags.value_type() as u8) {
            Kind::CLASS | Kind::MODULE | Kind::ICLASS => {
                return class::label(walk, object, flags, labels);
            }
            Kind::DATA => known::label(walk, object, labels),
            Kind::IMEMO => return imemo::label(walk, object, flags, labels),
            Kind::STRUCT => members(walk, object, labels),
            Kind::HASH => {
                each_entry(object, |key, value| {
                    labels.push((Label::Key, key));
                    labels.push((Label::Entry, value));
                });
                let role = walk.names.word("default");
                labels.push((
                    Label::Role(role),
                    details::word(object, details::HASH_DEFAULT),
                ));
            }
            Kind::ARRAY if !details::is_shared_array(flags) => elements(object, labels),
            Kind::STRING | Kind::ARRAY => by_type(walk, &[(flags.value_type(), "shared")], labels),
            Kind::SYMBOL => by_type(walk, &[(0x05, "name")], labels),
            Kind::REGEXP => by_type(walk, &[(0x05, "source")], labels),
            Kind::MATCH => by_type(walk, &[(0x05, "string"), (0x06, "regexp")], labels),
            Kind::RATIONAL => words(walk, object, &["numerator", "denominator"], labels),
            Kind::COMPLEX => words(walk, object, &["real", "imaginary"], labels),
            Kind::FILE => {
                let io = details::word(object, 2);
                if io != 0 {
                    let role = walk.names.word("path");
                    labels.push((Label::Role(role), details::word(io, details::IO_PATH)));
                }
            }
            _ => {}
        }
    }
    if has_fields(flags) {
        if cfg!(ruby_gte_4_0) {
            by_type(
                walk,
                &[(ruby_value_type::RUBY_T_IMEMO as u32, "fields")],
                labels,
            );
        } else {
            collect_ivars(walk, object, labels);
        }
    }
}

fn words(
    walk: &mut Walk<'_>,
    object: VALUE,
    names: &[&'static str],
    labels: &mut Vec<(Label, VALUE)>,
) {
    for (index, name) in names.iter().enumerate() {
        let role = walk.names.word(name);
        // SAFETY: struct RRational and RComplex are two VALUEs behind the header.
        labels.push((Label::Role(role), unsafe {
            details::word(object, 2 + index)
        }));
    }
}

/// References of a type have a role.
fn by_type(walk: &mut Walk<'_>, roles: &[(u32, &'static str)], labels: &mut Vec<(Label, VALUE)>) {
    for index in 0..walk.references.len() {
        let reference = walk.references[index];
        // SAFETY: what an object of the walk refers to is an object.
        let kind = unsafe { Flags::of(reference) }.value_type();
        if let Some((_, name)) = roles.iter().find(|(of, _)| *of == kind) {
            labels.push((Label::Role(walk.names.word(name)), reference));
        }
    }
}

/// Instance variables of any object: name and value.
pub fn collect_ivars(walk: &mut Walk<'_>, object: VALUE, labels: &mut Vec<(Label, VALUE)>) {
    each_ivar(object, |id, value| {
        labels.push((ivar_label(walk.names.id(id), walk), value))
    });
}

/// Classes have class variables, and the VM's own, where other objects have instance variables.
fn ivar_label(name: NameId, walk: &Walk<'_>) -> Label {
    let text = walk.names.tables.name(name);
    if text.starts_with("@@") {
        Label::ClassVariable(name)
    } else if text.starts_with('@') {
        Label::Ivar(name)
    } else {
        Label::Role(name)
    }
}

fn each_ivar<F: FnMut(ID, VALUE)>(object: VALUE, mut visit: F) {
    unsafe extern "C" fn collect<F: FnMut(ID, VALUE)>(
        name: ID,
        value: VALUE,
        visit: rb_sys::st_data_t,
    ) -> c_int {
        // SAFETY: the closure outlives the call that this is a callback of.
        let visit = unsafe { &mut *(visit as *mut F) };
        let outcome = catch_unwind(AssertUnwindSafe(|| visit(name, value)));
        c_int::from(outcome.is_err())
    }
    // SAFETY: an object of the walk; the callback is given the closure.
    unsafe {
        rb_sys::rb_ivar_foreach(
            object,
            Some(collect::<F>),
            (&raw mut visit) as rb_sys::st_data_t,
        )
    };
}

unsafe fn ivars(walk: &mut Walk<'_>, object: VALUE) -> io::Result<()> {
    let mut outcome = Ok(());
    each_ivar(object, |id, value| {
        if outcome.is_ok() {
            let name = walk.names.id(id);
            outcome = walk.value_edge(Label::Ivar(name), value);
        }
    });
    outcome
}

/// # Safety
/// `object` is a T_ARRAY.
unsafe fn array(walk: &mut Walk<'_>, object: VALUE) -> io::Result<()> {
    // SAFETY: the caller vouches; nothing changes the array during the walk.
    for (index, value) in unsafe { slice(object) }.iter().enumerate() {
        walk.value_edge(Label::Index(index as u32), *value)?;
    }
    Ok(())
}

unsafe fn elements(object: VALUE, labels: &mut Vec<(Label, VALUE)>) {
    // SAFETY: a T_ARRAY, as the caller vouches.
    let elements = unsafe { slice(object) };
    labels.extend(
        elements
            .iter()
            .enumerate()
            .map(|(index, value)| (Label::Index(index as u32), *value)),
    );
}

/// # Safety
/// `array` is a T_ARRAY that nothing changes while the result is used.
unsafe fn slice<'a>(array: VALUE) -> &'a [VALUE] {
    let api = rb_sys::stable_api::get_default();
    // SAFETY: the caller vouches.
    unsafe {
        let length = usize::try_from(api.rarray_len(array)).unwrap_or(0);
        let start = api.rarray_const_ptr(array);
        if start.is_null() || length == 0 {
            &[]
        } else {
            std::slice::from_raw_parts(start, length)
        }
    }
}

/// # Safety
/// `object` is a T_HASH.
unsafe fn hash(walk: &mut Walk<'_>, object: VALUE) -> io::Result<()> {
    let mut outcome = Ok(());
    // SAFETY: the caller vouches.
    unsafe {
        each_entry(object, |key, value| {
            if outcome.is_ok() {
                outcome = entry(walk, key, value);
            }
        });
    }
    outcome?;
    // SAFETY: struct RHash has this word.
    let default = unsafe { details::word(object, details::HASH_DEFAULT) };
    if values::is_address(default) {
        let role = walk.names.word("default");
        walk.value_edge(Label::Role(role), default)?;
    }
    Ok(())
}

fn entry(walk: &mut Walk<'_>, key: VALUE, value: VALUE) -> io::Result<()> {
    // SAFETY: the key of a hash is an immediate or an object.
    let preview = unsafe {
        (walk.scope.labels && walk.names.values.previews() && text::is_string(key))
            .then(|| beginning(text::bytes(key), PREVIEW))
    };
    let key = values::decode(&mut walk.names, key);
    let value = values::decode(&mut walk.names, value);
    walk.entry(key, preview, value)
}

/// # Safety
/// `hash` is a T_HASH.
unsafe fn each_entry<F: FnMut(VALUE, VALUE)>(hash: VALUE, mut visit: F) {
    unsafe extern "C" fn collect<F: FnMut(VALUE, VALUE)>(
        key: VALUE,
        value: VALUE,
        visit: usize,
    ) -> c_int {
        // SAFETY: the closure outlives the call that this is a callback of.
        let visit = unsafe { &mut *(visit as *mut F) };
        // ST_CONTINUE or ST_STOP.
        c_int::from(catch_unwind(AssertUnwindSafe(|| visit(key, value))).is_err())
    }
    if let Some(hash_foreach) = symbols().hash_foreach {
        // SAFETY: the caller vouches; the callback is given the closure.
        unsafe { hash_foreach(hash, collect::<F>, (&raw mut visit) as usize) };
    }
}

/// Values of a struct by the names of its members.
///
/// # Safety
/// `object` is a T_STRUCT.
unsafe fn members(walk: &mut Walk<'_>, object: VALUE, labels: &mut Vec<(Label, VALUE)>) {
    // SAFETY: the caller vouches; within its size an element is read without an error.
    unsafe {
        let class = crate::vm::object::class_word(object);
        let names = walk.members_of(class);
        let size = rb_sys::rb_struct_size(object) >> 1;
        for index in 0..size {
            let value = rb_sys::rb_struct_aref(object, (index << 1) | 1);
            let label = names
                .get(index as usize)
                .map_or(Label::Index(index as u32), |name| Label::Member(*name));
            labels.push((label, value));
        }
    }
}

/// Writes labelled values, of the references those only that the VM names, and then references without a label.
unsafe fn merge(walk: &mut Walk<'_>, labels: &[(Label, VALUE)], class: VALUE) -> io::Result<()> {
    let mut left = std::mem::take(&mut walk.left);
    left.begin(&walk.references, class);
    let mut key = None;
    for (label, value) in labels {
        if *label == Label::Key {
            key = Some(*value);
            continue;
        }
        let present = !values::is_address(*value) || left.take(&walk.references, *value);
        if *label == Label::Entry {
            if let Some(key) = key.take() {
                left.take(&walk.references, key);
                entry(walk, key, *value)?;
            }
        } else if present && (values::is_address(*value) || is_content(*label)) {
            walk.value_edge(*label, *value)?;
        }
    }
    for index in 0..walk.references.len() {
        if left.has(&walk.references, index) {
            walk.value_edge(Label::None, walk.references[index])?;
        }
    }
    walk.left = left;
    Ok(())
}

/// True for what is written also if it is no reference: a program's data, unlike the VM's own words.
fn is_content(label: Label) -> bool {
    !matches!(label, Label::Role(_) | Label::None | Label::Constant(_))
}

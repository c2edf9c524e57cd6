//! Outgoing references of objects, with labels.

use std::ffi::c_int;
use std::io;

use memprof_dump::record::{Kind, Label, NameId};
use memprof_dump::writer::LiveWriter;
use rb_sys::{StableApiDefinition, VALUE, ruby_value_type};

use super::pass::Pass;
use super::reach::reachable;
use super::visitor::Visitor;
use super::walk::Walk;
use super::{class, details, imemo, ivars, plain, ruby_value, shapes, streams, text, typed_data};
use crate::vm::ruby_object::Flags;
use crate::vm::symbols::symbols;

/// True if an object other than a T_OBJECT, class or module has instance variables or the like.
#[inline]
pub fn has_fields(flags: Flags) -> bool {
    if cfg!(ruby_gte_4_0) {
        shapes::has_fields(flags)
    } else {
        flags.0 & rb_sys::ruby_fl_type::RUBY_FL_EXIVAR as usize != 0
    }
}

/// True if all outgoing references can be read from the object itself, so that the VM need not be asked.
#[inline(always)]
pub fn is_plain(flags: Flags) -> bool {
    match Kind(flags.value_type() as u8) {
        Kind::OBJECT => true,
        Kind::STRING => !text::is_shared(flags) && !has_fields(flags),
        Kind::ARRAY => !details::is_shared_array(flags) && !has_fields(flags),
        Kind::HASH | Kind::FLOAT | Kind::BIGNUM => !has_fields(flags),
        _ => false,
    }
}

/// Asks the VM for an object's outgoing references, if necessary.
///
/// # Safety
/// `object` is a slot that holds an object; GC does not run.
#[inline]
pub unsafe fn references(walk: &mut Walk, object: VALUE, flags: Flags) {
    walk.references.clear();
    if !is_plain(flags) {
        // SAFETY: the caller vouches.
        unsafe { reachable(object, &mut walk.references, walk.scope.labels) };
    }
}

/// Writes the edges of an object, without its class.
///
/// # Safety
/// As [`references`], which was called for the object.
pub unsafe fn edges<W: LiveWriter>(
    pass: &mut Pass<'_, W>,
    object: VALUE,
    flags: Flags,
    class: VALUE,
) -> io::Result<()> {
    if is_plain(flags) && flags.is(ruby_value_type::RUBY_T_HASH) {
        // SAFETY: a T_HASH, as the caller vouches.
        return unsafe { plain::entries(pass, object) };
    }
    if is_plain(flags) && !flags.is(ruby_value_type::RUBY_T_OBJECT) {
        // A number; `plain` describes the others of its kind.
        return Ok(());
    }
    if flags.is(ruby_value_type::RUBY_T_OBJECT) {
        return ivars(pass, object);
    }
    if !W::LABELS {
        let references = std::mem::take(&mut pass.walk.references);
        let mut others = references.iter().filter(|reference| **reference != class);
        let outcome = others.try_for_each(|reference| pass.edge(Label::None, *reference));
        pass.walk.references = references;
        return outcome;
    }
    let mut labels = std::mem::take(&mut pass.walk.labels);
    labels.clear();
    // SAFETY: the caller vouches.
    unsafe { label(&mut pass.walk, object, flags, &mut labels) };
    let outcome = merge(pass, &labels, class);
    pass.walk.labels = labels;
    outcome
}

/// Instance variables of a plain object that are in a hash table.
fn ivars<W: LiveWriter>(pass: &mut Pass<'_, W>, object: VALUE) -> io::Result<()> {
    let mut outcome = Ok(());
    ivars::each(object, |id, value| {
        if outcome.is_ok() {
            let name = pass.walk.names.id(id);
            outcome = pass.edge(Label::Ivar(name), value);
        }
    });
    outcome
}

/// Labels of outgoing references by the object's type, including values that are not references.
unsafe fn label(walk: &mut Walk, object: VALUE, flags: Flags, labels: &mut Vec<(Label, VALUE)>) {
    // SAFETY: an object of the walk; each arm reads the struct of its type.
    let roles: Roles = unsafe {
        match Kind(flags.value_type() as u8) {
            Kind::CLASS | Kind::MODULE | Kind::ICLASS => {
                return class::label(walk, object, flags, labels);
            }
            Kind::DATA => {
                typed_data::label(walk, object, labels);
                &[]
            }
            Kind::IMEMO => return imemo::label(walk, object, flags, labels),
            Kind::STRUCT => {
                members(walk, object, labels);
                &[]
            }
            Kind::HASH => {
                each_entry(object, |key, value| {
                    labels.push((Label::Key, key));
                    labels.push((Label::Entry, value));
                });
                let role = walk.names.word("default");
                labels.push((Label::Role(role), details::word(object, details::HASH_DEFAULT)));
                &[]
            }
            Kind::ARRAY if !details::is_shared_array(flags) => {
                elements(object, labels);
                &[]
            }
            Kind::STRING => &[(ruby_value_type::RUBY_T_STRING, "shared")],
            Kind::ARRAY => &[(ruby_value_type::RUBY_T_ARRAY, "shared")],
            Kind::SYMBOL => &[(ruby_value_type::RUBY_T_STRING, "name")],
            Kind::REGEXP => &[(ruby_value_type::RUBY_T_STRING, "source")],
            Kind::MATCH => &[
                (ruby_value_type::RUBY_T_STRING, "string"),
                (ruby_value_type::RUBY_T_REGEXP, "regexp"),
            ],
            Kind::RATIONAL => {
                words(walk, object, &["numerator", "denominator"], labels);
                &[]
            }
            Kind::COMPLEX => {
                words(walk, object, &["real", "imaginary"], labels);
                &[]
            }
            Kind::FILE => {
                let io = details::word(object, 2);
                if io != 0 {
                    let role = walk.names.word("path");
                    labels.push((Label::Role(role), details::word(io, streams::IO_PATH)));
                }
                &[]
            }
            _ => &[],
        }
    };
    if has_fields(flags) {
        if cfg!(ruby_gte_4_0) {
            by_type(walk, &[(ruby_value_type::RUBY_T_IMEMO, "fields")], labels);
        } else {
            collect_ivars(walk, object, labels);
        }
    }
    // After the instance variables, whose values may have these types, too.
    by_type(walk, roles, labels);
}

/// Types of references, and the role of a reference of that type.
type Roles = &'static [(ruby_value_type, &'static str)];

fn words(walk: &mut Walk, object: VALUE, names: &[&'static str], labels: &mut Vec<(Label, VALUE)>) {
    for (index, name) in names.iter().enumerate() {
        let role = walk.names.word(name);
        // SAFETY: struct RRational and RComplex are two VALUEs behind the header.
        labels.push((Label::Role(role), unsafe { details::word(object, 2 + index) }));
    }
}

/// Labels references by their type.
fn by_type(walk: &mut Walk, roles: Roles, labels: &mut Vec<(Label, VALUE)>) {
    if roles.is_empty() {
        return;
    }
    for index in 0..walk.references.len() {
        let reference = walk.references[index];
        // SAFETY: what an object of the walk refers to is an object.
        let flags = unsafe { Flags::of(reference) };
        if let Some((_, name)) = roles.iter().find(|(of, _)| flags.is(*of)) {
            labels.push((Label::Role(walk.names.word(name)), reference));
        }
    }
}

/// Instance variables of any object: name and value.
pub fn collect_ivars(walk: &mut Walk, object: VALUE, labels: &mut Vec<(Label, VALUE)>) {
    ivars::each(object, |id, value| labels.push((ivar_label(walk.names.id(id), walk), value)));
}

/// Classes have class variables and internal ones where other objects have instance variables.
fn ivar_label(name: NameId, walk: &Walk) -> Label {
    let text = walk.names.tables.name(name);
    if text.starts_with("@@") {
        Label::ClassVariable(name)
    } else if text.starts_with('@') {
        Label::Ivar(name)
    } else {
        Label::Role(name)
    }
}

unsafe fn elements(object: VALUE, labels: &mut Vec<(Label, VALUE)>) {
    // SAFETY: a T_ARRAY, as the caller vouches.
    let elements = unsafe { slice(object) };
    labels.extend(
        elements.iter().enumerate().map(|(index, value)| (Label::Index(index as u32), *value)),
    );
}

/// # Safety
/// `array` is a T_ARRAY that nothing changes while the result is used.
#[inline(always)]
pub unsafe fn slice<'a>(array: VALUE) -> &'a [VALUE] {
    let api = rb_sys::stable_api::get_default();
    // SAFETY: the caller vouches.
    unsafe {
        let length = usize::try_from(api.rarray_len(array)).unwrap_or(0);
        let start = api.rarray_const_ptr(array);
        if start.is_null() || length == 0 { &[] } else { std::slice::from_raw_parts(start, length) }
    }
}

/// # Safety
/// `hash` is a T_HASH.
#[inline(always)]
pub unsafe fn each_entry<F: FnMut(VALUE, VALUE)>(hash: VALUE, visit: F) {
    unsafe extern "C" fn collect<F: FnMut(VALUE, VALUE)>(
        key: VALUE,
        value: VALUE,
        visitor: usize,
    ) -> c_int {
        // SAFETY: the visitor outlives the call that this is a callback of, and nothing else uses it meanwhile.
        let visitor = unsafe { &mut *(visitor as *mut Visitor<F>) };
        visitor.call(|visit| visit(key, value))
    }
    let mut visitor = Visitor::new(visit);
    if let Some(hash_foreach) = symbols().hash_foreach {
        // SAFETY: the caller vouches; the callback is given the visitor.
        unsafe { hash_foreach(hash, collect::<F>, (&raw mut visitor) as usize) };
    }
    visitor.end();
}

/// Values of a struct by the names of its members.
///
/// # Safety
/// `object` is a T_STRUCT.
unsafe fn members(walk: &mut Walk, object: VALUE, labels: &mut Vec<(Label, VALUE)>) {
    // SAFETY: the caller vouches; within its size an element is read without an error.
    unsafe {
        let class = crate::vm::ruby_object::class_word(object);
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

/// Writes labeled values, among references only those that the VM reports, and then the unlabeled references.
fn merge<W: LiveWriter>(
    pass: &mut Pass<'_, W>,
    labels: &[(Label, VALUE)],
    class: VALUE,
) -> io::Result<()> {
    let mut unlabeled = std::mem::take(&mut pass.walk.unlabeled);
    unlabeled.begin(&pass.walk.references, class);
    let mut key = None;
    for (label, value) in labels {
        if *label == Label::Key {
            key = Some(*value);
            continue;
        }
        let present =
            !ruby_value::is_address(*value) || unlabeled.take(&pass.walk.references, *value);
        if *label == Label::Entry {
            if let Some(key) = key.take() {
                unlabeled.take(&pass.walk.references, key);
                pass.entry(key, *value)?;
            }
        } else if present && (ruby_value::is_address(*value) || is_content(*label)) {
            pass.queue(*label, *value)?;
        }
    }
    for index in 0..pass.walk.references.len() {
        if unlabeled.has(&pass.walk.references, index) {
            pass.queue(Label::None, pass.walk.references[index])?;
        }
    }
    pass.walk.unlabeled = unlabeled;
    Ok(())
}

/// True for contents that are written even if they are not references: a program's data, unlike internal words of the VM.
fn is_content(label: Label) -> bool {
    !matches!(label, Label::Role(_) | Label::None)
}

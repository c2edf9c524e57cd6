//! The record of an object, up to its edges.

use super::super::record::{Content, Detail, Field, Object, Tables, Text};
use super::super::writer::TemplateId;
use super::encode::Interned;
use super::form::{self, Form, Forms};
use super::out::{Out, Window};
use super::{Binary, record};

impl Binary {
    /// Writes the record of an object. Objects with the same form may be written with just its number.
    #[inline(always)]
    pub(super) fn record(
        &mut self,
        tables: &Tables,
        object: &Object<'_>,
        template: Option<TemplateId>,
    ) {
        let (facts, bits) = Form::facts(object);
        let known = template.and_then(|template| self.forms.of_template(template, facts, bits));
        let mut out = Out::new(&mut self.block, self.at);
        if known.is_none() {
            let (interned, forms) = (&mut self.interned, &mut self.forms);
            // A copy, so that the object itself can stay in registers.
            let object = *object;
            out.apart(|out| form(out, interned, forms, tables, &object, template));
        }
        let last = &mut self.last;
        let mut head = out.window();
        if let Some(number) = known {
            head.varint(u64::from(number) + record::OBJECT);
        }
        head.address(object.address, last.behind);
        if facts & form::MEMSIZE != 0 {
            head.zigzag(object.memsize.wrapping_sub(object.slot_size.into()) as i64);
        }
        numbers(&mut head, &object.detail);
        let bytes = head.end();
        out.keep(bytes);
        last.behind = object.address.wrapping_add(object.slot_size.into());
        last.object = object.address;
        last.reference = object.address;
        last.index = 0;
        detail(&mut out, &mut self.interned, tables, object, bits);
        if let Some(allocation) = object.allocation {
            self.interned.site(&mut out, tables, allocation.site);
            out.zigzag(allocation.generation.wrapping_sub(last.generation) as i64);
            out.zigzag(allocation.time.wrapping_sub(last.time) as i64);
            last.generation = allocation.generation;
            last.time = allocation.time;
            if let Some(caller) = allocation.caller {
                self.interned.site(&mut out, tables, caller);
            }
        }
        if let Some(id) = object.object_id {
            out.zigzag(id.wrapping_sub(last.object_id) as i64);
            last.object_id = id;
        }
        if facts & form::FIELDS != 0 {
            let (interned, address, fields) = (&mut self.interned, object.address, object.fields);
            out.apart(|out| write_fields(out, interned, tables, address, fields));
        }
        self.at = out.end();
    }
}

fn write_fields(
    out: &mut Out<'_>,
    interned: &mut Interned,
    tables: &Tables,
    address: u64,
    fields: &[Field],
) {
    out.varint(fields.len() as u64);
    for field in fields {
        interned.name(out, tables, field.name);
        interned.value(out, tables, field.value, address);
    }
}

/// Writes the number of a form that its template does not give, and the form if it is new in the block.
fn form(
    out: &mut Out<'_>,
    interned: &mut Interned,
    forms: &mut Forms,
    tables: &Tables,
    object: &Object<'_>,
    template: Option<TemplateId>,
) {
    let form = Form::of(object);
    let (number, new) = forms.number(form.words());
    if let Some(template) = template {
        forms.learn(template, form.facts, form.bits, number);
    }
    out.varint(u64::from(number) + record::OBJECT);
    if !new {
        return;
    }
    for byte in [form.kind.0, form.facts, form.tag as u8, form.bits] {
        out.push(byte);
    }
    out.varint(form.class);
    out.varint(form.slot_size.into());
    out.varint(form.flags.0.into());
    if form.facts & form::SHAPE != 0 {
        out.varint(form.shape_id.into());
    }
    if form.facts & form::AGE != 0 {
        out.push(form.age);
    }
    interned.optional_name(out, tables, form.class_name);
    interned.optional_name(out, tables, form.name);
}

/// The numbers at the start of a detail.
#[inline(always)]
fn numbers(out: &mut Window<'_>, detail: &Detail<'_>) {
    match detail {
        Detail::String(text)
        | Detail::Symbol(text)
        | Detail::Regexp(text)
        | Detail::Bignum(text) => {
            if let Some(length) = text.length {
                out.varint(length);
            }
            if let Some(capacity) = text.capacity {
                out.varint(capacity);
            }
        }
        Detail::Float(number) => out.fixed(number.to_bits()),
        Detail::Length(number)
        | Detail::Hash { size: number, .. }
        | Detail::Object { ivars: number } => {
            out.varint(*number);
        }
        _ => {}
    }
}

/// The rest of a detail, after its numbers.
#[inline(always)]
fn detail(
    out: &mut Out<'_>,
    interned: &mut Interned,
    tables: &Tables,
    object: &Object<'_>,
    bits: u8,
) {
    match object.detail {
        Detail::None
        | Detail::Data { .. }
        | Detail::Float(_)
        | Detail::Length(_)
        | Detail::Object { .. } => {}
        Detail::String(ref string)
        | Detail::Symbol(ref string)
        | Detail::Regexp(ref string)
        | Detail::Bignum(ref string) => text(out, string, bits),
        Detail::Hash { default, .. } => {
            interned.value(out, tables, default, object.address);
        }
        Detail::Class { name, real_name, superclass, super_name, variations } => {
            out.varint(superclass);
            for name in [name, real_name, super_name].into_iter().flatten() {
                interned.name(out, tables, name);
            }
            if let Some(count) = variations {
                out.varint(count.into());
            }
        }
        Detail::File { fd } => {
            if let Some(fd) = fd {
                out.zigzag(fd.into());
            }
        }
        Detail::Imemo { mid, called_id, receiver_class, .. } => {
            for name in [mid, called_id].into_iter().flatten() {
                interned.name(out, tables, name);
            }
            if receiver_class != 0 {
                out.varint(receiver_class);
            }
        }
    }
}

#[inline(always)]
fn text(out: &mut Out<'_>, text: &Text<'_>, bits: u8) {
    match text.content {
        Content::Full(content) | Content::Truncated(content) => {
            if bits & form::EXACT != 0 {
                out.raw(content);
            } else {
                out.bytes(content);
            }
        }
        Content::Mark(mark) => out.fixed(mark),
        Content::Absent => {}
    }
}

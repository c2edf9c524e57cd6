//! The record of an object, up to its edges.

use super::super::record::{Content, Detail, Object, Tables, Text};
use super::encode::{address, bytes, varint, zigzag};
use super::form::{self, Form};
use super::{Binary, record};

impl Binary {
    #[inline]
    pub(super) fn record(&mut self, tables: &Tables, object: &Object<'_>) {
        let (form, facts, bits) = Form::words(object);
        let (number, new) = self.forms.number(form);
        varint(&mut self.block, u64::from(number) + record::OBJECT);
        if new {
            self.form(tables, object);
        }
        let out = &mut self.block;
        let last = &mut self.last;
        address(out, object.address, last.behind);
        last.behind = object.address.wrapping_add(object.slot_size.into());
        last.object = object.address;
        last.reference = object.address;
        last.index = 0;
        if facts & form::MEMSIZE != 0 {
            zigzag(
                out,
                object.memsize.wrapping_sub(object.slot_size.into()) as i64,
            );
        }
        self.detail(tables, object, bits);
        if let Some(allocation) = object.allocation {
            let out = &mut self.block;
            self.interned.site(out, tables, allocation.site);
            let last = &mut self.last;
            zigzag(
                out,
                allocation.generation.wrapping_sub(last.generation) as i64,
            );
            zigzag(out, allocation.time.wrapping_sub(last.time) as i64);
            last.generation = allocation.generation;
            last.time = allocation.time;
        }
        if let Some(id) = object.object_id {
            zigzag(&mut self.block, id.wrapping_sub(self.last.object_id) as i64);
            self.last.object_id = id;
        }
        if facts & form::FIELDS != 0 {
            self.fields(tables, object);
        }
    }

    fn fields(&mut self, tables: &Tables, object: &Object<'_>) {
        varint(&mut self.block, object.fields.len() as u64);
        for field in object.fields {
            self.interned.name(&mut self.block, tables, field.name);
            self.interned
                .value(&mut self.block, tables, field.value, object.address);
        }
    }

    #[inline(never)]
    fn form(&mut self, tables: &Tables, object: &Object<'_>) {
        let form = Form::of(object);
        let out = &mut self.block;
        out.extend_from_slice(&[form.kind.0, form.facts, form.tag as u8, form.bits]);
        varint(out, form.class);
        varint(out, form.slot_size.into());
        varint(out, form.flags.0.into());
        if form.facts & form::SHAPE != 0 {
            varint(out, form.shape_id.into());
        }
        if form.facts & form::AGE != 0 {
            out.push(form.age);
        }
        self.interned.optional_name(out, tables, form.class_name);
        self.interned.optional_name(out, tables, form.name);
    }

    #[inline]
    fn detail(&mut self, tables: &Tables, object: &Object<'_>, bits: u8) {
        let out = &mut self.block;
        match object.detail {
            Detail::None | Detail::Data { .. } => {}
            Detail::String(ref string)
            | Detail::Symbol(ref string)
            | Detail::Regexp(ref string)
            | Detail::Bignum(ref string) => text(out, string, bits),
            Detail::Float(number) => out.extend_from_slice(&number.to_bits().to_le_bytes()),
            Detail::Length(length) => varint(out, length),
            Detail::Hash { size, default, .. } => {
                varint(out, size);
                self.interned.value(out, tables, default, object.address);
            }
            Detail::Object { ivars } => varint(out, ivars),
            Detail::Class {
                name,
                real_name,
                superclass,
                super_name,
                variations,
            } => {
                varint(out, superclass);
                for name in [name, real_name, super_name].into_iter().flatten() {
                    self.interned.name(out, tables, name);
                }
                if let Some(count) = variations {
                    varint(out, count.into());
                }
            }
            Detail::File { fd } => {
                if let Some(fd) = fd {
                    zigzag(out, fd.into());
                }
            }
            Detail::Imemo {
                mid,
                called_id,
                receiver_class,
                ..
            } => {
                for name in [mid, called_id].into_iter().flatten() {
                    self.interned.name(out, tables, name);
                }
                if receiver_class != 0 {
                    varint(out, receiver_class);
                }
            }
        }
    }
}

#[inline]
fn text(out: &mut Vec<u8>, text: &Text<'_>, bits: u8) {
    if let Some(length) = text.length {
        varint(out, length);
    }
    if let Some(capacity) = text.capacity {
        varint(out, capacity);
    }
    match text.content {
        Content::Full(content) | Content::Truncated(content) => {
            if bits & form::EXACT != 0 {
                out.extend_from_slice(content);
            } else {
                bytes(out, content);
            }
        }
        Content::Mark(mark) => out.extend_from_slice(&mark.to_le_bytes()),
        Content::Absent => {}
    }
}

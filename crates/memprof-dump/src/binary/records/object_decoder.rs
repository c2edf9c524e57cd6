//! Reads the record of an object, up to its edges.

use super::super::super::read::{Fallible, Stop, Target};
use super::super::super::record::{
    Allocation, Content, Detail, Field, Flags, Object, Tables, Text,
};
use super::super::form::{self, Form, Tag};
use super::{Kind, Records};

impl<'a> Records<'a, '_> {
    pub(super) fn object(&mut self, number: u64, target: &mut Target<'_>) -> Fallible<()> {
        if number == self.forms.len() as u64 {
            let form = self.form(&mut target.tables)?;
            self.forms.push(form);
        }
        let form = *self.forms.get(number as usize).ok_or(Stop::Broken)?;
        let tables = &mut target.tables;
        let address = self.cursor.address(self.last.behind)?;
        self.last.behind = address.wrapping_add(form.slot_size.into());
        self.last.reference = address;
        self.last.index = 0;
        let memsize = if form.fact(form::MEMSIZE) {
            u64::from(form.slot_size).wrapping_add(self.cursor.zigzag()? as u64)
        } else {
            form.slot_size.into()
        };
        let pieces = std::mem::take(&mut self.pieces.bytes);
        let detail = whole(self.detail(tables, &form, address)?, &pieces);
        let allocation = match form.fact(form::ALLOCATION) {
            true => Some(self.allocation(tables, &form)?),
            false => None,
        };
        let object_id = match form.fact(form::OBJECT_ID) {
            true => {
                let step = self.cursor.zigzag()? as u64;
                self.last.object_id = self.last.object_id.wrapping_add(step);
                Some(self.last.object_id)
            }
            false => None,
        };
        let fields = match form.fact(form::FIELDS) {
            true => self.fields(tables, address)?,
            false => Vec::new(),
        };
        target.object(&Object {
            address,
            kind: form.kind,
            class: form.class,
            class_name: form.class_name,
            slot_size: form.slot_size,
            memsize,
            shape_id: form.fact(form::SHAPE).then_some(form.shape_id),
            flags: form.flags,
            age: form.fact(form::AGE).then_some(form.age),
            object_id,
            detail,
            fields: &fields,
            allocation,
        })
    }

    fn form(&mut self, tables: &mut Tables) -> Fallible<Form> {
        let kind = Kind(self.cursor.byte()?);
        let facts = self.cursor.byte()?;
        let tag = self.cursor.byte()?;
        let tag = *Tag::ALL.get(usize::from(tag)).ok_or(Stop::Broken)?;
        let bits = self.cursor.byte()?;
        let has = |bit: u8| facts & bit != 0;
        Ok(Form {
            kind,
            facts,
            tag,
            bits,
            class: self.cursor.varint()?,
            slot_size: self.cursor.number()?,
            flags: Flags(self.cursor.number()?),
            shape_id: match has(form::SHAPE) {
                true => self.cursor.number()?,
                false => 0,
            },
            age: match has(form::AGE) {
                true => self.cursor.byte()?,
                false => 0,
            },
            class_name: self.optional_name(tables)?,
            name: self.optional_name(tables)?,
        })
    }

    fn allocation(&mut self, tables: &mut Tables, form: &Form) -> Fallible<Allocation> {
        let site = self.site(tables)?;
        let last = &mut self.last;
        last.generation = last.generation.wrapping_add(self.cursor.zigzag()? as u64);
        last.time = last.time.wrapping_add(self.cursor.zigzag()? as u64);
        let (generation, time) = (last.generation, last.time);
        Ok(Allocation {
            site,
            caller: match form.fact(form::CALLER) {
                true => Some(self.site(tables)?),
                false => None,
            },
            generation,
            time,
        })
    }

    fn fields(&mut self, tables: &mut Tables, object: u64) -> Fallible<Vec<Field>> {
        let mut fields = Vec::new();
        for _ in 0..self.cursor.varint()? {
            let name = self.name(tables)?;
            let kind = self.cursor.byte()?;
            let value = self.payload(tables, kind, object)?;
            fields.push(Field { name, value });
        }
        Ok(fields)
    }

    fn detail(&mut self, tables: &mut Tables, form: &Form, object: u64) -> Fallible<Detail<'a>> {
        Ok(match form.tag {
            Tag::None => Detail::None,
            Tag::String => Detail::String(self.text(form)?),
            Tag::Symbol => Detail::Symbol(self.text(form)?),
            Tag::Regexp => Detail::Regexp(self.text(form)?),
            Tag::Bignum => Detail::Bignum(self.text(form)?),
            Tag::Float => Detail::Float(f64::from_bits(self.cursor.fixed()?)),
            Tag::Length => Detail::Length(self.cursor.varint()?),
            Tag::Hash => {
                let size = self.cursor.varint()?;
                let kind = self.cursor.byte()?;
                Detail::Hash {
                    size,
                    default: self.payload(tables, kind, object)?,
                    default_proc: form.bit(form::FIRST),
                }
            }
            Tag::Object => Detail::Object {
                ivars: self.cursor.varint()?,
            },
            Tag::Class => {
                let superclass = self.cursor.varint()?;
                let mut name = |bit| form.bit(bit).then(|| self.name(tables)).transpose();
                Detail::Class {
                    superclass,
                    name: name(form::FIRST)?,
                    real_name: name(form::SECOND)?,
                    super_name: name(form::THIRD)?,
                    variations: match form.bit(form::FOURTH) {
                        true => Some(self.cursor.number()?),
                        false => None,
                    },
                }
            }
            Tag::Data => Detail::Data {
                type_name: form.name,
            },
            Tag::File => Detail::File {
                fd: match form.bit(form::FIRST) {
                    true => Some(i32::try_from(self.cursor.zigzag()?).map_err(|_| Stop::Broken)?),
                    false => None,
                },
            },
            Tag::Imemo => {
                let mut name = |bit| form.bit(bit).then(|| self.name(tables)).transpose();
                Detail::Imemo {
                    name: form.name.ok_or(Stop::Broken)?,
                    mid: name(form::FIRST)?,
                    called_id: name(form::SECOND)?,
                    receiver_class: match form.bit(form::THIRD) {
                        true => self.cursor.varint()?,
                        false => 0,
                    },
                }
            }
        })
    }

    fn text(&mut self, form: &Form) -> Fallible<Text<'a>> {
        let mut number = |bit| form.bit(bit).then(|| self.cursor.varint()).transpose();
        let length = number(form::LENGTH)?;
        let capacity = number(form::CAPACITY)?;
        let mut bytes = || match length {
            Some(length) if form.bit(form::EXACT) => self.cursor.take(length),
            _ => self.cursor.bytes(),
        };
        let content = match form.bits >> 2 & 3 {
            0 => Content::Full(bytes()?),
            1 => Content::Truncated(bytes()?),
            2 => Content::Mark(self.cursor.fixed()?),
            _ => Content::Absent,
        };
        Ok(Text {
            length,
            capacity,
            encoding: form.name.ok_or(Stop::Broken)?,
            coderange: form.coderange(),
            content,
        })
    }
}

/// A text whose content came earlier in pieces. It has no content if some of them were lost.
#[inline]
fn whole<'a>(mut detail: Detail<'a>, pieces: &'a [u8]) -> Detail<'a> {
    if let Detail::String(text) = &mut detail {
        let all = text.length == Some(pieces.len() as u64) && !pieces.is_empty();
        if all && text.content == Content::Absent {
            text.content = Content::Full(pieces);
        }
    }
    detail
}

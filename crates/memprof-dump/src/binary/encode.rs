//! Encodes names, sites and values as bytes of a block. [`super::decode`] is the inverse.

use super::super::record::{NameId, Site, SiteId, Tables, Value};
use super::out::Out;

/// Maps numbers in [`Tables`] to numbers within a block. A block is read without the others, so it defines each text once.
#[derive(Default)]
struct Locals {
    /// By number in the tables: number of the block, and of the text in it.
    known: Vec<(u32, u32)>,
    block: u32,
    next: u32,
}

impl Locals {
    fn next_block(&mut self) {
        self.block += 1;
        self.next = 0;
    }

    /// The number in this block, and whether it is new there.
    #[inline(always)]
    fn number(&mut self, id: u32) -> (u32, bool) {
        let place = id as usize;
        if place >= self.known.len() {
            self.grow(place);
        }
        let (block, local) = self.known[place];
        if block == self.block {
            return (local, false);
        }
        let local = self.next;
        self.next += 1;
        self.known[place] = (self.block, local);
        (local, true)
    }

    #[cold]
    fn grow(&mut self, place: usize) {
        self.known.resize(place + place / 2 + 64, (u32::MAX, 0));
    }
}

/// Texts and sites already in the block.
#[derive(Default)]
pub(super) struct Interned {
    names: Locals,
    sites: Locals,
}

impl Interned {
    /// Forgets the contents of the last block.
    pub fn next_block(&mut self) {
        self.names.next_block();
        self.sites.next_block();
    }

    /// The number of a text in the block, and whether it is new there: then the text follows its number.
    #[inline(always)]
    pub fn number(&mut self, id: NameId) -> (u32, bool) {
        self.names.number(id.0)
    }

    /// Appends the number of a text, followed by the text if it is new.
    #[inline(always)]
    pub fn name(&mut self, out: &mut Out<'_>, tables: &Tables, id: NameId) {
        let (local, new) = self.names.number(id.0);
        out.varint(local.into());
        if new {
            out.apart(|out| out.bytes(tables.name(id).as_bytes()));
        }
    }

    /// Appends 0 for no text, else the number as in [`Interned::name`] plus one.
    pub fn optional_name(&mut self, out: &mut Out<'_>, tables: &Tables, id: Option<NameId>) {
        let Some(id) = id else {
            return out.push(0);
        };
        let (local, new) = self.names.number(id.0);
        out.varint(u64::from(local) + 1);
        if new {
            out.bytes(tables.name(id).as_bytes());
        }
    }

    /// Appends the number of a site, followed by file, line and method if it is new.
    #[inline(always)]
    pub fn site(&mut self, out: &mut Out<'_>, tables: &Tables, id: SiteId) {
        let (local, new) = self.sites.number(id.0);
        out.varint(local.into());
        if new {
            out.apart(|out| self.place(out, tables, id));
        }
    }

    fn place(&mut self, out: &mut Out<'_>, tables: &Tables, id: SiteId) {
        match tables.site(id) {
            Some(Site { file, line, method }) => {
                self.optional_name(out, tables, Some(file));
                out.varint(line.into());
                self.optional_name(out, tables, method);
            }
            None => out.push(0),
        }
    }

    /// Appends a value without its kind. Addresses are written relative to `base`, and replace it.
    #[inline(always)]
    pub fn payload(&mut self, out: &mut Out<'_>, tables: &Tables, value: Value, base: &mut u64) {
        match value {
            Value::Nil | Value::True | Value::False | Value::Undef => {}
            Value::Int(number) => out.zigzag(number),
            Value::Float(number) => out.fixed(number.to_bits()),
            Value::Symbol(name) | Value::Name(name) | Value::Json(name) => {
                self.name(out, tables, name);
            }
            Value::Address(target) => {
                out.address(target, *base);
                *base = target;
            }
        }
    }

    /// Appends a value and its kind.
    #[inline(always)]
    pub fn value(&mut self, out: &mut Out<'_>, tables: &Tables, value: Value, base: u64) {
        out.push(kind(value));
        self.payload(out, tables, value, &mut base.clone());
    }
}

/// Number of a value's kind, 0 to 9.
#[inline]
pub(super) fn kind(value: Value) -> u8 {
    match value {
        Value::Nil => 0,
        Value::True => 1,
        Value::False => 2,
        Value::Undef => 3,
        Value::Int(_) => 4,
        Value::Float(_) => 5,
        Value::Symbol(_) => 6,
        Value::Address(_) => 7,
        Value::Name(_) => 8,
        Value::Json(_) => 9,
    }
}

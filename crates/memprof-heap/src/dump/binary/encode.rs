//! Numbers, texts, addresses and values, as bytes of a block. [`super::decode`] is the way back.

use super::super::record::{NameId, Site, SiteId, Tables, Value};

/// Appends a number, seven bits a byte, the lowest first.
#[inline]
pub(super) fn varint(out: &mut Vec<u8>, number: u64) {
    if number < 0x80 {
        out.push(number as u8);
    } else {
        long_varint(out, number);
    }
}

/// Appends up to eight bytes at once: a byte at a time, each would have to look whether there is room.
#[inline]
fn long_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >> 56 != 0 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    let (mut word, mut bits) = (0, 0);
    while number >= 0x80 {
        word |= (number & 0x7f | 0x80) << bits;
        number >>= 7;
        bits += 8;
    }
    word |= number << bits;
    let length = out.len() + bits / 8 + 1;
    out.extend_from_slice(&word.to_le_bytes());
    out.truncate(length);
}

/// Appends a number with a sign; those near zero are short.
#[inline]
pub(super) fn zigzag(out: &mut Vec<u8>, number: i64) {
    varint(out, (number << 1 ^ number >> 63) as u64);
}

/// Appends a text or other bytes.
pub(super) fn bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Bit 0 of an address that is written in full.
pub(super) const ABSOLUTE: u64 = 1;

/// Appends an address as its distance from another, in steps of 8.
#[inline]
pub(super) fn address(out: &mut Vec<u8>, address: u64, base: u64) {
    let distance = address.wrapping_sub(base) as i64;
    if distance & 7 == 0 {
        let steps = distance >> 3;
        varint(out, ((steps << 1 ^ steps >> 63) as u64) << 1);
    } else {
        varint(out, ABSOLUTE);
        out.extend_from_slice(&address.to_le_bytes());
    }
}

/// Numbers within a block for numbers in [`Tables`]. A block is read without the others, so it says each text once.
#[derive(Default)]
struct Locals {
    /// By number in the tables: number of the block, and in it, of the text.
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
    #[inline]
    fn number(&mut self, id: u32) -> (u32, bool) {
        let place = id as usize;
        if place >= self.known.len() {
            self.known.resize(place + place / 2 + 64, (u32::MAX, 0));
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
}

/// Texts and sites that the block has had.
#[derive(Default)]
pub(super) struct Interned {
    names: Locals,
    sites: Locals,
}

impl Interned {
    /// Forgets what the last block had.
    pub fn next_block(&mut self) {
        self.names.next_block();
        self.sites.next_block();
    }

    /// Appends the number of a text; the text behind it if it is new.
    #[inline]
    pub fn name(&mut self, out: &mut Vec<u8>, tables: &Tables, id: NameId) {
        let (local, new) = self.names.number(id.0);
        varint(out, local.into());
        if new {
            bytes(out, tables.name(id).as_bytes());
        }
    }

    /// Appends 0 for no text, else as [`Interned::name`], plus one.
    pub fn optional_name(&mut self, out: &mut Vec<u8>, tables: &Tables, id: Option<NameId>) {
        let Some(id) = id else {
            return out.push(0);
        };
        let (local, new) = self.names.number(id.0);
        varint(out, u64::from(local) + 1);
        if new {
            bytes(out, tables.name(id).as_bytes());
        }
    }

    /// Appends the number of a site; file, line and method behind it if it is new.
    #[inline]
    pub fn site(&mut self, out: &mut Vec<u8>, tables: &Tables, id: SiteId) {
        let (local, new) = self.sites.number(id.0);
        varint(out, local.into());
        if !new {
            return;
        }
        match tables.site(id) {
            Some(Site { file, line, method }) => {
                self.optional_name(out, tables, Some(file));
                varint(out, line.into());
                self.optional_name(out, tables, method);
            }
            None => out.push(0),
        }
    }

    /// Appends what belongs to a value, but for its kind. Addresses are written from `base`, which they become.
    #[inline]
    pub fn payload(&mut self, out: &mut Vec<u8>, tables: &Tables, value: Value, base: &mut u64) {
        match value {
            Value::Nil | Value::True | Value::False | Value::Undef => {}
            Value::Int(number) => zigzag(out, number),
            Value::Float(number) => out.extend_from_slice(&number.to_bits().to_le_bytes()),
            Value::Symbol(name) | Value::Name(name) | Value::Json(name) => {
                self.name(out, tables, name);
            }
            Value::Address(target) => {
                address(out, target, *base);
                *base = target;
            }
        }
    }

    /// Appends the kind of a value and the value.
    pub fn value(&mut self, out: &mut Vec<u8>, tables: &Tables, value: Value, base: u64) {
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

#[cfg(test)]
mod tests {
    use super::super::decode::Cursor;
    use super::*;

    #[test]
    fn numbers_of_every_length_come_back() {
        let powers = (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit]);
        for number in powers.chain([u64::MAX]) {
            let mut out = Vec::new();
            varint(&mut out, number);
            let length = (64 - (number | 1).leading_zeros()).div_ceil(7);
            assert_eq!(out.len(), length as usize, "{number:#x}");
            assert_eq!(Cursor::new(&out).varint().ok(), Some(number));
        }
    }
}

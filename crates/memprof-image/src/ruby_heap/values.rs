//! Ruby values that are not addresses.

use super::RubyHeap;

/// A value that is not an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Immediate {
    Nil,
    True,
    False,
    Undef,
    Int(i64),
    Float(f64),
    /// Its name, if known.
    Symbol(Option<String>),
}

const SYMBOL: u64 = 0x0c;
const SYMBOL_BITS: u32 = 8;

impl RubyHeap<'_> {
    /// The value of a word that is not an address.
    pub fn immediate(&self, word: u64) -> Option<Immediate> {
        Some(match word {
            0 => Immediate::False,
            // In Ruby 3.2 and later, and in 3.1; neither uses the other one as a value.
            4 | 8 => Immediate::Nil,
            0x14 => Immediate::True,
            _ if word & 1 == 1 => Immediate::Int((word as i64) >> 1),
            _ if word & 3 == 2 => Immediate::Float(flonum(word)),
            _ if word & 0xff == SYMBOL => Immediate::Symbol(self.id_name(word >> SYMBOL_BITS)),
            _ if word & 7 == 0 => return None,
            _ => Immediate::Undef,
        })
    }

    /// Whether a word may be a value: not an address, or the address of an object.
    pub fn is_value(&self, word: u64) -> bool {
        match self.immediate(word) {
            Some(Immediate::Undef) => matches!(word, 0x24 | 0x34),
            Some(_) => true,
            None => self.slot(word).is_some(),
        }
    }

    /// The name of an ID.
    pub fn id_name(&self, id: u64) -> Option<String> {
        self.ids.as_ref()?.of_id(self, id)
    }
}

/// The ID of a Symbol that is not an object.
pub(super) fn symbol_id(word: u64) -> Option<u64> {
    (word & 0xff == SYMBOL).then_some(word >> SYMBOL_BITS)
}

fn flonum(word: u64) -> f64 {
    const ZERO: u64 = 0x8000_0000_0000_0002;
    if word == ZERO {
        return 0.0;
    }
    let sign = word >> 63;
    f64::from_bits(((2u64.wrapping_sub(sign)) | (word & !3)).rotate_right(3))
}

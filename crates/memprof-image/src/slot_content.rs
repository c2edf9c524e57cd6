//! Where the references of an object are: in its slot, and in the buffer with its contents. Slots are not cleared as a whole: behind
//! the content are remains of an earlier object. Bytes of texts and numbers are not references, whatever they look like.

use std::ops::Range;

use crate::image::WORD;
use crate::ruby_pages::ObjectType;
use crate::st_table;

/// The size of an object whose content is elsewhere, and of all objects with slots of one size.
const BASIC: u64 = 5 * WORD;
const HEADER: u64 = 2 * WORD;
/// The first type-specific bit of the flags.
const USER: u32 = 12;

const STRING_NOT_EMBEDDED: u64 = 1 << (USER + 1);
/// Its bytes are memory of C code.
const STRING_NOT_FREED: u64 = 1 << (USER + 18);
const BIGNUM_EMBEDDED: u64 = 1 << (USER + 2);
const ARRAY_EMBEDDED: u64 = 1 << (USER + 1);
const ARRAY_LENGTH: u32 = USER + 3;
const ARRAY_LENGTH_MASK: u64 = 0x7f;
const HASH_TABLE: u64 = 1 << (USER + 3);
const HASH_BOUND: u32 = USER + 8;
const HASH_BOUND_MASK: u64 = 0xf;

/// Whether the flags of a slot are those of a Hash with a table; since Ruby 3.3 it is in the slot.
pub fn has_table(flags: u64) -> bool {
    flags & HASH_TABLE != 0 && ObjectType::of_flags(flags).is_some_and(|kind| kind.name() == "HASH")
}

/// Memory outside of a slot with an object's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Its address.
    pub at: u64,
    /// Bytes in use.
    pub length: u64,
    /// Bytes from the address on that may be references.
    pub references: u64,
}

/// The buffer of a String, a large Integer or an Array, if it is not in the slot. Others may share it. `word` reads memory.
pub fn buffer(slot: u64, flags: u64, mut word: impl FnMut(u64) -> Option<u64>) -> Option<Buffer> {
    let kind = ObjectType::of_flags(flags)?.name();
    let (size, is_references, place) = match kind {
        "STRING" if flags & (STRING_NOT_EMBEDDED | STRING_NOT_FREED) == STRING_NOT_EMBEDDED => {
            (1, false, 3)
        }
        "BIGNUM" if flags & BIGNUM_EMBEDDED == 0 => (WORD, false, 3),
        "ARRAY" if flags & ARRAY_EMBEDDED == 0 => (WORD, true, 4),
        _ => return None,
    };
    let length = word(slot + HEADER)?.checked_mul(size)?;
    let at = word(slot + place * WORD)?;
    Some(Buffer { at, length, references: if is_references { length } else { 0 } })
}

/// The address of the struct of an IO.
pub fn io(slot: u64, flags: u64, mut word: impl FnMut(u64) -> Option<u64>) -> Option<u64> {
    (ObjectType::of_flags(flags)?.name() == "FILE").then(|| word(slot + HEADER))?
}

/// What may be the buffers of an IO with bytes read or to be written, in the bytes of its struct (`rb_io_internal_buffer`): an
/// address, then three numbers of four bytes, packed.
pub fn io_buffers(bytes: &[u8]) -> impl Iterator<Item = Buffer> + '_ {
    const SIZE: usize = 20;
    bytes.windows(SIZE).step_by(4).filter_map(|buffer| {
        let (at, numbers) = buffer.split_first_chunk()?;
        let number = |place: usize| {
            let bytes = numbers.get(place * 4..place * 4 + 4)?;
            u32::try_from(i32::from_le_bytes(bytes.try_into().ok()?)).ok()
        };
        let (first, length, capacity) = (number(0)?, number(1)?, number(2)?);
        let is_one = capacity > 0 && first.checked_add(length)? <= capacity;
        let at = u64::from_le_bytes(*at);
        is_one.then_some(Buffer { at, length: capacity.into(), references: 0 })
    })
}

/// The range of a slot in which references of its object may be.
pub fn range(slot: u64, size: u64, flags: u64) -> Range<u64> {
    let kind = ObjectType::of_flags(flags).map_or("", ObjectType::name);
    let used = match kind {
        "FLOAT" => HEADER,
        "STRING" if flags & STRING_NOT_EMBEDDED == 0 => HEADER,
        "BIGNUM" if flags & BIGNUM_EMBEDDED != 0 => HEADER,
        "ARRAY" if flags & ARRAY_EMBEDDED != 0 => {
            HEADER + (flags >> ARRAY_LENGTH & ARRAY_LENGTH_MASK) * WORD
        }
        _ if size <= BASIC => size,
        "STRING" | "BIGNUM" => BASIC,
        "ARRAY" => BASIC,
        // The default, then the table; smaller slots have a pointer to it.
        "HASH" if flags & HASH_TABLE != 0 => HEADER + WORD + st_table::SIZE,
        "HASH" => HEADER + 2 * WORD + (flags >> HASH_BOUND & HASH_BOUND_MASK) * 2 * WORD,
        _ => size,
    };
    let used = used.min(size).next_multiple_of(WORD).min(size);
    slot + WORD..slot + used
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(size: u64, flags: u64) -> u64 {
        let range = range(0x1000, size, flags);
        assert_eq!(range.start, 0x1008);
        (range.end - 0x1000) / WORD
    }

    #[test]
    fn content_ends_where_the_flags_say() {
        assert_eq!(words(160, 5 | STRING_NOT_EMBEDDED), 5);
        assert_eq!(words(160, 7), 5);
        assert_eq!(words(160, 7 | ARRAY_EMBEDDED | 4 << ARRAY_LENGTH), 6);
        assert_eq!(words(40, 7 | ARRAY_EMBEDDED | 1 << ARRAY_LENGTH), 3);
        assert_eq!(words(160, 8 | 2 << HASH_BOUND), 8);
        assert_eq!(words(160, 8 | HASH_TABLE), 3 + st_table::SIZE / WORD);
        assert_eq!(words(160, 1), 20);
    }

    #[test]
    fn bytes_of_texts_and_numbers_are_not_references() {
        for size in [40, 160] {
            assert_eq!(words(size, 5), 2);
            assert_eq!(words(size, 4), 2);
            assert_eq!(words(size, 10 | BIGNUM_EMBEDDED), 2);
        }
    }

    #[test]
    fn a_length_that_makes_no_sense_is_the_whole_slot() {
        assert_eq!(words(80, 7 | ARRAY_EMBEDDED | 0x7f << ARRAY_LENGTH), 10);
    }

    #[test]
    fn buffers_of_texts_and_numbers_hold_no_references() {
        let found = |flags| buffer(0x1000, flags, |at| Some(at - 0x1000));
        let of = |at, length, references| Some(Buffer { at, length, references });
        assert_eq!(found(5 | STRING_NOT_EMBEDDED), of(24, 16, 0));
        assert_eq!(found(10), of(24, 16 * WORD, 0));
        assert_eq!(found(7), of(32, 16 * WORD, 16 * WORD));
        for flags in [
            5,
            5 | STRING_NOT_EMBEDDED | STRING_NOT_FREED,
            10 | BIGNUM_EMBEDDED,
            7 | ARRAY_EMBEDDED,
            1,
        ] {
            assert_eq!(found(flags), None);
        }
        assert_eq!(buffer(0x1000, 7, |_| Some(u64::MAX)), None);
    }

    #[test]
    fn buffers_of_an_io_are_packed() {
        let buffer = |at: u64, numbers: [i32; 3]| {
            let numbers = numbers.into_iter().flat_map(i32::to_le_bytes);
            at.to_le_bytes().into_iter().chain(numbers).collect::<Vec<u8>>()
        };
        let found = |bytes: &[u8]| io_buffers(bytes).map(|buffer| buffer.at).collect::<Vec<_>>();
        let [one, other] = [0x5500_0000_1000, 0x5500_0000_4000];
        let both = [buffer(one, [0, 0, 8192]), buffer(other, [100, 8092, 8192])].concat();
        let found_in_both = found(&both);
        assert!(found_in_both.contains(&one) && found_in_both.contains(&other));
        for wrong in [[0, 0, 0], [-1, 0, 8192], [0, 8193, 8192], [i32::MAX, i32::MAX, 8192]] {
            assert_eq!(found(&buffer(one, wrong)), [0; 0], "{wrong:?}");
        }
        assert_eq!(found(&both[..19]), [0; 0]);
    }
}

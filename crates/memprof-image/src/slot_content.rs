//! The end of a slot's content. Slots of several sizes (Ruby 3.2 and later) are not cleared as a whole: behind the content are
//! remains of an earlier object.

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

/// The range of a slot used by its object. `word` reads memory.
pub fn range(
    slot: u64,
    size: u64,
    flags: u64,
    mut word: impl FnMut(u64) -> Option<u64>,
) -> Range<u64> {
    let kind = ObjectType::of_flags(flags).map_or("", ObjectType::name);
    let used = match kind {
        _ if size <= BASIC => size,
        "STRING" if flags & STRING_NOT_EMBEDDED != 0 => BASIC,
        "STRING" => (word(slot + HEADER))
            .and_then(|length| length.checked_add(HEADER + WORD))
            .unwrap_or(size),
        "ARRAY" if flags & ARRAY_EMBEDDED != 0 => {
            HEADER + (flags >> ARRAY_LENGTH & ARRAY_LENGTH_MASK) * WORD
        }
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

    fn words(size: u64, flags: u64, length: u64) -> u64 {
        let range = range(0x1000, size, flags, |at| (at == 0x1010).then_some(length));
        assert_eq!(range.start, 0x1008);
        (range.end - 0x1000) / WORD
    }

    #[test]
    fn content_ends_where_the_length_says() {
        assert_eq!(words(40, 5, 1), 5);
        assert_eq!(words(160, 5, 0), 3);
        assert_eq!(words(160, 5, 9), 5);
        assert_eq!(words(160, 5 | STRING_NOT_EMBEDDED, 9), 5);
        assert_eq!(words(160, 7, 9), 5);
        assert_eq!(words(160, 7 | ARRAY_EMBEDDED | 4 << ARRAY_LENGTH, 9), 6);
        assert_eq!(words(160, 8 | 2 << HASH_BOUND, 9), 8);
        assert_eq!(words(160, 8 | HASH_TABLE, 9), 3 + st_table::SIZE / WORD);
        assert_eq!(words(160, 1, 9), 20);
    }

    #[test]
    fn a_length_that_makes_no_sense_is_the_whole_slot() {
        assert_eq!(words(80, 5, u64::MAX), 10);
        assert_eq!(words(80, 5, 1 << 40), 10);
        assert_eq!(words(80, 7 | ARRAY_EMBEDDED | 0x7f << ARRAY_LENGTH, 9), 10);
    }
}

//! Short texts as numbers: keys and names are compared and looked up without examining single bytes.

use super::super::record::{NameId, Tables};

/// A text of at most [`WORD`] bytes, without zero bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Word(pub u64, pub u64);

/// Length of the longest word.
pub(super) const WORD: usize = 16;

impl Word {
    /// A text known to be short.
    pub const fn new(text: &str) -> Word {
        let bytes = text.as_bytes();
        assert!(bytes.len() <= WORD);
        let mut halves = [0; 2];
        let mut place = 0;
        while place < bytes.len() {
            halves[place / 8] |= (bytes[place] as u64) << (8 * (place % 8));
            place += 1;
        }
        Word(halves[0], halves[1])
    }

    /// The first `length` of sixteen bytes.
    #[inline(always)]
    pub fn cut(low: u64, high: u64, length: usize) -> Word {
        let kept = |bytes: usize| match bytes {
            0..8 => (1 << (8 * bytes)) - 1,
            _ => u64::MAX,
        };
        Word(low & kept(length), high & kept(length.saturating_sub(8)))
    }

    #[inline(always)]
    fn place(self) -> usize {
        let mixed = (self.0 ^ self.1.rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> (64 - PLACES.ilog2())) as usize
    }
}

/// Position of the first byte equal to `wanted`; 8 if there is none.
#[inline(always)]
pub(super) fn find(text: u64, wanted: u8) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let text = text ^ (ONES * wanted as u64);
    let found = text.wrapping_sub(ONES) & !text & (ONES << 7);
    found.trailing_zeros() as usize / 8
}

/// Position of the first byte that is not plain text: a backslash or below a space. 8 if there is none.
#[inline(always)]
pub(super) fn find_special(text: u64) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let slash = text ^ (ONES * b'\\' as u64);
    let found = slash.wrapping_sub(ONES) & !slash | text.wrapping_sub(ONES * 0x20) & !text;
    (found & ONES << 7).trailing_zeros() as usize / 8
}

/// Number of cached words.
const PLACES: usize = 1024;

/// Cached values by word. A newer word replaces an older one.
pub(super) struct Memory<T> {
    places: Vec<(Word, T)>,
}

impl<T: Copy> Memory<T> {
    pub fn new(nothing: T) -> Memory<T> {
        Memory { places: vec![(Word(0, u64::MAX), nothing); PLACES] }
    }

    #[inline(always)]
    pub fn get(&self, word: Word) -> Option<T> {
        match self.places.get(word.place()) {
            Some((known, what)) if *known == word => Some(*what),
            _ => None,
        }
    }

    pub fn set(&mut self, word: Word, what: T) {
        if let Some(place) = self.places.get_mut(word.place()) {
            *place = (word, what);
        }
    }
}

/// Longer texts already interned, such as paths: comparing with a cached one is cheaper than checking all bytes for UTF-8
/// and hashing them.
pub(super) struct Texts {
    places: Vec<Option<NameId>>,
}

impl Texts {
    pub fn new() -> Texts {
        Texts { places: vec![None; PLACES] }
    }

    /// The number of a text. Invalid UTF-8 becomes U+FFFD.
    pub fn intern(&mut self, tables: &mut Tables, text: &[u8]) -> NameId {
        let end = |bytes: Option<&[u8; 8]>| bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let last = end(text.last_chunk()).wrapping_add(text.len() as u64);
        let place = &mut self.places[Word(end(text.first_chunk()), last).place()];
        if let Some(known) = *place {
            if tables.name(known).as_bytes() == text {
                return known;
            }
        }
        let id = match std::str::from_utf8(text) {
            Ok(text) => tables.intern(text),
            Err(_) => tables.intern(&String::from_utf8_lossy(text)),
        };
        *place = Some(id);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_the_same_however_it_is_made() {
        let text = *b"generation\":123,";
        let low = u64::from_le_bytes(text[..8].try_into().unwrap());
        let high = u64::from_le_bytes(text[8..].try_into().unwrap());
        assert_eq!(find(low, b'"'), 8);
        assert_eq!(find(high, b'"'), 2);
        assert_eq!(Word::cut(low, high, 10), Word::new("generation"));
        assert_eq!(Word::cut(low, high, 8), Word::new("generati"));
        assert_eq!(Word::cut(low, high, 3), Word::new("gen"));
        assert_eq!(Word::cut(low, high, 16), Word::new("generation\":123,"));
        assert_eq!(Word::cut(low, high, 0), Word::new(""));
    }

    #[test]
    fn special_bytes_are_found() {
        for byte in 0..=255 {
            let special = byte < 0x20 || byte == b'\\';
            for place in 0..8 {
                let mut text = *b"abc \"\x7f\xff!";
                text[place] = byte;
                let found = find_special(u64::from_le_bytes(text));
                assert_eq!(found, if special { place } else { 8 }, "{text:?}");
            }
        }
    }

    #[test]
    fn memory_contains_only_what_was_written() {
        let mut memory = Memory::new(0);
        assert_eq!(memory.get(Word::new("a")), None);
        assert_eq!(memory.get(Word::default()), None);
        for number in 0..3000 {
            memory.set(Word::new(&format!("@name{number}")), number);
        }
        let known = (0..3000).filter(|number| {
            let said = memory.get(Word::new(&format!("@name{number}")));
            assert!(said.is_none_or(|said| said == *number));
            said.is_some()
        });
        assert!(known.count() > 500);
    }
}

//! JSON, token by token. No token contains a line break, so a broken line ends at its line break.

use super::hex;
use super::window::Window;
use super::word::{WORD, Word, find, find_special};
use super::{Fallible, Stop};

/// The key of a value.
#[derive(Clone, Copy)]
pub(super) struct Key {
    /// The key, if it is short and has no escapes; else a word that no short key has.
    pub word: Word,
    /// Its position, counted back from after the colon; 0 if it is not plain text.
    from: usize,
    to: usize,
}

/// Bytes of memory that a value in a list takes.
const VALUE: u64 = 16;

/// The word of a key that is not short.
const LONG: Word = Word(u64::MAX, u64::MAX);

/// An atomic part of a value.
pub(super) enum Token<'a> {
    /// A string or key.
    String,
    /// A number, or a word such as `true`.
    Scalar(&'a [u8]),
}

impl Window<'_> {
    /// Skips spaces.
    #[inline(always)]
    pub fn spaces(&mut self) {
        while matches!(self.byte(), b' ' | b'\t' | b'\r') {
            self.skip(1);
        }
    }

    /// Skips a byte, and spaces around it.
    #[inline(always)]
    pub fn expect(&mut self, wanted: u8) -> Fallible<()> {
        if self.accept(wanted) {
            return Ok(());
        }
        Err(Stop::Broken)
    }

    /// Skips a byte, and spaces around it, if it comes next.
    #[inline(always)]
    pub fn accept(&mut self, wanted: u8) -> bool {
        self.spaces();
        if self.byte() != wanted {
            return false;
        }
        self.skip(1);
        self.spaces();
        true
    }

    /// After a value: true if another follows, false if this was the last.
    #[inline(always)]
    pub fn more(&mut self, closing: u8) -> Fallible<bool> {
        self.hold(VALUE);
        if self.byte() == b',' {
            self.skip(1);
            self.spaces();
            return Ok(true);
        }
        if self.accept(b',') {
            return Ok(true);
        }
        self.expect(closing).map(|()| false)
    }

    /// Skips the start of an object or list; false if it is empty.
    #[inline(always)]
    pub fn open(&mut self, opening: u8, closing: u8) -> Fallible<bool> {
        self.expect(opening)?;
        Ok(!self.accept(closing))
    }

    /// A key with its colon. If a key is not plain text, its text goes to `text`.
    #[inline(always)]
    pub fn key(&mut self, text: &mut Vec<u8>) -> Fallible<Key> {
        self.ensure()?;
        let (word, length) = match self.word() {
            Some((word, length)) if self.slice(length, length + 1) == b":" => (word, length - 2),
            _ => return self.other_key(text),
        };
        self.skip(length + 3);
        let mut behind = 2;
        while self.byte() == b' ' {
            self.skip(1);
            behind += 1;
        }
        Ok(Key { word, from: length + behind, to: behind })
    }

    #[cold]
    fn other_key(&mut self, text: &mut Vec<u8>) -> Fallible<Key> {
        text.clear();
        if self.byte() == b'"' {
            self.string(text)?;
        } else {
            // Some builds of Ruby 3.2 write a key without quotes.
            while self.byte().is_ascii_alphanumeric() || self.byte() == b'_' {
                text.push(self.byte());
                self.skip(1);
            }
        }
        self.expect(b':')?;
        let word = match std::str::from_utf8(text) {
            Ok(text) if !text.is_empty() && text.len() <= WORD => Word::new(text),
            _ => LONG,
        };
        Ok(Key { word, from: 0, to: 0 })
    }

    /// The text of a key, valid until more is read.
    pub fn key_text<'a>(&'a self, key: Key, text: &'a [u8]) -> &'a [u8] {
        match key.from {
            0 => text,
            from => self.behind(from, key.to),
        }
    }

    /// Skips the next value; true if it was `true`.
    #[inline(always)]
    pub fn is_true(&mut self) -> Fallible<bool> {
        if self.starts_with(b"true") {
            self.skip(4);
            return Ok(true);
        }
        self.skip_value()?;
        Ok(false)
    }

    /// Skips `null` if it comes next.
    #[inline(always)]
    pub fn is_null(&mut self) -> bool {
        let null = self.starts_with(b"null");
        if null {
            self.skip(4);
        }
        null
    }

    /// Decimal digits.
    #[inline(always)]
    pub fn number(&mut self) -> Fallible<u64> {
        let mut number: u64 = 0;
        let mut digits = 0;
        loop {
            let digit = self.byte().wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            self.skip(1);
            digits += 1;
            if digits < 19 {
                number = number * 10 + u64::from(digit);
            } else {
                let more = number.checked_mul(10);
                let more = more.and_then(|more| more.checked_add(digit.into()));
                number = more.ok_or(Stop::Broken)?;
            }
        }
        match digits {
            0 => Err(Stop::Broken),
            _ => Ok(number),
        }
    }

    /// A number that fits into a smaller type; `None` for `null`.
    #[inline(always)]
    pub fn count<T: TryFrom<u64>>(&mut self) -> Fallible<Option<T>> {
        if self.byte() == b'n' && self.is_null() {
            return Ok(None);
        }
        let number = self.number()?;
        T::try_from(number).map(Some).map_err(|_| Stop::Broken)
    }

    /// `"0x7f00"`.
    #[inline(always)]
    pub fn address(&mut self) -> Fallible<u64> {
        // A typical heap address has twelve digits.
        if let Some(text) = self.bytes::<16>() {
            let (first, second) = text.split_at(8);
            let first = u64::from_le_bytes(first.try_into().unwrap_or_default());
            let second = u64::from_le_bytes(second.try_into().unwrap_or_default());
            let framed = first & 0xff_ffff == Word::new("\"0x").0 && second >> 56 == 0x22;
            if framed {
                let high = hex::digits(first >> 24 | second << 40);
                let low = hex::digits(second >> 24 & 0xffff_ffff | 0x3030_3030 << 32);
                if let (Some(high), Some(low)) = (high, low) {
                    self.skip(16);
                    return Ok(u64::from(high) << 16 | u64::from(low) >> 16);
                }
            }
        }
        self.any_address()
    }

    #[cold]
    fn any_address(&mut self) -> Fallible<u64> {
        let rest = self.rest();
        let rest = &rest[..rest.len().min(super::window::AHEAD)];
        let inside = rest.strip_prefix(b"\"").ok_or(Stop::Broken)?;
        let end = memchr::memchr(b'"', inside).ok_or(Stop::Broken)?;
        let address = hex::address(&inside[..end]).ok_or(Stop::Broken)?;
        self.skip(end + 2);
        Ok(address)
    }

    /// An address; 0 for anything else.
    #[inline(always)]
    pub fn address_or_none(&mut self) -> Fallible<u64> {
        if self.starts_with(b"\"0x") {
            if let Ok(address) = self.address() {
                return Ok(address);
            }
        }
        self.skip_value()?;
        Ok(0)
    }

    /// A string of at most fifteen bytes without escapes, if it comes next, and its length with quotes. Does not move past
    /// it.
    #[inline(always)]
    pub fn word(&self) -> Option<(Word, usize)> {
        let (low, high) = (self.eight(1), self.eight(9));
        let (mut length, mut special) = (find(low, b'"'), find_special(low));
        if length == 8 {
            length += find(high, b'"');
            special += if special == 8 { find_special(high) } else { 0 };
        }
        let plain = self.byte() == b'"' && length < WORD && special >= length;
        plain.then(|| (Word::cut(low, high, length), length + 2))
    }

    /// Skips any value, at any depth.
    pub fn skip_value(&mut self) -> Fallible<()> {
        self.walk_value(|_| {})
    }

    /// Skips any value and calls `each` with every atomic part of it.
    #[inline]
    pub fn walk_value(&mut self, mut each: impl FnMut(Token<'_>)) -> Fallible<()> {
        let mut depth = 0_u64;
        loop {
            self.ensure()?;
            self.spaces();
            match self.byte() {
                b'{' | b'[' => {
                    depth += 1;
                    self.skip(1);
                    continue;
                }
                b'}' | b']' if depth > 0 => {
                    depth -= 1;
                    self.skip(1);
                }
                b',' | b':' if depth > 0 => {
                    self.skip(1);
                    continue;
                }
                b'"' => {
                    self.skip_string()?;
                    each(Token::String);
                }
                _ => {
                    let length = self.scalar()?;
                    each(Token::Scalar(self.behind(length, 0)));
                }
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// Skips a number, `true`, `false`, `null` or similar. Returns its length.
    fn scalar(&mut self) -> Fallible<usize> {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
        let rest = self.rest().iter();
        let length = rest.take_while(|byte| is_part(**byte)).count();
        if length == 0 || length >= super::window::AHEAD {
            return Err(Stop::Broken);
        }
        self.skip(length);
        Ok(length)
    }
}

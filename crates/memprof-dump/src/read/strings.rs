//! JSON strings, and texts written as such without escaping.

use super::super::record::{NameId, Tables};
use super::window::Window;
use super::word::{Memory, Texts};
use super::{Fallible, Stop};

impl Window<'_> {
    /// Appends the contents of a string, which may contain any bytes except line breaks.
    #[inline]
    pub fn string(&mut self, out: &mut Vec<u8>) -> Fallible<()> {
        self.quote()?;
        loop {
            let rest = self.rest();
            let Some(place) = memchr::memchr3(b'"', b'\\', b'\n', rest) else {
                self.append_rest(out)?;
                continue;
            };
            out.extend_from_slice(&rest[..place]);
            let found = rest[place];
            self.skip(place);
            match found {
                b'"' => {
                    self.skip(1);
                    self.hold(out.len() as u64);
                    return Ok(());
                }
                b'\\' => {
                    self.ensure()?;
                    let length = escape(self.rest(), out).ok_or(Stop::Broken)?;
                    self.skip(length);
                }
                _ => return Err(Stop::Broken),
            }
        }
    }

    fn quote(&mut self) -> Fallible<()> {
        if self.byte() != b'"' {
            return Err(Stop::Broken);
        }
        self.skip(1);
        Ok(())
    }

    /// Appends everything read so far, in the middle of a string, and reads more.
    fn append_rest(&mut self, out: &mut Vec<u8>) -> Fallible<()> {
        let rest = self.rest();
        out.extend_from_slice(rest);
        self.skip(rest.len());
        self.check(out.len())?;
        self.continue_string()
    }

    /// Reads more in the middle of a string; broken if the input has ended.
    fn continue_string(&mut self) -> Fallible<()> {
        self.ensure()?;
        if self.is_over() {
            return Err(Stop::Broken);
        }
        Ok(())
    }

    /// Skips a string.
    pub fn skip_string(&mut self) -> Fallible<()> {
        self.quote()?;
        loop {
            let rest = self.rest();
            match memchr::memchr3(b'"', b'\\', b'\n', rest) {
                Some(place) if rest[place] == b'"' => {
                    self.skip(place + 1);
                    return Ok(());
                }
                Some(place) if rest[place] == b'\\' => {
                    self.skip(place);
                    self.ensure()?;
                    if self.slice(1, 2) == b"\n" {
                        return Err(Stop::Broken);
                    }
                    self.skip(2);
                }
                Some(_) => return Err(Stop::Broken),
                None => {
                    self.skip(rest.len());
                    self.continue_string()?;
                }
            }
        }
    }

    /// Appends a text that objspace does not escape, such as a path: a quote ends it only if another key or the end of the
    /// object follows.
    pub fn unescaped_string(&mut self, out: &mut Vec<u8>) -> Fallible<()> {
        self.quote()?;
        let start = out.len();
        let mut unescaped = false;
        loop {
            let rest = self.rest();
            let Some(place) = memchr::memchr2(b'"', b'\n', rest) else {
                self.append_rest(out)?;
                continue;
            };
            out.extend_from_slice(&rest[..place]);
            let quote = rest[place] == b'"';
            self.skip(place);
            self.ensure()?;
            if !quote {
                return Err(Stop::Broken);
            }
            let backslashes = out[start..].iter().rev().take_while(|byte| **byte == b'\\');
            let escaped = backslashes.count() % 2 == 1 && !unescaped;
            if !escaped && self.value_ends(1) {
                self.skip(1);
                break;
            }
            unescaped |= !escaped;
            out.push(b'"');
            self.skip(1);
        }
        if !unescaped && out[start..].contains(&b'\\') {
            let written = out.split_off(start);
            if !unescape(&written, out) {
                out.truncate(start);
                out.extend_from_slice(&written);
            }
        }
        Ok(())
    }

    /// Whether the text this many bytes from here can follow a value: the end of the object, or a key.
    fn value_ends(&self, ahead: usize) -> bool {
        let rest = self.rest().get(ahead..).unwrap_or(&[]);
        let rest = rest.trim_ascii_start();
        match rest.split_first() {
            Some((b'}', rest)) => {
                matches!(rest.first(), None | Some(b'\n' | b'\r' | b'}' | b']' | b','))
            }
            Some((b',', rest)) => {
                let rest = rest.trim_ascii_start();
                let Some(key) = rest.strip_prefix(b"\"") else {
                    return false;
                };
                let is_part = |byte: &u8| byte.is_ascii_lowercase() || *byte == b'_';
                let length = key.iter().position(|byte| !is_part(byte)).unwrap_or(0);
                length > 0 && key[length..].starts_with(b"\":")
            }
            _ => false,
        }
    }
}

/// Appends the character of an escape, and returns the escape's length; `None` if it is not valid.
fn escape(text: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let plain = match text.get(1)? {
        b'u' => return unicode(text, out),
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 8,
        b'f' => 12,
        same @ (b'"' | b'\\' | b'/') => *same,
        _ => return None,
    };
    out.push(plain);
    Some(2)
}

fn unicode(text: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let unit = |from: usize| {
        let digits = text.get(from..from + 4)?.iter();
        digits.copied().try_fold(0, |unit, digit| Some(unit << 4 | char::from(digit).to_digit(16)?))
    };
    let first = unit(2)?;
    let mut length = 6;
    let mut code = first;
    if (0xd800..0xdc00).contains(&first) && text.get(6..8) == Some(b"\\u") {
        if let Some(second @ 0xdc00..0xe000) = unit(8) {
            code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            length = 12;
        }
    }
    let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    Some(length)
}

/// Appends the unescaped text; false if it contains an invalid escape.
pub(super) fn unescape(mut written: &[u8], out: &mut Vec<u8>) -> bool {
    while let Some(place) = memchr::memchr(b'\\', written) {
        out.extend_from_slice(&written[..place]);
        written = &written[place..];
        match escape(written, out) {
            Some(length) => written = &written[length..],
            None => return false,
        }
    }
    out.extend_from_slice(written);
    true
}

/// Interns texts, most of which are already known.
pub(super) struct Names {
    words: Memory<NameId>,
    texts: Texts,
    text: Vec<u8>,
}

impl Names {
    pub fn new() -> Names {
        Names { words: Memory::new(NameId(0)), texts: Texts::new(), text: Vec::new() }
    }

    /// The number of a string.
    #[inline(always)]
    pub fn read(&mut self, window: &mut Window<'_>, tables: &mut Tables) -> Fallible<NameId> {
        self.any(window, tables, |window, text| window.string(text))
    }

    /// The number of a string, or `null`.
    #[inline(always)]
    pub fn optional(
        &mut self,
        window: &mut Window<'_>,
        tables: &mut Tables,
    ) -> Fallible<Option<NameId>> {
        if window.is_null() {
            return Ok(None);
        }
        self.read(window, tables).map(Some)
    }

    /// The number of a string that may have been written without escapes.
    #[inline(always)]
    pub fn unescaped(
        &mut self,
        window: &mut Window<'_>,
        tables: &mut Tables,
    ) -> Fallible<Option<NameId>> {
        let name = self.any(window, tables, |window, text| window.unescaped_string(text));
        name.map(Some)
    }

    #[inline(always)]
    fn any(
        &mut self,
        window: &mut Window<'_>,
        tables: &mut Tables,
        read: impl Fn(&mut Window<'_>, &mut Vec<u8>) -> Fallible<()>,
    ) -> Fallible<NameId> {
        let word = window.word();
        if let Some((word, length)) = word {
            if let Some(known) = self.words.get(word) {
                // In an unescaped text, a quote inside of it is never followed by a comma or brace.
                if matches!(window.slice(length, length + 1), b"," | b"}") {
                    window.skip(length);
                    return Ok(known);
                }
            }
        }
        self.text.clear();
        read(window, &mut self.text)?;
        let name = self.texts.intern(tables, &self.text);
        if let Some((word, length)) = word {
            if self.text.len() == length - 2 && !self.text.contains(&0) {
                self.words.set(word, name);
            }
        }
        Ok(name)
    }

    /// The number of a text that was read.
    pub fn intern(&mut self, tables: &mut Tables, text: &[u8]) -> NameId {
        self.texts.intern(tables, text)
    }
}

//! Splits a statement into its parts.

use super::{Dialect, Part};

/// Operators and openings after which a sign belongs to a number.
const BEFORE_SIGN: &[u8] = b"=<>(,+-*/%|";

pub(super) struct Scanner<'a> {
    sql: &'a [u8],
    at: usize,
    dialect: Dialect,
}

impl<'a> Scanner<'a> {
    pub fn new(sql: &'a [u8], dialect: Dialect) -> Scanner<'a> {
        Scanner { sql, at: 0, dialect }
    }

    /// Whether a double-quoted text may be a string, although it usually is a name.
    pub fn is_sqlite(&self) -> bool {
        matches!(self.dialect, Dialect::Sqlite | Dialect::Other)
    }

    /// The next nonblank byte of the statement.
    pub fn following(&self) -> Option<u8> {
        self.rest().trim_ascii_start().first().copied()
    }

    /// The next part; `written` is the text so far.
    pub fn next(&mut self, written: &[u8]) -> Option<Part<'a>> {
        let rest = self.rest();
        let &first = rest.first()?;
        let second = rest.get(1).copied().unwrap_or_default();
        Some(match (first, second) {
            (b'-', b'-') => self.line(),
            (b'#', _) if self.dialect == Dialect::Mysql => self.line(),
            (b'/', b'*') => self.comment(),
            (b'\'', _) => self.literal(0, b'\'', self.dialect == Dialect::Mysql),
            (b'"', _) if self.dialect == Dialect::Mysql => self.literal(0, b'"', true),
            (b'"', _) => match self.quoted(b'"') {
                Part::Name(name) => Part::Quoted(name),
                endless => endless,
            },
            (b'`', _) => self.quoted(b'`'),
            (b'[', _) if self.is_bracketed_name() => self.quoted(b']'),
            (b'?', _) => self.placeholder(),
            (b'$', b'0'..=b'9') => self.placeholder(),
            (b'$', _) if self.dialect == Dialect::Postgres => self.dollar_quoted(),
            (b'.', b'0'..=b'9') if !is_behind_name(written, rest, self.sql) => self.number(0),
            (b'0'..=b'9', _) => self.number(0),
            (b'-' | b'+', b'0'..=b'9' | b'.') if is_sign(written) => self.number(1),
            _ if first.is_ascii_whitespace() => {
                self.take(Part::Blank, |byte| byte.is_ascii_whitespace() || byte == 0x0b)
            }
            _ if is_letter(first) => self.name(),
            _ => {
                self.at += 1;
                Part::Symbol(first)
            }
        })
    }

    fn rest(&self) -> &'a [u8] {
        &self.sql[self.at..]
    }

    fn take(&mut self, part: Part<'a>, is_part: impl Fn(u8) -> bool) -> Part<'a> {
        let rest = self.rest();
        self.at += rest.iter().take_while(|&&byte| is_part(byte)).count();
        part
    }

    fn line(&mut self) -> Part<'a> {
        self.take(Part::Blank, |byte| byte != b'\n')
    }

    /// PostgreSQL allows nested comments.
    fn comment(&mut self) -> Part<'a> {
        let mut depth = 0;
        while let [first, more @ ..] = self.rest() {
            match (*first, more.first()) {
                (b'/', Some(b'*')) if depth == 0 || self.dialect == Dialect::Postgres => depth += 1,
                (b'*', Some(b'/')) => depth -= 1,
                _ => {
                    self.at += 1;
                    continue;
                }
            }
            self.at += 2;
            if depth == 0 {
                return Part::Blank;
            }
        }
        Part::Endless
    }

    /// A literal after a prefix. A quote in it is doubled, or escaped by a backslash.
    fn literal(&mut self, prefix: usize, quote: u8, escapes: bool) -> Part<'a> {
        self.at += prefix + 1;
        while let [first, more @ ..] = self.rest() {
            self.at += 1;
            if *first == b'\\' && escapes {
                self.at += 1;
                self.at = self.at.min(self.sql.len());
            } else if *first == quote {
                if more.first() != Some(&quote) {
                    return Part::Value;
                }
                self.at += 1;
            }
        }
        Part::Endless
    }

    /// A quoted name; a closing quote in it is doubled.
    fn quoted(&mut self, quote: u8) -> Part<'a> {
        let start = self.at;
        match self.literal(0, quote, false) {
            Part::Value => Part::Name(&self.sql[start..self.at]),
            endless => endless,
        }
    }

    /// `[` begins an array in PostgreSQL, and a name in other dialects.
    fn is_bracketed_name(&self) -> bool {
        match self.dialect {
            Dialect::Sqlite => true,
            Dialect::Other => {
                let inside = &self.rest()[1..];
                let is_plain = |byte: &&u8| is_in_name(**byte) || b" .-".contains(byte);
                let size = inside.iter().take_while(is_plain).count();
                inside.first().copied().is_some_and(is_letter) && inside.get(size) == Some(&b']')
            }
            _ => false,
        }
    }

    fn placeholder(&mut self) -> Part<'a> {
        self.at += 1;
        self.take(Part::Value, |byte| byte.is_ascii_digit())
    }

    /// `$$text$$` and `$tag$text$tag$`.
    fn dollar_quoted(&mut self) -> Part<'a> {
        let rest = self.rest();
        let size = rest[1..].iter().take_while(|&&byte| is_in_tag(byte)).count();
        if rest.get(size + 1) != Some(&b'$') {
            self.at += 1;
            return Part::Symbol(b'$');
        }
        let tag = &rest[..size + 2];
        let end = rest[tag.len()..].windows(tag.len()).position(|bytes| bytes == tag);
        match end {
            Some(end) => {
                self.at += end + 2 * tag.len();
                Part::Value
            }
            None => Part::Endless,
        }
    }

    fn number(&mut self, sign: usize) -> Part<'a> {
        self.at += sign;
        while let Some(&byte) = self.rest().first() {
            let exponent = matches!(byte, b'e' | b'E')
                && matches!(self.rest(), [_, b'+' | b'-', b'0'..=b'9', ..]);
            match byte {
                _ if exponent => self.at += 2,
                b'.' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => self.at += 1,
                _ => break,
            }
        }
        Part::Value
    }

    /// A name, or a literal with a prefix: `x'4F'`, `E'\n'`, `_utf8'a'`.
    fn name(&mut self) -> Part<'a> {
        let rest = self.rest();
        let size = rest.iter().take_while(|&&byte| is_in_name(byte)).count();
        let name = &rest[..size];
        if rest.get(size) == Some(&b'\'') {
            match &name.to_ascii_lowercase()[..] {
                b"e" => return self.literal(size, b'\'', true),
                b"q" | b"nq" if self.dialect == Dialect::Other => return self.alternative(size),
                b"n" | b"b" | b"x" | [b'_', ..] => {
                    return self.literal(size, b'\'', self.dialect == Dialect::Mysql);
                }
                _ => {}
            }
        }
        self.at += size;
        Part::Name(name)
    }

    /// Oracle's `q'[text]'`.
    fn alternative(&mut self, prefix: usize) -> Part<'a> {
        let rest = &self.rest()[prefix + 1..];
        let Some(&opening) = rest.first() else {
            return Part::Endless;
        };
        let closing = match opening {
            b'[' => b']',
            b'{' => b'}',
            b'(' => b')',
            b'<' => b'>',
            other => other,
        };
        let end = rest[1..].windows(2).position(|pair| pair == [closing, b'\'']);
        match end {
            Some(end) => {
                self.at += prefix + end + 4;
                Part::Value
            }
            None => Part::Endless,
        }
    }
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn is_in_name(byte: u8) -> bool {
    is_letter(byte) || byte.is_ascii_digit() || byte == b'$'
}

fn is_in_tag(byte: u8) -> bool {
    is_letter(byte) || byte.is_ascii_digit()
}

/// Whether a sign belongs to the number that follows, and is not an operator.
fn is_sign(written: &[u8]) -> bool {
    let last = written.trim_ascii_end().last();
    last.is_none_or(|last| BEFORE_SIGN.contains(last))
}

/// Whether the point belongs to a name immediately before it.
fn is_behind_name(written: &[u8], rest: &[u8], sql: &[u8]) -> bool {
    let before = sql.len() - rest.len();
    let adjacent = before > 0 && !sql[before - 1].is_ascii_whitespace();
    adjacent && written.last().is_some_and(|&last| is_in_name(last) || b"\"`])".contains(&last))
}

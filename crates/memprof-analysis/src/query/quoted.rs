//! Reading and writing quoted texts and regexps.

use std::fmt::{self, Write};

use super::query_error::Error;
use super::token::Span;

/// Reads the quoted text at the start of `rest`; also returns its length in bytes with quotes. `at` is the position of
/// `rest`.
pub(super) fn read_text(rest: &str, at: usize) -> Result<(String, usize), Error> {
    let mut chars = rest.char_indices();
    let quote = chars.next().map(|(_, quote)| quote);
    let mut text = String::new();
    while let Some((offset, char)) = chars.next() {
        if Some(char) == quote {
            return Ok((text, offset + char.len_utf8()));
        }
        if char != '\\' {
            text.push(char);
            continue;
        }
        let Some((_, escaped)) = chars.next() else {
            break;
        };
        let code = chars.as_str();
        let (char, length) = match escaped {
            'u' => unicode(code),
            escaped => (simple(escaped), 0),
        };
        let Some(char) = char else {
            let length = '\\'.len_utf8() + escaped.len_utf8() + length;
            let span = Span { at: at + offset, length };
            let known = r#"expected one of: \\ \" \' \n \r \t \0 \e \u{1f600}"#;
            return Err(span.error(format!("unknown escape; {known}")));
        };
        text.push(char);
        // The skipped characters are ASCII.
        for _ in 0..length {
            chars.next();
        }
    }
    let length = rest.len();
    Err(Span { at, length }.error("the text has no end: its quote is missing"))
}

fn simple(escaped: char) -> Option<char> {
    match escaped {
        '\\' | '"' | '\'' => Some(escaped),
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        '0' => Some('\0'),
        'e' => Some('\u{1b}'),
        _ => None,
    }
}

/// The character for `{1f600}`, and the length of that.
fn unicode(code: &str) -> (Option<char>, usize) {
    let Some(digits) = code.strip_prefix('{') else {
        return (None, 0);
    };
    let length = digits.bytes().take(6).take_while(u8::is_ascii_hexdigit).count();
    if !digits[length..].starts_with('}') {
        return (None, 1 + length);
    }
    let char = u32::from_str_radix(&digits[..length], 16);
    (char.ok().and_then(char::from_u32), length + 2)
}

/// Reads the regexp at the start of `rest`: its source, whether it ignores case, and its length in bytes.
pub(super) fn read_regexp(rest: &str, at: usize) -> Result<(String, bool, usize), Error> {
    let mut source = String::new();
    let mut chars = rest.char_indices().skip(1);
    while let Some((offset, char)) = chars.next() {
        match char {
            '/' => {
                let end = offset + 1;
                let (ignore_case, flags) = read_flags(&rest[end..], at + end)?;
                return Ok((source, ignore_case, end + flags));
            }
            // The regexp itself needs no backslash before a slash.
            '\\' => match chars.next() {
                Some((_, '/')) => source.push('/'),
                Some((_, char)) => source.extend(['\\', char]),
                None => break,
            },
            char => source.push(char),
        }
    }
    let length = rest.len();
    Err(Span { at, length }.error("the regexp has no end: its second / is missing"))
}

/// Reads the flags after the second slash: whether to ignore case, and the flags' length in bytes.
fn read_flags(rest: &str, at: usize) -> Result<(bool, usize), Error> {
    let end = rest.find(|char: char| !char.is_alphanumeric() && char != '_');
    let length = end.unwrap_or(rest.len());
    match &rest[..length] {
        "" => Ok((false, 0)),
        "i" => Ok((true, 1)),
        _ => Err(Span { at, length }.error("unknown flag of a regexp; expected i: ignore case")),
    }
}

/// Writes a text so that [`read_text`] reads it.
pub(super) fn write_text(formatter: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    formatter.write_char('"')?;
    for char in text.chars() {
        match char {
            '\\' | '"' => write!(formatter, "\\{char}")?,
            '\n' => formatter.write_str("\\n")?,
            '\r' => formatter.write_str("\\r")?,
            '\t' => formatter.write_str("\\t")?,
            '\0' => formatter.write_str("\\0")?,
            '\u{1b}' => formatter.write_str("\\e")?,
            char if char.is_control() => write!(formatter, "\\u{{{:x}}}", u32::from(char))?,
            char => formatter.write_char(char)?,
        }
    }
    formatter.write_char('"')
}

/// Writes a regexp so that [`read_regexp`] reads it.
pub(super) fn write_regexp(
    formatter: &mut fmt::Formatter<'_>,
    source: &str,
    ignore_case: bool,
) -> fmt::Result {
    formatter.write_char('/')?;
    let mut escaped = false;
    for char in source.chars() {
        if char == '/' && !escaped {
            formatter.write_char('\\')?;
        }
        escaped = char == '\\' && !escaped;
        formatter.write_char(char)?;
    }
    formatter.write_str(if ignore_case { "/i" } else { "/" })
}

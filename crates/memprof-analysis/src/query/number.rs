//! Reading and writing numbers.

use std::fmt;

use super::query_error::{Error, shown};

/// A number in a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    pub value: u64,
    /// Written with a unit of bytes.
    pub unit: bool,
}

const UNITS: [(&str, u64); 9] = [
    ("B", 1),
    ("KB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// Significant digits of a fraction.
const PRECISION: usize = 18;

/// Reads the number that begins at `at`; also returns its length in bytes.
pub(super) fn read(query: &str, at: usize) -> Result<(Number, usize), Error> {
    let text = &query[at..];
    if text.starts_with("0x") || text.starts_with("0X") {
        return read_hexadecimal(text, at);
    }
    let whole = digits(text);
    let fraction = text[whole..].strip_prefix('.').map_or(0, digits);
    let mut length = whole;
    if fraction > 0 {
        length += 1 + fraction;
    }
    let number = &text[..length];
    let unit = match unit_after(&text[length..]) {
        Some((skipped, word)) => {
            let begin = at + length + skipped;
            length += skipped + word.len();
            Some(unit_named(word).ok_or_else(|| unknown_unit(word, begin))?)
        }
        None if fraction > 0 => {
            let message = "a fraction needs a unit, as 1.5MiB";
            return Err(error(message, at, length));
        }
        None => None,
    };
    let value = value(&number[..whole], number.get(whole + 1..), unit.unwrap_or(1));
    let value = value.ok_or_else(|| error("the number does not fit into 64 bits", at, length))?;
    let unit = unit.is_some();
    Ok((Number { value, unit }, length))
}

/// Reads an address, as 0x7f00.
fn read_hexadecimal(text: &str, at: usize) -> Result<(Number, usize), Error> {
    let length = 2 + word(&text[2..]).len();
    let digits = &text[2..length];
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        let message = "an address is 0x and hexadecimal digits, as 0x7f00";
        return Err(error(message, at, length));
    }
    let value = u64::from_str_radix(digits, 16);
    let value = value.map_err(|_| error("the address does not fit into 64 bits", at, length))?;
    Ok((Number { value, unit: false }, length))
}

/// Length of the digits at the beginning of the text, with single underscores between them.
fn digits(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut length = 0;
    while digit(length) || (length > 0 && bytes.get(length) == Some(&b'_') && digit(length + 1)) {
        length += 1;
    }
    length
}

/// The word that the text begins with; may be empty.
fn word(text: &str) -> &str {
    let end = text.find(|char: char| !char.is_alphanumeric() && char != '_');
    &text[..end.unwrap_or(text.len())]
}

/// The word after a number that may be a unit, and the number of bytes before it. After blanks only known units count.
fn unit_after(text: &str) -> Option<(usize, &str)> {
    let adjacent = word(text);
    if !adjacent.is_empty() {
        return Some((0, adjacent));
    }
    let trimmed = text.trim_start();
    let word = word(trimmed);
    unit_named(word).map(|_| (text.len() - trimmed.len(), word))
}

fn unit_named(word: &str) -> Option<u64> {
    let mut units = UNITS.iter();
    units.find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, bytes)| *bytes)
}

/// The value in whole units; `None` if it is too large.
fn value(whole: &str, fraction: Option<&str>, unit: u64) -> Option<u64> {
    let whole = decimals(whole)
        .try_fold(0u64, |value, digit| value.checked_mul(10)?.checked_add(digit.into()))?;
    let (mut part, mut scale) = (0u128, 1u128);
    for digit in fraction.into_iter().flat_map(decimals).take(PRECISION) {
        part = 10 * part + u128::from(digit);
        scale *= 10;
    }
    let unit = u128::from(unit);
    u64::try_from(u128::from(whole) * unit + part * unit / scale).ok()
}

fn decimals(text: &str) -> impl Iterator<Item = u8> {
    text.bytes().filter(u8::is_ascii_digit).map(|byte| byte - b'0')
}

fn unknown_unit(word: &str, at: usize) -> Error {
    let known = UNITS.map(|(name, _)| name).join(", ");
    let message = format!("unknown unit {}; expected one of: {known}", shown(word));
    error(&message, at, word.len())
}

fn error(message: &str, at: usize, length: usize) -> Error {
    Error { message: message.to_owned(), at, length }
}

/// Writes a size in the largest binary unit that divides it.
pub(super) fn write_size(formatter: &mut fmt::Formatter<'_>, bytes: u64) -> fmt::Result {
    let whole = |unit: &&(&str, u64)| bytes != 0 && bytes % unit.1 == 0;
    match UNITS[5..].iter().rev().find(whole) {
        Some((name, unit)) => write!(formatter, "{}{name}", bytes / unit),
        None => write!(formatter, "{bytes}"),
    }
}

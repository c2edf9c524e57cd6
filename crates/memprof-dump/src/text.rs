//! Numbers and strings as JSON text, appended to a buffer.

use std::io::Write;

use base64::display::Base64Display;
use base64::engine::{DecodePaddingMode, Engine, GeneralPurpose, GeneralPurposeConfig};

use super::record::{NameId, Tables};

/// Two hexadecimal digits per byte.
static HEX: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut table = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    table
};

/// Escapes of bytes inside a JSON string: 0 for none, `u` for `\u00..`, others follow a backslash.
static ESCAPES: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = b'u';
        byte += 1;
    }
    table[0x08] = b'b';
    table[0x09] = b't';
    table[0x0a] = b'n';
    table[0x0c] = b'f';
    table[0x0d] = b'r';
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table[0x7f] = b'u';
    table
};

/// Hexadecimal digits, without leading zeros.
#[inline]
pub(super) fn hex(out: &mut Vec<u8>, number: u64) {
    let mut text = [0; 16];
    for (pair, byte) in text.chunks_exact_mut(2).zip(number.to_be_bytes()) {
        pair.copy_from_slice(&HEX[byte as usize]);
    }
    let zeros = (number | 1).leading_zeros() as usize / 4;
    out.extend_from_slice(&text[zeros..]);
}

/// `"0x7f00"`, in quotes.
#[inline]
pub(super) fn address(out: &mut Vec<u8>, address: u64) {
    if address >> 44 == 0 || address >> 48 != 0 {
        return any_address(out, address);
    }
    // A typical heap address has twelve digits: sixteen bytes with its quotes. They are assembled in registers and written
    // at once.
    let (high, low) = (digits(address >> 16), digits(address << 16));
    let first = u64::from_le_bytes(*b"\"0x\0\0\0\0\0") | high << 24;
    let second = high >> 40 | (low & 0xffff_ffff) << 24 | u64::from(b'"') << 56;
    let text = u128::from(first) | u128::from(second) << 64;
    out.extend_from_slice(&text.to_le_bytes());
}

/// Eight hexadecimal digits of the lower half of a number, the first in the lowest byte.
#[inline]
fn digits(number: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let number = number & 0xffff_ffff;
    let number = (number | number << 16) & 0x0000_ffff_0000_ffff;
    let number = (number | number << 8) & 0x00ff_00ff_00ff_00ff;
    let number = (number | number << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    let letters = (number + ONES * 6) >> 4 & ONES;
    (number + ONES * u64::from(b'0') + letters * u64::from(b'a' - b'0' - 10)).swap_bytes()
}

fn any_address(out: &mut Vec<u8>, address: u64) {
    out.extend_from_slice(b"\"0x");
    hex(out, address);
    out.push(b'"');
}

/// A number.
#[inline]
pub(super) fn decimal(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// A number after its key, which includes comma, quotes and colon.
#[inline]
pub(super) fn field(out: &mut Vec<u8>, key: &str, number: impl itoa::Integer) {
    out.extend_from_slice(key.as_bytes());
    decimal(out, number);
}

/// A string in quotes.
#[inline]
pub(super) fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    escape(out, text);
    out.push(b'"');
}

/// A string in quotes, after its key, which includes comma, quotes and colon.
#[inline]
pub(super) fn string_field(out: &mut Vec<u8>, key: &str, text: &str) {
    out.extend_from_slice(key.as_bytes());
    string(out, text);
}

/// The inside of a string, from an interned text.
#[inline]
pub(super) fn name(out: &mut Vec<u8>, tables: &Tables, name: NameId) {
    match tables.spelled(name) {
        (text, true) => out.extend_from_slice(text.as_bytes()),
        (text, false) => escape(out, text),
    }
}

/// An interned text in quotes.
#[inline]
pub(super) fn quoted_name(out: &mut Vec<u8>, tables: &Tables, id: NameId) {
    out.push(b'"');
    name(out, tables, id);
    out.push(b'"');
}

/// An interned text in quotes after a key, if present.
#[inline]
pub(super) fn name_field(out: &mut Vec<u8>, tables: &Tables, key: &str, name: Option<NameId>) {
    if let Some(name) = name {
        out.extend_from_slice(key.as_bytes());
        quoted_name(out, tables, name);
    }
}

/// An address after its key, unless it is zero.
#[inline]
pub(super) fn address_field(out: &mut Vec<u8>, key: &str, at: u64) {
    if at != 0 {
        out.extend_from_slice(key.as_bytes());
        address(out, at);
    }
}

/// The inside of a string.
#[inline]
pub(super) fn escape(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let clean = clean::<false>(bytes);
    out.extend_from_slice(&bytes[..clean]);
    if clean < bytes.len() {
        escape_each(out, &bytes[clean..]);
    }
}

/// Whether a text certainly needs no escapes inside a string.
pub(super) fn is_plain(text: &str) -> bool {
    clean::<false>(text.as_bytes()) == text.len()
}

/// Number of leading bytes that certainly need no escapes (and are `ASCII`), in steps of eight or to the end.
#[inline]
fn clean<const ASCII: bool>(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = 0x8080_8080_8080_8080;
    let zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let special = |word: u64| {
        // Below a space, a quote, a backslash, or DEL; never in bytes with the top bit set.
        let found = word.wrapping_sub(ONES * 0x20) & !word
            | zero(word ^ (ONES * 0x22))
            | zero(word ^ (ONES * 0x5c))
            | zero(word ^ (ONES * 0x7f))
            | if ASCII { word } else { 0 };
        found & TOPS != 0
    };
    let chunks = bytes.chunks_exact(8);
    let rest = chunks.remainder();
    for (place, chunk) in chunks.enumerate() {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        if special(u64::from_le_bytes(word)) {
            return 8 * place;
        }
    }
    let fine = |&byte: &u8| ESCAPES[byte as usize] == 0 && !(ASCII && byte >= 0x80);
    // The last eight bytes at once; those before the rest are known to be clean.
    let fine_rest = match bytes.last_chunk() {
        Some(last) => rest.is_empty() || !special(u64::from_le_bytes(*last)),
        None => rest.iter().all(fine),
    };
    if fine_rest { bytes.len() } else { bytes.len() - rest.len() }
}

fn escape_each(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut done = 0;
    for (place, &byte) in bytes.iter().enumerate() {
        let escape = ESCAPES[byte as usize];
        if escape == 0 {
            continue;
        }
        out.extend_from_slice(&bytes[done..place]);
        done = place + 1;
        if escape == b'u' {
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(&HEX[byte as usize]);
        } else {
            out.extend_from_slice(&[b'\\', escape]);
        }
    }
    out.extend_from_slice(&bytes[done..]);
}

/// The inside of a string with arbitrary bytes: invalid UTF-8 becomes U+FFFD. True if all bytes were valid.
pub(super) fn escape_bytes(out: &mut Vec<u8>, bytes: &[u8]) -> bool {
    // Most are ASCII without anything to escape, which is found quickly.
    let (clean, bytes) = bytes.split_at(clean::<true>(bytes));
    out.extend_from_slice(clean);
    if bytes.is_empty() {
        return true;
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        escape(out, text);
        return true;
    }
    for chunk in bytes.utf8_chunks() {
        escape(out, chunk.valid());
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
    false
}

/// A Float as a JSON number; if it is not finite, a string with its name in Ruby.
pub(super) fn float(out: &mut Vec<u8>, number: f64) {
    if number.is_finite() {
        // Writing to a Vec cannot fail.
        let _ = serde_json::to_writer(out, &number);
    } else {
        out.push(b'"');
        out.extend_from_slice(not_finite(number).as_bytes());
        out.push(b'"');
    }
}

/// The bare name of NaN and the infinities.
pub(super) fn not_finite(number: f64) -> &'static str {
    if number.is_nan() {
        "NaN"
    } else if number > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

/// A Float as formatted by Ruby's `%#g`: six significant digits, with trailing zeros.
pub(super) fn general(out: &mut Vec<u8>, number: f64) {
    if number.is_nan() {
        return out.extend_from_slice(b"NaN");
    }
    if number.is_sign_negative() {
        out.push(b'-');
    }
    let number = number.abs();
    if number.is_infinite() {
        return out.extend_from_slice(b"Inf");
    }
    let scientific = format!("{number:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    // Writing to a Vec cannot fail.
    let _ = match exponent {
        5 => write!(out, "{number:.0}."),
        -4..5 => write!(out, "{number:.*}", (5 - exponent) as usize),
        6.. => write!(out, "{digits}e+{exponent:02}"),
        _ => write!(out, "{digits}e-{:02}", -exponent),
    };
}

/// Base64 with padding, which is optional when reading.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Bytes in base64, with padding.
pub(super) fn base64(out: &mut Vec<u8>, bytes: &[u8]) {
    // Writing to a Vec cannot fail.
    let _ = write!(out, "{}", Base64Display::new(bytes, &BASE64));
}

/// The bytes written by [`base64()`]; `None` if the text is not valid.
pub(super) fn from_base64(text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text).ok()
}

#[cfg(test)]
mod tests;

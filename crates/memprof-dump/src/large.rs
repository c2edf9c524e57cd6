//! Strings that are too large to be copied. Their line is made with another string in their place, and the bytes go to
//! the file in pieces where that stands.

use std::io;

use super::record::{Content, Detail, Object};
use super::sink::Sink;
use super::text;

/// Bytes from which on a string is large.
const LARGE: usize = 1 << 20;

/// Bytes of a piece; three bytes are four digits of base64.
const PIECE: usize = 3 << 14;

/// Stands in for the bytes of a large string.
const STAND_IN: &[u8] = b"#";

/// The same for one that is not ASCII, where that makes a difference.
pub(super) const NOT_ASCII: &[u8] = b"\xff";

/// An object with a large string, without it, and the string. Not for numbers, whose first digit says their sign.
#[inline(always)]
pub(super) fn split<'a>(object: &Object<'a>) -> Option<(Object<'a>, &'a [u8])> {
    match object.detail {
        Detail::String(ref string) | Detail::Symbol(ref string) | Detail::Regexp(ref string) => {
            match string.content {
                Content::Full(bytes) if bytes.len() >= LARGE => Some((without(object), bytes)),
                _ => None,
            }
        }
        _ => None,
    }
}

#[cold]
fn without<'a>(object: &Object<'a>) -> Object<'a> {
    let mut other = *object;
    replace_content(&mut other, STAND_IN);
    other
}

/// Replaces the content by other bytes.
pub(super) fn replace_content(object: &mut Object<'_>, bytes: &'static [u8]) {
    if let Detail::String(text) | Detail::Symbol(text) | Detail::Regexp(text) = &mut object.detail {
        text.content = Content::Full(bytes);
    }
}

/// Writes the bytes where the stand-in is, behind `key`, in what the buffer has from `start` on. Bytes that are no UTF-8
/// follow under a key of their own, if the format has one.
pub(super) fn write(
    sink: &mut Sink,
    start: usize,
    key: &str,
    bytes: &[u8],
    has_base64: bool,
) -> io::Result<()> {
    let out = sink.buffer();
    let opening = [key.as_bytes(), b"\""].concat();
    let wanted = [&opening, STAND_IN, b"\""].concat();
    // No other place looks like it: quotes inside of names are escaped.
    let line = out[start..].windows(wanted.len());
    let Some(place) = line.enumerate().find(|(_, at)| *at == wanted) else {
        return Ok(());
    };
    let at = start + place.0 + opening.len();
    let rest = out.split_off(at + STAND_IN.len());
    out.truncate(at);
    let whole = escaped(sink, bytes)?;
    if !whole && has_base64 {
        sink.buffer().extend_from_slice(b"\",\"bytes\":\"");
        for piece in bytes.chunks(PIECE) {
            text::base64(sink.buffer(), piece);
            sink.passed()?;
        }
    }
    sink.buffer().extend_from_slice(&rest);
    sink.passed()
}

/// The inside of a string; what is no UTF-8 becomes U+FFFD. True if all bytes are there.
fn escaped(sink: &mut Sink, bytes: &[u8]) -> io::Result<bool> {
    let mut whole = true;
    for chunk in bytes.utf8_chunks() {
        let mut rest = chunk.valid();
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(boundary(rest, PIECE));
            text::escape(sink.buffer(), piece);
            sink.passed()?;
            rest = behind;
        }
        if !chunk.invalid().is_empty() {
            whole = false;
            sink.buffer().extend_from_slice("\u{fffd}".as_bytes());
            sink.passed()?;
        }
    }
    Ok(whole)
}

/// The last place up to `most` at which a text can be parted.
fn boundary(text: &str, most: usize) -> usize {
    if most >= text.len() {
        return text.len();
    }
    let mut places = (0..=most).rev();
    places.find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests;

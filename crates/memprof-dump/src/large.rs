//! Strings too large to copy. Their line is built with a placeholder, and the bytes are written to the file in pieces in its
//! place.

use std::io;

use super::record::{Content, Detail, Object};
use super::sink::Sink;
use super::text;

/// Size from which a string is large.
const LARGE: usize = 1 << 20;

/// Bytes of a piece; three bytes make four base64 digits.
const PIECE: usize = 3 << 14;

/// Placeholder for the bytes of a large string.
const STAND_IN: &[u8] = b"#";

/// Placeholder for a string that is not ASCII, where that matters.
pub(super) const NOT_ASCII: &[u8] = b"\xff";

/// Separates an object from its large string. Not for numbers, whose sign is in the first digit.
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

/// Writes the bytes in place of the placeholder after `key`, in the part of the buffer after `start`. Bytes that are not
/// UTF-8 follow under their own key, if the format has one.
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
    // The match is unique: quotes inside of names are escaped.
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

/// The inside of a string; invalid UTF-8 becomes U+FFFD. True if all bytes were valid.
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

/// The last position up to `most` where a text can be split.
fn boundary(text: &str, most: usize) -> usize {
    if most >= text.len() {
        return text.len();
    }
    let mut places = (0..=most).rev();
    places.find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests;

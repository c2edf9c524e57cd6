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
mod tests {
    use super::super::format::{Compression, Format, Options};
    use super::super::record::{
        CodeRange, Content, Detail, Flags, Kind, NameId, Object, Tables, Text,
    };
    use super::super::testing::written;
    use super::super::writer::Writer;
    use super::LARGE;

    /// The line of a string with these bytes, in each JSON format.
    fn lines(bytes: &[u8], coderange: CodeRange) -> Vec<String> {
        let formats = [Format::Memprof, Format::Objspace, Format::HeapDump];
        let line = |format| {
            let options = Options { format, compression: Compression::None, ruby: (3, 1) };
            let write = |writer: &mut dyn Writer| {
                let mut tables = Tables::default();
                let text = Text {
                    length: Some(5),
                    capacity: Some(7),
                    encoding: tables.intern("UTF-8"),
                    coderange,
                    content: Content::Full(bytes),
                };
                let class_name: Option<NameId> = Some(tables.intern(",\"data\":\"#\""));
                let object = Object {
                    address: 4096,
                    kind: Kind::STRING,
                    class: 8,
                    class_name,
                    slot_size: 40,
                    memsize: 40,
                    shape_id: None,
                    flags: Flags(0),
                    age: None,
                    object_id: None,
                    detail: Detail::String(text),
                    fields: &[],
                    allocation: None,
                };
                writer.object(&tables, &object)?;
                writer.end(&tables)?;
                writer.finish(&tables, true).map(drop)
            };
            let text = written(options, write);
            String::from_utf8(text).expect("UTF-8")
        };
        formats.into_iter().map(line).collect()
    }

    /// Checks that a large string of repeated `short` is written like a short one.
    fn assert_alike(short: &[u8], coderange: CodeRange) {
        let times = LARGE / short.len() + 1;
        for (large, small) in
            lines(&short.repeat(times), coderange).into_iter().zip(lines(short, coderange))
        {
            let text = String::from_utf8_lossy(short);
            let inside = serde_json::to_string(&text).expect("JSON");
            let inside = inside.trim_matches('"').replace('\u{7f}', "\\u007f");
            assert_eq!(small.contains(&inside), large.contains(&inside.repeat(times)), "{small}");
            let rest = |line: &str| line.replace(&inside, "");
            let (large, small) = (rest(&large), rest(&small));
            let without_bytes = |line: &str| match line.split_once("\"bytes\":\"") {
                Some((head, tail)) => {
                    head.to_owned() + tail.split_once('"').map_or("", |(_, tail)| tail)
                }
                None => line.to_owned(),
            };
            assert_eq!(without_bytes(&large), without_bytes(&small));
            assert_eq!(large.contains("\"bytes\""), small.contains("\"bytes\""));
        }
    }

    #[test]
    fn large_strings_are_written_as_short_ones() {
        assert_alike(b"plain", CodeRange::SevenBit);
        assert_alike(b"quote \" and \n\x7f", CodeRange::SevenBit);
        assert_alike("\u{e9}\u{20ac}\u{1f600}x".as_bytes(), CodeRange::Valid);
        assert_alike("\u{e9}".as_bytes(), CodeRange::Unknown);
        assert_alike(b"plain", CodeRange::Unknown);
        assert_alike(b"ab\xffc", CodeRange::Broken);
    }

    #[test]
    fn bytes_that_are_no_text_are_all_there() {
        let bytes = b"\xff\xfea".repeat(LARGE / 3 + 5);
        let line = &lines(&bytes, CodeRange::Broken)[0];
        let base64 = line.split("\"bytes\":\"").nth(1).expect("bytes");
        let base64 = base64.split('"').next().expect("an end");
        assert_eq!(super::super::text::from_base64(base64).as_deref(), Some(&bytes[..]));
    }
}

use super::super::format::{Compression, Format, Options};
use super::super::record::{CodeRange, Content, Detail, Flags, Kind, NameId, Object, Tables, Text};
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

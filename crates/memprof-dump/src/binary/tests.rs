use super::block::{HEADER, MAGIC};
use crate::format::{Compression, Format, Options, create};
use crate::record::{CodeRange, Content, Detail, Flags, Kind, NoteKind, Object, Tables, Text};
use crate::testing::{converted, made, options, scratch, written};
use crate::values::Policy;

const BINARY: Options = options(Format::Binary);

/// Reads four bytes of a file.
fn number(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

#[test]
fn the_file_is_as_documented() {
    let bytes = made(BINARY, 3, 20_000);
    assert_eq!(bytes[..8], *b"memprof\x89");
    assert_eq!(bytes[8..10], [1, 0]);
    let end = bytes.len();
    assert_eq!(bytes[end - 8..], MAGIC);
    let footer = u64::from_le_bytes(bytes[end - 16..end - 8].try_into().unwrap()) as usize;
    let (mut at, mut blocks, mut objects) = (10, 0, 0);
    while bytes[at..at + 4] == *b"MPBK" {
        let packed = &bytes[at + HEADER..at + HEADER + number(&bytes, at + 12)];
        assert_eq!(zstd::decode_all(packed).unwrap().len(), number(&bytes, at + 8));
        assert_eq!(
            crc32fast::hash(&bytes[at + 8..at + HEADER + packed.len()]) as usize,
            number(&bytes, at + 4)
        );
        blocks += 1;
        objects += number(&bytes, at + 16);
        at += HEADER + packed.len();
    }
    assert!(blocks > 1);
    assert_eq!(objects, 20_000);
    assert_eq!(at, footer);
    assert_eq!(bytes[at..at + 4], *b"MPFT");
    assert_eq!(at + HEADER + number(&bytes, at + 12), end - 16);
}

#[test]
fn objects_in_a_row_take_few_bytes() {
    let bytes = written(BINARY, |writer| {
        let tables = Tables::default();
        for number in 0..100_000 {
            let object = Object {
                address: 0x7f00_0000_0000 + 40 * number,
                kind: Kind::ARRAY,
                class: 0x7f00_1000_0000,
                class_name: None,
                slot_size: 40,
                memsize: 40,
                shape_id: None,
                flags: Flags::EMBEDDED,
                age: None,
                object_id: None,
                detail: Detail::Length(0),
                fields: &[],
                allocation: None,
            };
            writer.object(&tables, &object)?;
            writer.end(&tables)?;
        }
        writer.finish(&tables, true).map(drop)
    });
    assert!(bytes.len() < 1000);
}

#[test]
fn it_is_not_compressed_twice() {
    let options = Options { compression: Compression::Gzip, ..BINARY };
    let error = create(scratch(), options).err().unwrap();
    assert!(error.to_string().contains("compressed by itself"));
}

/// Only a damaged file has such notes. They would break the lines of other formats, and leak values.
#[test]
fn a_note_that_is_no_object_of_json_is_left_out() {
    for note in ["", "secret", "{\"secret\":1", "[\"secret\"]", "{\"secret\":\n1}"] {
        let bytes = written(BINARY, |writer| {
            let tables = Tables::default();
            writer.note(&tables, NoteKind::Globals, note)?;
            writer.finish(&tables, true).map(drop)
        });
        for format in [Format::Memprof, Format::HeapDump, Format::Binary] {
            let (out, outcome) = converted(&bytes, options(format), Policy::None);
            assert_eq!(outcome.skipped, 1, "{note}");
            let leaked = out.windows(6).any(|word| word == b"secret");
            assert!(!leaked, "{note}");
        }
    }
}

/// Writes a string with this text in any format.
fn string(writer: &mut dyn crate::writer::Writer, address: u64, text: &[u8]) {
    let mut tables = Tables::default();
    let object = Object {
        address,
        kind: Kind::STRING,
        class: 0x7f00_1000_0000,
        class_name: None,
        slot_size: 40,
        memsize: 40 + text.len() as u64,
        shape_id: None,
        flags: Flags(0),
        age: None,
        object_id: None,
        detail: Detail::String(Text {
            length: Some(text.len() as u64),
            capacity: None,
            encoding: tables.intern("UTF-8"),
            coderange: CodeRange::SevenBit,
            content: Content::Full(text),
        }),
        fields: &[],
        allocation: None,
    };
    writer.object(&tables, &object).unwrap();
    writer.end(&tables).unwrap();
}

#[test]
fn a_long_text_is_in_blocks_of_the_usual_size() {
    let text: Vec<u8> = (0..9_000_000u32).map(|at| b'a' + (at % 23) as u8).collect();
    let write = |options| {
        written(options, |writer| {
            string(writer, 0x1000, b"before");
            string(writer, 0x2000, &text);
            string(writer, 0x3000, &text[..1_500_000]);
            string(writer, 0x4000, b"behind");
            writer.finish(&Tables::default(), true).map(drop)
        })
    };
    let bytes = write(BINARY);
    let mut at = 10;
    let mut blocks = 0;
    while bytes[at..at + 4] == *b"MPBK" {
        assert!(number(&bytes, at + 8) <= 3 << 20);
        blocks += 1;
        at += HEADER + number(&bytes, at + 12);
    }
    assert!(blocks > 5);
    let (json, outcome) = converted(&bytes, options(Format::Memprof), Policy::Full);
    assert_eq!(outcome.skipped, 0);
    assert!(json == write(options(Format::Memprof)));

    // Without one of the pieces the text is unknown, but everything else is known.
    let mut damaged = bytes.clone();
    let second = 10 + HEADER + number(&bytes, 22);
    damaged[second + HEADER] ^= 1;
    let (json, outcome) = converted(&damaged, options(Format::Memprof), Policy::Full);
    assert_eq!(outcome.skipped, 1);
    assert_eq!(outcome.counts.objects, 4);
    assert!(json.len() < 2_000_000);
    let (json, _) = converted(&bytes, options(Format::Memprof), Policy::None);
    assert!(!json.windows(6).any(|word| word == b"abcdef"));
}

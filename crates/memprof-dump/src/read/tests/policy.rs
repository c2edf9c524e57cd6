//! Contents that must not be written.

use super::{BINARY, MEMPROF, OBJSPACE, converted, text};
use crate::record::{
    CodeRange, Content, Detail, Edge, Field, Flags, Kind, Label, NoteKind, Object, Tables, Text,
    Value,
};
use crate::testing::written;
use crate::values::Policy;
use crate::writer::Writer;

/// A dump with the word "secret" in each content.
fn secrets() -> Vec<u8> {
    let write = |writer: &mut dyn Writer| {
        let mut tables = Tables::default();
        let header = "{\"_id\":\"header\",\"type\":\"header\",\"values\":\"full\",\"arguments\":[\"secret\"]}";
        writer.note(&tables, NoteKind::Header, header)?;
        let globals = "{\"_id\":\"globals\",\"type\":\"globals\",\"variables\":{\"$g\":\":secret\",\"$n\":99123}}";
        writer.note(&tables, NoteKind::Globals, globals)?;
        let file = "{\"_id\":\"lsof:0\",\"type\":\"lsof\",\"fd\":\"3r\",\"fd_name\":\"/secret\"}";
        writer.note(&tables, NoteKind::Lsof, file)?;
        let symbol = Value::Symbol(tables.intern("secret"));
        let fields = [
            Field {
                name: tables.intern("variables"),
                value: Value::Json(tables.intern("{\"x\":\":secret\"}")),
            },
            Field {
                name: tables.intern("state"),
                value: Value::Json(tables.intern("{\"locals\":{\"x\":\"secret\"},\"line\":5}")),
            },
        ];
        let path =
            Field { name: tables.intern("path"), value: Value::Name(tables.intern("/secret")) };
        let encoding = tables.intern("UTF-8");
        let text = Text {
            length: Some(6),
            capacity: Some(23),
            encoding,
            coderange: CodeRange::SevenBit,
            content: Content::Full(b"secret"),
        };
        let truncated = Text { content: Content::Truncated(b"secret"), ..text };
        let details = [
            (Kind::STRING, Detail::String(text)),
            (Kind::STRING, Detail::String(truncated)),
            (Kind::SYMBOL, Detail::Symbol(text)),
            (Kind::REGEXP, Detail::Regexp(text)),
            (Kind::BIGNUM, Detail::Bignum(text)),
            (Kind::HASH, Detail::Hash { size: 1, default: symbol, default_proc: false }),
            (Kind::FILE, Detail::File { fd: Some(3) }),
        ];
        let of_file = [path];
        for (place, (kind, detail)) in details.into_iter().enumerate() {
            let object = Object {
                address: 4096 + 40 * place as u64,
                kind,
                class: 8,
                class_name: None,
                slot_size: 40,
                memsize: 40,
                shape_id: None,
                flags: Flags(0),
                age: None,
                object_id: None,
                detail,
                fields: match kind {
                    Kind::FILE => &of_file,
                    _ => &fields,
                },
                allocation: None,
            };
            writer.object(&tables, &object)?;
            let edge = |label, value, preview| Edge { label, value, preview };
            if kind == Kind::HASH {
                let entries = [
                    edge(Label::Key, Value::Address(4096), None),
                    edge(Label::Entry, Value::Address(4136), Some(&b"secret"[..])),
                    edge(Label::Key, symbol, None),
                    edge(Label::Entry, Value::Address(4096), None),
                ];
                writer.edges(&tables, &entries)?;
            }
            writer.end(&tables)?;
        }
        writer.finish(&tables, true).map(drop)
    };
    written(BINARY, write)
}

fn under(policy: Policy) -> String {
    let (lines, outcome) = converted(&secrets(), MEMPROF, policy);
    assert_eq!(outcome.counts.objects, 7);
    text(&lines).to_owned()
}

#[test]
fn full_and_truncated_values() {
    assert_eq!(under(Policy::Full).matches("secret").count(), 25);
    assert!(under(Policy::Truncate).contains("\"data\":\"secret\""));
    assert!(under(Policy::Truncate).contains("\"values\":\"truncate\""));
}

#[test]
fn the_others_keep_every_secret() {
    for policy in [Policy::Hash, Policy::Length, Policy::None] {
        let lines = under(policy);
        assert!(!lines.contains("secret"), "{lines}");
        assert!(!lines.contains("99123"), "{lines}");
        assert!(lines.contains("\"line\":5"));
        assert!(lines.contains(&format!("\"values\":\"{}\"", policy.name())));
        let (objspace, _) = converted(lines.as_bytes(), OBJSPACE, Policy::Full);
        assert!(!text(&objspace).contains("secret"));
        let lengths = lines.matches("\"length\":6").count();
        assert_eq!(lengths, if policy == Policy::None { 0 } else { 5 });
        assert_eq!(lines.contains("\"capacity\""), policy != Policy::None);
    }
}

#[test]
fn marks_are_equal_for_equal_texts_only_under_hash() {
    let marks = |lines: &str| lines.matches("\"hash\":\"0x").count();
    // A truncated text has no mark.
    assert_eq!(marks(&under(Policy::Hash)), 4);
    let (again, _) = converted(under(Policy::Hash).as_bytes(), MEMPROF, Policy::Hash);
    assert_eq!(marks(text(&again)), 4);
    let (less, _) = converted(&again, MEMPROF, Policy::Length);
    assert_eq!(marks(text(&less)), 0);
}

use crate::format::Format;
use crate::record::{
    CodeRange, Content, Detail, Edge, Field, Flags, Kind, Label, NoteKind, Object, Tables, Text,
    Value,
};
use crate::testing::{options, written};
use crate::writer::Writer;

fn lines(write: impl FnOnce(&mut dyn Writer, &mut Tables) -> std::io::Result<()>) -> Vec<String> {
    let bytes = written(options(Format::Memprof), |writer| {
        let mut tables = Tables::default();
        write(writer, &mut tables)?;
        writer.finish(&tables, true).map(drop)
    });
    let text = String::from_utf8(bytes).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn object(kind: Kind, detail: Detail<'_>) -> Object<'_> {
    Object {
        address: 0x100,
        kind,
        class: 0x200,
        class_name: None,
        slot_size: 40,
        memsize: 40,
        shape_id: None,
        flags: Flags(0),
        age: None,
        object_id: None,
        detail,
        fields: &[],
        allocation: None,
    }
}

#[test]
fn notes_are_completed() {
    let lines = lines(|writer, tables| {
        writer.note(tables, NoteKind::Header, "{\"pid\":1}")?;
        writer.note(tables, NoteKind::Ps, "{}")?;
        writer.note(tables, NoteKind::Lsof, "{\"_id\":\"lsof:3\",\"type\":\"lsof\"}")
    });
    assert_eq!(
        lines,
        [
            r#"{"_id":"header","type":"header","format":"memprof","version":1,"pid":1}"#,
            r#"{"_id":"ps","type":"ps"}"#,
            r#"{"_id":"lsof:3","type":"lsof"}"#,
            r#"{"_id":"footer","type":"footer","objects":0,"references":0,"memsize":0,"roots":0,"shapes":0}"#,
        ]
    );
}

#[test]
fn the_entries_of_a_hash_are_labelled_by_their_keys() {
    let lines = lines(|writer, tables| {
        let symbol = tables.intern("x");
        let edge = |label, value| Edge { label, value, preview: None };
        let detail = Detail::Hash { size: 4, default: Value::Nil, default_proc: false };
        writer.object(tables, &object(Kind::HASH, detail))?;
        writer.edges(
            tables,
            &[
                edge(Label::Key, Value::Address(0x300)),
                Edge {
                    preview: Some("user:\"é".as_bytes()),
                    ..edge(Label::Entry, Value::Address(0x308))
                },
                edge(Label::Key, Value::Symbol(symbol)),
                edge(Label::Entry, Value::Address(0x310)),
                edge(Label::Key, Value::Int(42)),
                edge(Label::Entry, Value::Int(1)),
                edge(Label::Key, Value::Address(0x318)),
                edge(Label::Entry, Value::Address(0x320)),
            ],
        )?;
        writer.end(tables)
    });
    let expected = concat!(
        r#"{"_id":"0x100","type":"hash","class":"0x200","length":4,"default":null,"#,
        r#""data":[["0x300","0x308"],[":x","0x310"],[42,1],["0x318","0x320"]],"#,
        r#""memsize":40,"slot_size":40,"references":["0x300","0x308","0x310","0x318","0x320"],"#,
        r#""labels":["key","[\"user:\"é\"]","[:x]","key","[0x318]"],"code":8}"#
    );
    assert_eq!(lines[0], expected.replace("user:\"é", "user:\\\"é"));
}

#[test]
fn what_is_no_utf_8_comes_whole_in_base64() {
    let lines = lines(|writer, tables| {
        let text = Text {
            length: Some(2),
            capacity: Some(23),
            encoding: tables.intern("UTF-8"),
            coderange: CodeRange::Broken,
            content: Content::Full(b"a\xff"),
        };
        let name = tables.intern("file");
        let fields = [Field { name, value: Value::True }];
        let object = Object { fields: &fields, ..object(Kind::STRING, Detail::String(text)) };
        writer.object(tables, &object)?;
        let class = Edge { label: Label::None, value: Value::Address(0x200), preview: None };
        writer.edges(tables, &[class])?;
        writer.end(tables)
    });
    let expected = concat!(
        r#"{"_id":"0x100","type":"string","class":"0x200","length":2,"data":"a"#,
        "\u{fffd}",
        r#"","bytes":"Yf8=","capacity":23,"encoding":"UTF-8","coderange":"broken","#,
        r#""own_file":true,"memsize":40,"slot_size":40,"code":5}"#
    );
    assert_eq!(lines[0], expected);
}

#[test]
fn references_without_names_have_no_labels() {
    let lines = lines(|writer, tables| {
        let role = Label::Role(tables.intern("self"));
        let edge = |label, value| Edge { label, value, preview: None };
        let plain = edge(Label::None, Value::Address(0x300));
        for edges in [
            [plain, plain],
            [plain, edge(role, Value::Nil)],
            [plain, edge(role, Value::Address(8))],
        ] {
            writer.object(tables, &object(Kind::DATA, Detail::Data { type_name: None }))?;
            writer.edges(tables, &edges)?;
            writer.end(tables)?;
        }
        Ok(())
    });
    assert!(lines[0].ends_with(r#""references":["0x300","0x300"],"code":12}"#));
    assert!(lines[1].contains(r#""values":{"self":null}"#));
    assert!(lines[1].ends_with(r#""references":["0x300"],"code":12}"#));
    assert!(
        lines[2].ends_with(r#""references":["0x300","0x8"],"labels":[null,"self"],"code":12}"#)
    );
}

use crate::format::{Format, Options};
use crate::record::{
    Allocation, CodeRange, Content, Detail, Edge, Field, Flags, Kind, Label, Object, STATE, Shape,
    Site, Tables, Text, Value,
};
use crate::testing::{scratch, written};
use crate::worker::Worker;
use crate::writer::{LiveWriter, TemplateId, Writer};

use super::{Compression, ObjspaceJson};

/// A chilled, tracked String, an object that references its class, and a hash, as written by this Ruby.
fn lines(ruby: (u8, u8)) -> String {
    let options = Options { ruby, ..crate::testing::options(Format::Objspace) };
    let bytes = written(options, |writer| {
        let mut tables = Tables::default();
        let edge =
            |address| Edge { label: Label::None, value: Value::Address(address), preview: None };
        writer.roots(&tables, "vm", &[edge(0x10)])?;
        writer.roots(&tables, "vm", &[edge(0x20)])?;
        writer.roots(&tables, "global_tbl", &[edge(0x30)])?;
        if ruby >= (3, 2) {
            let shape = Shape {
                address: 0x70,
                id: 3,
                parent_id: Some(0),
                depth: 1,
                shape_type: tables.intern("IVAR"),
                edge_name: Some(tables.intern("@a")),
                edges: 0,
                memsize: 32,
            };
            writer.shape(&tables, &shape)?;
        }
        let site = Site {
            file: tables.intern("we\"ird.rb"),
            line: 7,
            method: Some(tables.intern("fetch")),
        };
        let encoding = tables.intern("UTF-8");
        let flags = Flags::CHILLED.0 | Flags::EMBEDDED.0 | Flags::WB_PROTECTED.0 | Flags::OLD.0;
        let mut object = Object {
            address: 0x100,
            kind: Kind::STRING,
            class: 0x200,
            class_name: None,
            slot_size: 40,
            memsize: 40,
            shape_id: Some(2),
            flags: Flags(flags),
            age: Some(3),
            object_id: Some(8),
            detail: Detail::String(Text {
                length: Some(2),
                capacity: None,
                encoding,
                coderange: CodeRange::SevenBit,
                content: Content::Full(b"a\n"),
            }),
            fields: &[],
            allocation: Some(Allocation {
                site: tables.intern_site(site),
                caller: Some(tables.intern_site(site)),
                generation: 4,
                time: 5,
            }),
        };
        writer.object(&tables, &object)?;
        writer.end(&tables)?;
        object.allocation = None;
        object.kind = Kind::OBJECT;
        object.flags = Flags(Flags::EMBEDDED.0 | Flags::FROZEN.0);
        object.detail = Detail::Object { ivars: 1 };
        writer.object(&tables, &object)?;
        writer.edges(&tables, &[edge(0x200), edge(0x300), edge(0x300)])?;
        writer.end(&tables)?;
        object.kind = Kind::HASH;
        object.flags = Flags(0);
        object.age = None;
        object.object_id = None;
        object.detail =
            Detail::Hash { size: 0, default: Value::Address(0x400), default_proc: true };
        writer.object(&tables, &object)?;
        writer.end(&tables)?;
        // A free block of malloc has no line.
        let name = tables.intern(STATE);
        let fields = [Field { name, value: Value::Name(tables.intern("free")) }];
        let free = Object { kind: Kind::BLOCK, detail: Detail::None, fields: &fields, ..object };
        writer.object(&tables, &free)?;
        writer.end(&tables)?;
        writer.finish(&tables, true).map(drop)
    });
    String::from_utf8(bytes).unwrap()
}

const ROOTS: &str = r#"{"type":"ROOT", "root":"vm", "references":["0x10", "0x20"]}
{"type":"ROOT", "root":"global_tbl", "references":["0x30"]}
"#;

const SHAPE: &str = r#"{"address":"0x70", "type":"SHAPE", "id":3, "parent_id":0, "depth":1, "shape_type":"IVAR","edge_name":"@a", "edges":0, "memsize":32}
"#;

#[test]
fn lines_of_ruby_3_1() {
    let expected = r#"{"address":"0x100", "type":"STRING", "class":"0x200", "embedded":true, "bytesize":2, "value":"a\n", "encoding":"UTF-8", "file":"we\"ird.rb", "line":7, "method":"fetch", "generation":4, "memsize":40, "flags":{"wb_protected":true, "old":true}}
{"address":"0x100", "type":"OBJECT", "class":"0x200", "frozen":true, "ivars":1, "references":["0x300", "0x300"], "memsize":40}
{"address":"0x100", "type":"HASH", "class":"0x200", "size":0, "default":"0x400", "memsize":40}
"#;
    assert_eq!(lines((3, 1)), format!("{ROOTS}{expected}"));
}

#[test]
fn lines_of_ruby_3_3() {
    let expected = r#"{"address":"0x100", "type":"STRING", "shape_id":2, "slot_size":40, "class":"0x200", "embedded":true, "bytesize":2, "value":"a\n", "encoding":"UTF-8", "coderange":"7bit", "file":"we\"ird.rb", "line":7, "method":"fetch", "generation":4, "memsize":40, "flags":{"wb_protected":true, "old":true}}
{"address":"0x100", "type":"OBJECT", "shape_id":2, "slot_size":40, "class":"0x200", "frozen":true, "embedded":true, "ivars":1, "references":["0x300", "0x300"], "memsize":40}
{"address":"0x100", "type":"HASH", "shape_id":2, "slot_size":40, "class":"0x200", "size":0, "default":"0x400", "memsize":40}
"#;
    assert_eq!(lines((3, 3)), format!("{ROOTS}{SHAPE}{expected}"));
}

#[test]
fn lines_of_ruby_4_0() {
    let expected = r#"{"address":"0x100", "type":"STRING", "shape_id":2, "slot_size":40, "class":"0x200", "embedded":true, "chilled":true, "bytesize":2, "value":"a\n", "encoding":"UTF-8", "coderange":"7bit", "file":"we\"ird.rb", "line":7, "method":"fetch", "generation":4, "memsize":40, "flags":{"wb_protected":true, "age":3, "old":true, "object_id":8}}
{"address":"0x100", "type":"OBJECT", "shape_id":2, "slot_size":40, "class":"0x200", "frozen":true, "embedded":true, "ivars":1, "references":["0x300", "0x300"], "memsize":40, "flags":{"age":3, "object_id":8}}
{"address":"0x100", "type":"HASH", "shape_id":2, "slot_size":40, "class":"0x200", "size":0, "default":"0x400", "memsize":40}
"#;
    assert_eq!(lines((4, 0)), format!("{ROOTS}{SHAPE}{expected}"));
}

/// Strings of three kinds; similar ones differ in contents, size, or allocation site.
fn strings(ruby: (u8, u8), mut write: impl FnMut(&Tables, TemplateId, &Object<'_>)) {
    let mut tables = Tables::default();
    // More names than slots for encodings, so that some share one.
    let numbered = (0..130).map(|number| format!("encoding {number}"));
    let encodings: Vec<_> = numbered
        .chain(["UTF-8", "UTF-16LE", ""].map(str::to_owned))
        .map(|name| tables.intern(&name))
        .collect();
    let site = Site { file: encodings[0], line: 1, method: None };
    let site = tables.intern_site(site);
    for number in 0..600u64 {
        let template = number as usize % encodings.len();
        let frozen = if template % 2 == 0 { Flags::FROZEN } else { Flags::OLD };
        let object = Object {
            address: 0x7f00_0000_0000 + 40 * number,
            kind: Kind::STRING,
            class: 0x200,
            class_name: None,
            slot_size: 40,
            memsize: 40 + number / 100,
            shape_id: Some(template as u32),
            flags: frozen,
            age: (ruby >= (4, 0)).then_some(template as u8),
            object_id: (number % 7 == 0).then_some(number),
            detail: Detail::String(Text {
                length: Some(3),
                capacity: None,
                encoding: encodings[template],
                coderange: CodeRange::SevenBit,
                content: Content::Full(b"abc"),
            }),
            fields: &[],
            allocation: (number % 11 == 0).then_some(Allocation {
                site,
                caller: (number % 2 == 0).then_some(site),
                generation: number,
                time: 0,
            }),
        };
        write(&tables, TemplateId(template as u32), &object);
    }
}

fn lines_of(ruby: (u8, u8), live: bool) -> String {
    use std::io::{Read, Seek};
    let file = scratch();
    let mut back = file.try_clone().unwrap();
    let mut writer = ObjspaceJson::create(file, Compression::None, Worker::Thread, ruby).unwrap();
    strings(ruby, |tables, template, object| {
        let edges = [0x200, 0x300, object.address].map(|address| Edge {
            label: Label::None,
            value: Value::Address(address),
            preview: None,
        });
        if live {
            writer.object_from_template(tables, template, object).unwrap();
            (edges.into_iter()).for_each(|edge| writer.edge(tables, edge).unwrap());
        } else {
            writer.object(tables, object).unwrap();
            writer.edges(tables, &edges).unwrap();
        }
        writer.end(tables).unwrap();
    });
    writer.finish(&Tables::default(), true).unwrap();
    let mut text = String::new();
    back.rewind().unwrap();
    back.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn lines_of_like_objects_are_those_of_objects() {
    for ruby in [(3, 1), (3, 3), (4, 0)] {
        let (live, other) = (lines_of(ruby, true), lines_of(ruby, false));
        assert_eq!(live.lines().count(), 600);
        for (one, two) in live.lines().zip(other.lines()) {
            assert_eq!(one, two);
        }
        let encoding = "\"encoding\":\"UTF-16LE\"";
        assert!(live.lines().any(|line| line.contains(encoding) && !line.contains("\"value\"")));
    }
}

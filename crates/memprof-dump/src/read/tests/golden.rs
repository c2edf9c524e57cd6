//! Handwritten lines in the form of each Ruby, and their meaning.

use std::io;

use super::text;
use crate::read::{Outcome, convert};
use crate::record::{Counts, Edge, NoteKind, Object, Shape, Tables, Value};
use crate::testing::values;
use crate::values::Policy;
use crate::writer::Writer;

/// Collects records as text.
#[derive(Default)]
pub(super) struct Words {
    pub lines: Vec<String>,
    counts: Counts,
}

impl Writer for Words {
    fn note(&mut self, _: &Tables, kind: NoteKind, json: &str) -> io::Result<()> {
        self.lines.push(format!("{kind:?} {json}"));
        Ok(())
    }

    fn roots(&mut self, tables: &Tables, category: &str, edges: &[Edge<'_>]) -> io::Result<()> {
        let edges: Vec<_> = edges.iter().map(|edge| word(tables, edge)).collect();
        self.lines.push(format!("roots {category}: {}", edges.join(" ")));
        Ok(())
    }

    fn shape(&mut self, tables: &Tables, shape: &Shape) -> io::Result<()> {
        let shape_type = tables.name(shape.shape_type);
        let edge = shape.edge_name.map(|name| tables.name(name));
        self.counts.shapes += 1;
        self.lines.push(format!(
            "shape {:#x} {} {:?} {} {shape_type} {edge:?} {} {}",
            shape.address, shape.id, shape.parent_id, shape.depth, shape.edges, shape.memsize
        ));
        Ok(())
    }

    fn object(&mut self, tables: &Tables, object: &Object<'_>) -> io::Result<()> {
        self.counts.objects += 1;
        let mut line = format!("{:?}", object);
        for number in (0..200).rev() {
            let name = tables.name(crate::record::NameId(number));
            line = line.replace(&format!("NameId({number})"), &format!("{name:?}"));
        }
        if let Some(site) = object.allocation.and_then(|made| tables.site(made.site)) {
            let method = site.method.map(|name| tables.name(name));
            let file = tables.name(site.file);
            line.push_str(&format!(" at {file}:{} {method:?}", site.line));
        }
        self.lines.push(line);
        Ok(())
    }

    fn edges(&mut self, tables: &Tables, edges: &[Edge<'_>]) -> io::Result<()> {
        let edges: Vec<_> = edges.iter().map(|edge| word(tables, edge)).collect();
        self.lines.push(format!("  {}", edges.join(" ")));
        Ok(())
    }

    fn end(&mut self, _: &Tables) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, _: &Tables, _: bool) -> io::Result<Counts> {
        Ok(self.counts)
    }
}

fn word(tables: &Tables, edge: &Edge<'_>) -> String {
    use crate::record::Label;
    let label = match edge.label {
        Label::None => String::new(),
        Label::Index(index) => format!("[{index}]="),
        Label::Key => "key=".to_owned(),
        Label::Entry => "entry=".to_owned(),
        Label::Ivar(name)
        | Label::ClassVariable(name)
        | Label::Constant(name)
        | Label::Member(name)
        | Label::Local(name)
        | Label::Global(name)
        | Label::Method(name)
        | Label::Role(name) => format!("{}=", tables.name(name)),
    };
    let value = match edge.value {
        Value::Address(address) => format!("{address:#x}"),
        Value::Symbol(name) => format!(":{}", tables.name(name)),
        Value::Name(name) => format!("{:?}", tables.name(name)),
        Value::Int(number) => number.to_string(),
        value => format!("{value:?}"),
    };
    label + &value
}

/// The records of a dump as text.
pub(super) fn words(dump: &[u8]) -> (Words, Outcome) {
    let mut words = Words::default();
    let input = Box::new(io::Cursor::new(dump.to_vec()));
    let outcome = convert(input, &mut words, values(Policy::Full)).expect("a dump");
    (words, outcome)
}

fn check(dump: &[u8], objects: u64, wanted: &[&str]) {
    let (words, outcome) = words(dump);
    assert_eq!((outcome.skipped, outcome.truncated), (0, false));
    assert_eq!(outcome.counts.objects, objects);
    for wanted in wanted {
        let found = words.lines.iter().any(|line| line.contains(wanted));
        assert!(found, "{wanted} in:\n{}", words.lines.join("\n"));
    }
    let _ = text(dump);
}

#[test]
fn ruby_2_1() {
    check(
        include_bytes!("golden/ruby-2.1.json"),
        4,
        &[
            "roots vm: 0x7f8a1b0a3fc8 0x7f8a1b0a3f50",
            "kind: Kind(5), class: 140231135859080",
            "Full([101, 115, 99, 27, 34])",
            "at /app/a.rb:3 Some(\"new\")",
            "Float(1.5e300)",
            "name: Some(\"Foo::Bar\")",
        ],
    );
}

#[test]
fn ruby_2_4() {
    check(
        include_bytes!("golden/ruby-2.4.json"),
        4,
        &["Kind(26)", "Kind(27)", "Float(inf)", "fd: Some(-1)"],
    );
}

#[test]
fn ruby_2_7() {
    check(
        include_bytes!("golden/ruby-2.7.json"),
        4,
        &[
            "kind: Kind(0), class: 0, class_name: None, slot_size: 40, memsize: 0",
            "Imemo { name: \"ast\"",
            "at /a \"quoted\" dir/b.rb:12 Some(\"[]=\")",
            "default_proc: true",
        ],
    );
}

#[test]
fn ruby_3_1() {
    check(
        include_bytes!("golden/ruby-3.1.json"),
        6,
        &[
            "real_name: Some(\"Class\")",
            "flags: Flags(14082)",
            "Length(3)",
            "  0x7f0000000100 0x7f0000000128",
            "at C:\\app\\x.rb:1 None",
        ],
    );
}

#[test]
fn ruby_3_2() {
    check(
        include_bytes!("golden/ruby-3.2.json"),
        3,
        &[
            "shape 0x7f1000000000 0 None 0 ROOT None 2 32",
            "shape 0x7f1000000020 1 Some(0) 1 IVAR Some(\"@a\") 1 32",
            "shape 0x7f1000000040 2 Some(0) 1 INITIAL_CAPACITY None 0 32",
            "slot_size: 160, memsize: 160, shape_id: Some(7)",
            "flags: Flags(387)",
            "Full([])",
            "variations: Some(2)",
        ],
    );
}

#[test]
fn ruby_3_4() {
    check(
        include_bytes!("golden/ruby-3.4.json"),
        3,
        &[
            "mid: Some(\"each\")",
            "called_id: Some(\"ID_INTERNAL(12)\"), receiver_class: 139775415681088",
            "coderange: Valid, content: Absent",
        ],
    );
}

#[test]
fn ruby_4_0() {
    check(
        include_bytes!("golden/ruby-4.0.json"),
        2,
        &[
            "shape 0x80007 524295 Some(524290) 3 OBJ_ID None 0 16",
            "age: Some(3), object_id: Some(1234)",
            "age: Some(0), object_id: None",
            "flags: Flags(33024)",
        ],
    );
}

#[test]
fn memprof_0_3() {
    check(
        include_bytes!("golden/memprof-0.3.json"),
        8,
        &[
            "Header {\"source\":\"memprof 0.3\"}",
            "roots global_tbl: $kept=0x2ad2d8e0",
            "roots finalizers: 0x2ad2d908",
            "Globals {",
            "Frame {",
            "Full([104, 101, 108, 108, 111, 119, 111, 114, 108, 100])",
            "at file.rb:2 None",
            "  [0]=1 [1]=Nil [2]=:sym [3]=0x15e5018",
            "  key=:a entry=0x15e5018 default=0x15e5040",
            "  @name=0x15e5018 @count=3",
            "  super=0x15e4f00 VERSION=0x15e5018 each=0x15e5180",
            "  node=0x15e5180 x=0x15e5018",
            "Kind(27)",
            "data=0x15e5018",
        ],
    );
}

#[test]
fn heap_dump_gem() {
    check(
        include_bytes!("golden/heap_dump.json"),
        6,
        &[
            "roots machine_context: 0x15e5020",
            "roots global_tbl: $kept=0x15e5040",
            "address: 22958144, kind: Kind(5), class: 22958208",
            "Full([97, 98, 99])",
            "  [0]=0x15e5020 [1]=7 [2]=\"sym\" [3]=Nil",
            "  key=Nil entry=0x15e5020 key=\"name\" entry=5 key=0x15e5060 entry=Undef",
            "  @a=0x15e5020",
            "Data { type_name: Some(\"proc\") }",
            "  blockprocval=0x15e5060 block=0x15e5020",
            "Float(inf)",
        ],
    );
}

//! Heaps to write, with names that are hard on formats.

use std::io;

use serde_json::Value as Json;

use super::{Counts, Format, Options};
use memprof_dump::Writer;
use memprof_dump::record::{
    Allocation, CodeRange, Content, Detail, Edge, Flags, Kind, Label, NameId, Object, Site, Tables,
    Text, Value,
};
use memprof_dump::testing::Random;
use memprof_heap::{Builder, Heap, Source};

/// Texts that some format could mistake for its own syntax.
pub const HOSTILE: [&str; 18] = [
    "plain",
    "quote\" back\\slash 'single'",
    "new\nline\r\n\ttab",
    "nul\0 bell\x07 del\x7f esc\x1b",
    "é 日本 😀 \u{2028}\u{2029}\u{85}",
    "\u{fffe}\u{ffff}\u{feff}\u{202e}",
    "</script><!-- <b>&amp; &#10; ]]>",
    "=cmd|' /C calc'!A0",
    "+1",
    "-1",
    "@sum",
    "\tx",
    ";a;b 12",
    "a,b\"\"",
    "[x]{y}(z)<w>",
    "\\N\\G\\l",
    "",
    "0x7f00",
];

const ENCODING: NameId = NameId(0);

fn address(number: u64) -> u64 {
    0x7f00_0001_0000 + number * 40
}

struct Maker {
    tables: Tables,
    random: Random,
    builder: Builder,
    names: Vec<NameId>,
    large: bool,
}

/// A heap of `objects` objects with hostile names, the first of which is a class. A part of it is unreachable. With an
/// even seed, one object has more than 4 GiB.
pub fn hostile(objects: u64, seed: u64) -> Heap {
    let mut tables = Tables::default();
    tables.intern("UTF-8");
    let long = "long\"&<\n".repeat(1 << 17);
    let texts = HOSTILE.iter().copied().chain([&*long]);
    let names = texts.map(|text| tables.intern(text)).collect();
    let builder = Builder::new(tempfile::tempfile().expect("a file")).expect("a builder");
    let mut maker =
        Maker { tables, random: Random(seed * 2 + 1), builder, names, large: seed % 2 == 0 };
    maker.roots(objects).expect("roots");
    for number in 0..objects {
        maker.object(number, objects).expect("an object");
    }
    maker.builder.finish(&maker.tables, true).expect("an end");
    Heap::build(maker.builder, Source::default(), &memprof_heap::Options::default())
        .expect("a heap")
}

impl Maker {
    fn name(&mut self) -> NameId {
        self.names[self.random.below(self.names.len() as u64) as usize]
    }

    fn roots(&mut self, objects: u64) -> io::Result<()> {
        for category in ["vm", "odd \"<&;\n\0"] {
            let edges: Vec<Edge<'_>> = (0..3)
                .map(|_| Edge {
                    label: Label::Global(self.name()),
                    value: Value::Address(address(self.random.below(objects))),
                    preview: None,
                })
                .collect();
            self.builder.roots(&self.tables, category, &edges)?;
        }
        Ok(())
    }

    fn object(&mut self, number: u64, objects: u64) -> io::Result<()> {
        let kinds = [
            Kind::OBJECT,
            Kind::STRING,
            Kind::ARRAY,
            Kind::HASH,
            Kind::DATA,
            Kind::SYMBOL,
            Kind::IMEMO,
            Kind::MODULE,
        ];
        let kind = match number {
            0 => Kind::CLASS,
            _ => kinds[self.random.below(8) as usize],
        };
        let content = self.name();
        let mut bytes = self.tables.name(content).as_bytes().to_vec();
        bytes.extend_from_slice(if number % 3 == 0 { b"\xff\xfe\xed\xa0\x80" } else { b"" });
        let some = self.name();
        let text = Text {
            length: Some(bytes.len() as u64),
            capacity: None,
            encoding: ENCODING,
            coderange: CodeRange::Unknown,
            content: if number % 7 == 0 { Content::Absent } else { Content::Full(&bytes) },
        };
        let detail = match kind {
            Kind::STRING => Detail::String(text),
            Kind::SYMBOL => Detail::Symbol(text),
            Kind::ARRAY => Detail::Length(number),
            Kind::CLASS | Kind::MODULE => Detail::Class {
                name: Some(some),
                real_name: None,
                superclass: 0,
                super_name: None,
                variations: None,
            },
            Kind::DATA => Detail::Data { type_name: Some(some) },
            Kind::IMEMO => {
                Detail::Imemo { name: some, mid: None, called_id: None, receiver_class: 0 }
            }
            _ => Detail::None,
        };
        let site = Site { file: self.name(), line: number as u32 % 9, method: Some(self.name()) };
        let allocation = Allocation {
            site: self.tables.intern_site(site),
            caller: None,
            generation: number % 5,
            time: 1_700_000_000_000_000,
        };
        let object = Object {
            address: address(number),
            kind,
            class: if number % 4 == 0 { address(0) } else { 0 },
            class_name: (kind != Kind::IMEMO).then_some(some),
            slot_size: 40,
            memsize: if number == 1 && self.large { 5 << 32 } else { 40 + self.random.below(1000) },
            shape_id: None,
            flags: Flags(self.random.below(1 << 17) as u32 & !Flags::SINGLETON.0),
            age: None,
            object_id: None,
            detail,
            fields: &[],
            allocation: (number % 2 == 0).then_some(allocation),
        };
        self.builder.object(&self.tables, &object)?;
        let edges: Vec<Edge<'_>> =
            (0..self.random.below(6)).map(|index| self.edge(index, objects)).collect();
        self.builder.edges(&self.tables, &edges)
    }

    fn edge(&mut self, index: u64, objects: u64) -> Edge<'static> {
        let name = self.name();
        let labels = [
            Label::None,
            Label::Index(index as u32),
            Label::Key,
            Label::Entry,
            Label::Ivar(name),
            Label::Constant(name),
            Label::Member(name),
            Label::Local(name),
            Label::Method(name),
            Label::Role(name),
        ];
        // Half of them lead to few objects: these have many referrers, and all others long paths.
        let near = if self.random.below(2) == 0 { objects } else { 20 };
        Edge {
            label: labels[self.random.below(10) as usize],
            value: Value::Address(address(self.random.below(near.min(objects)))),
            preview: None,
        }
    }
}

/// The written text.
pub fn written(heap: &Heap, format: Format, options: &Options<'_>) -> (String, Counts) {
    let mut out = Vec::new();
    let counts = super::write(heap, format, options, &mut out).expect("a vector takes all");
    (String::from_utf8(out).expect("UTF-8"), counts)
}

/// The same, parsed as JSON.
pub fn parsed(heap: &Heap, format: Format, options: &Options<'_>) -> (Json, Counts) {
    let (text, counts) = written(heap, format, options);
    (serde_json::from_str(&text).expect("JSON"), counts)
}

//! Test support: generated dumps, and files to write them to.

mod random;
mod scratch_files;

use std::io;
use std::ops::Range;

use super::record::{
    Allocation, CodeRange, Content, Detail, Edge, Field, Flags, Kind, Label, NameId, NoteKind,
    Object, Shape, Site, Tables, Text, Value,
};
use super::writer::Writer;

pub use random::Random;
pub use scratch_files::{converted, made, options, scratch, values, written};

/// Texts that are difficult in JSON.
pub const HOSTILE: [&[u8]; 12] = [
    b"",
    b"plain",
    b"quote\" back\\slash",
    b"nul\0 bell\x07 del\x7f esc\x1b",
    b"tab\t newline\n return\r",
    "é 日本 😀 \u{2028}\u{2029}".as_bytes(),
    b"\xff\xfe broken \xe2\x82",
    b"\xed\xa0\x80 surrogate",
    b"0x7f00",
    b":symbol",
    b"[\"x\"]",
    b"</script>{}[],:",
];

impl Random {
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    fn maybe<T>(&mut self, value: T) -> Option<T> {
        self.one_in(2).then_some(value)
    }

    fn address(&mut self) -> u64 {
        match self.below(40) {
            0 => u64::MAX - self.below(100),
            1 => self.below(100) + 1,
            _ => 0x7f00_0000_0000 + 8 * self.below(100_000),
        }
    }

    fn name(&mut self, tables: &mut Tables) -> NameId {
        let text = String::from_utf8_lossy(self.pick(&HOSTILE)).into_owned();
        let number = self.below(30);
        tables.intern(&format!("name{number}{text}"))
    }

    fn value(&mut self, tables: &mut Tables) -> Value {
        match self.below(14) {
            0 => Value::Nil,
            1 => Value::True,
            2 => Value::False,
            3 => Value::Int(self.0 as i64),
            4 => Value::Int(self.below(10) as i64 - 5),
            5 => Value::Float(f64::from_bits(self.0)),
            6 => Value::Float(self.pick(&[0.0, -0.0, 1.0, f64::INFINITY, f64::NEG_INFINITY])),
            7 | 8 => Value::Symbol(self.name(tables)),
            _ => Value::Address(self.address()),
        }
    }
}

/// Writes a dump with this many objects.
pub fn make(writer: &mut dyn Writer, seed: u64, objects: u64) -> io::Result<()> {
    let mut random = Random(seed * 2 + 1);
    let mut tables = Tables::default();
    let header =
        "{\"_id\":\"header\",\"type\":\"header\",\"format\":\"memprof\",\"version\":1,\"pid\":7}";
    writer.note(&tables, NoteKind::Header, header)?;
    let globals = "{\"_id\":\"globals\",\"type\":\"globals\",\"variables\":{\"$x\":\":secret\",\"$o\":\"0x8\"}}";
    writer.note(&tables, NoteKind::Globals, globals)?;
    for category in ["vm", "machine_context"] {
        let mut edges: Vec<Edge<'_>> = Vec::new();
        for _ in 0..random.below(10) {
            let label = Label::Global(tables.intern("$stdout"));
            edges.push(Edge {
                label: random.pick(&[Label::None, label]),
                value: Value::Address(random.address()),
                preview: None,
            });
        }
        writer.roots(&tables, category, &edges)?;
    }
    for id in 0..random.below(5) {
        let shape_type = tables.intern("IVAR");
        let edge_name = tables.intern("@name");
        let shape = Shape {
            address: random.address(),
            id,
            parent_id: id.checked_sub(1),
            depth: id,
            shape_type,
            edge_name: (id > 0).then_some(edge_name),
            edges: random.below(3),
            memsize: 32,
        };
        writer.shape(&tables, &shape)?;
    }
    for _ in 0..objects {
        object(writer, &mut tables, &mut random)?;
    }
    let ps = "{\"_id\":\"ps\",\"type\":\"ps\",\"rss\":\"1\"}";
    writer.note(&tables, NoteKind::Ps, ps)
}

const KINDS: [Kind; 18] = [
    Kind::OBJECT,
    Kind::CLASS,
    Kind::MODULE,
    Kind::ICLASS,
    Kind::FLOAT,
    Kind::STRING,
    Kind::STRING,
    Kind::REGEXP,
    Kind::ARRAY,
    Kind::HASH,
    Kind::STRUCT,
    Kind::BIGNUM,
    Kind::FILE,
    Kind::DATA,
    Kind::SYMBOL,
    Kind::IMEMO,
    Kind::MATCH,
    Kind::ZOMBIE,
];

fn object(writer: &mut dyn Writer, tables: &mut Tables, random: &mut Random) -> io::Result<()> {
    let kind = random.pick(&KINDS);
    let some_name = random.name(tables);
    let bytes = random.pick(&HOSTILE).repeat(random.below(4) as usize);
    let detail = detail(kind, tables, random, &bytes);
    let site =
        Site { file: some_name, line: random.below(3) as u32, method: random.maybe(some_name) };
    let caller = Site { line: 1 + random.below(3) as u32, ..site };
    let allocation = Allocation {
        site: tables.intern_site(site),
        caller: random.maybe(tables.intern_site(caller)),
        generation: random.below(1000),
        time: random.below(2) * 1_700_000_000_000_000,
    };
    let mut fields = Vec::new();
    for number in 0..random.below(3) {
        let name = random.pick(&["lambda", "arity", "hash", "x\"y"]);
        fields.push(Field {
            name: tables.intern(&format!("{name}{number}")),
            value: match random.below(3) {
                0 => Value::Json(tables.intern("{\"a\":[1,\"b\"]}")),
                1 => Value::Name(random.name(tables)),
                _ => random.value(tables),
            },
        });
    }
    // The flag for shared contents is written only for these types.
    let shares = matches!(kind, Kind::STRING | Kind::ARRAY);
    let mask = if shares { 0x1ffff } else { 0x1ffff & !Flags::SHARED.0 };
    let mask = match kind {
        Kind::CLASS | Kind::MODULE | Kind::ICLASS => mask,
        _ => mask & !Flags::SINGLETON.0,
    };
    let object = Object {
        address: random.address(),
        kind,
        class: if random.one_in(5) { 0 } else { random.address() },
        class_name: random.maybe(some_name),
        slot_size: random.pick(&[40, 80, 160]),
        memsize: random.below(1000),
        shape_id: Some(random.below(100) as u32).filter(|id| id % 3 > 0),
        flags: Flags(random.below(1 << 20) as u32 & mask),
        age: Some(random.below(4) as u8).filter(|age| *age > 0),
        object_id: Some(random.below(1000)).filter(|id| id % 5 == 0),
        detail,
        fields: &fields,
        allocation: random.one_in(2).then_some(allocation),
    };
    writer.object(tables, &object)?;
    let mut first = 0;
    for _ in 0..random.below(3) {
        let count = if random.one_in(50) { 5000 } else { random.below(8) };
        edges(writer, tables, random, kind, first..first + count)?;
        first += count;
    }
    writer.end(tables)
}

fn detail<'a>(kind: Kind, tables: &mut Tables, random: &mut Random, bytes: &'a [u8]) -> Detail<'a> {
    let name = random.name(tables);
    let text = Text {
        length: random.maybe(bytes.len() as u64),
        capacity: random.maybe(99),
        encoding: tables.intern(random.pick(&["UTF-8", "", "UTF-16LE"])),
        coderange: random.pick(&[
            CodeRange::Unknown,
            CodeRange::SevenBit,
            CodeRange::Valid,
            CodeRange::Broken,
        ]),
        content: match random.below(5) {
            0 => Content::Truncated(bytes),
            1 => Content::Mark(random.0),
            2 => Content::Absent,
            _ => Content::Full(bytes),
        },
    };
    match kind {
        Kind::STRING => Detail::String(text),
        Kind::SYMBOL => Detail::Symbol(text),
        Kind::REGEXP => Detail::Regexp(text),
        Kind::BIGNUM => Detail::Bignum(text),
        Kind::FLOAT => Detail::Float(f64::from_bits(random.0)),
        Kind::ARRAY | Kind::STRUCT => Detail::Length(random.below(300)),
        Kind::HASH => Detail::Hash {
            size: random.below(300),
            default: random.value(tables),
            default_proc: random.one_in(2),
        },
        Kind::OBJECT => Detail::Object { ivars: random.below(10) },
        Kind::CLASS | Kind::MODULE | Kind::ICLASS => Detail::Class {
            name: random.maybe(name),
            real_name: random.maybe(name),
            superclass: if random.one_in(3) { 0 } else { random.address() },
            super_name: random.maybe(name),
            variations: random.maybe(3),
        },
        Kind::DATA => Detail::Data { type_name: random.maybe(name) },
        Kind::FILE => Detail::File { fd: random.maybe(-1) },
        Kind::IMEMO => Detail::Imemo {
            name: tables.intern("callcache"),
            mid: random.maybe(name),
            called_id: random.maybe(name),
            receiver_class: random.below(2) * 4096,
        },
        _ => Detail::None,
    }
}

/// One call of `edges` with typical labels of this type.
fn edges(
    writer: &mut dyn Writer,
    tables: &mut Tables,
    random: &mut Random,
    kind: Kind,
    numbers: Range<u64>,
) -> io::Result<()> {
    let mut edges = Vec::new();
    let plain = |label, value| Edge { label, value, preview: None };
    for number in numbers {
        match kind {
            Kind::ARRAY => {
                edges.push(plain(Label::Index(number as u32), random.value(tables)));
            }
            Kind::HASH => {
                let key = random.value(tables);
                let preview = matches!(key, Value::Address(_)) && random.one_in(2);
                edges.push(plain(Label::Key, key));
                edges.push(Edge {
                    preview: preview.then(|| random.pick(&HOSTILE)),
                    ..plain(Label::Entry, random.value(tables))
                });
            }
            _ => {
                let name = tables.intern(&format!("n{number}é\""));
                // Ruby's internal ones have no @.
                let at = if number % 5 == 4 { "" } else { "@" };
                let ivar = tables.intern(&format!("{at}n{number}"));
                let class_variable = tables.intern(&format!("@@n{number}"));
                let constant = tables.intern(&format!("N{number}"));
                let label = match kind {
                    Kind::OBJECT => Label::Ivar(ivar),
                    Kind::STRUCT => random.pick(&[Label::Member(name), Label::Ivar(ivar)]),
                    Kind::CLASS | Kind::MODULE => random.pick(&[
                        Label::ClassVariable(class_variable),
                        Label::Constant(constant),
                        Label::Method(name),
                        Label::Role(name),
                    ]),
                    _ => random.pick(&[Label::None, Label::Local(name), Label::Role(name)]),
                };
                let value = match label {
                    Label::None => Value::Address(random.address()),
                    _ => random.value(tables),
                };
                edges.push(plain(label, value));
            }
        }
    }
    writer.edges(tables, &edges)
}

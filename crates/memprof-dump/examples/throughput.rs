//! Measures the cost of each format per object: time of the dumping thread, and bytes.
//!
//! `throughput [OBJECTS [FORMAT]]` generates a heap like a web application's: strings, arrays, hashes, objects with instance
//! variables, internal objects of the VM.

use std::fs::File;
use std::io;
use std::time::Instant;

use memprof_dump::record::{
    CodeRange, Content, Detail, Edge, Flags, Kind, Label, NameId, Object, Tables, Text, Value,
};
use memprof_dump::{Compression, Format, Options, Writer, create};

struct Names {
    string: NameId,
    array: NameId,
    hash: NameId,
    models: Vec<NameId>,
    ivars: Vec<NameId>,
    encoding: NameId,
    imemo: NameId,
    symbol: NameId,
}

fn main() -> io::Result<()> {
    let count = std::env::args().nth(1).and_then(|count| count.parse().ok());
    let count = count.unwrap_or(1_000_000);
    for (format, compression) in [
        (Format::Objspace, Compression::None),
        (Format::Memprof, Compression::None),
        (Format::Memprof, Compression::Zstd),
        (Format::Binary, Compression::None),
    ] {
        if std::env::args().nth(2).is_some_and(|only| only != format.name()) {
            continue;
        }
        let file = output()?;
        let options = Options { format, compression, ruby: (3, 4) };
        let mut dump = create(file, options)?;
        let mut tables = Tables::default();
        let names = names(&mut tables);
        let begin = Instant::now();
        let busy = busy();
        heap(&mut dump, &tables, &names, count)?;
        let made = (self::busy() - busy) / count as f64;
        dump.finish(&tables, true)?;
        let all = begin.elapsed().as_nanos() as f64 / count as f64;
        let bytes = dump.bytes() as f64 / count as f64;
        let name = format.name();
        println!(
            "{name:9} {compression:?}: {made:6.1} ns, until written {all:6.1} ns, {bytes:5.1} bytes"
        );
    }
    Ok(())
}

/// `/dev/null` unless file output is to be measured.
fn output() -> io::Result<File> {
    File::create(std::env::var("OUTPUT").unwrap_or_else(|_| "/dev/null".to_owned()))
}

/// Nanoseconds of CPU time of this thread, which exclude other load on the machine.
fn busy() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().unwrap_or("");
    first.parse().unwrap_or(0.0)
}

fn names(tables: &mut Tables) -> Names {
    let mut all = |texts: &str| texts.split(' ').map(|text| tables.intern(text)).collect();
    Names {
        models: all("User Order Product Cart::Item Session Price Account::Setting"),
        ivars: all("@id @name @attributes @association_cache @created_at @new_record"),
        string: tables.intern("String"),
        array: tables.intern("Array"),
        hash: tables.intern("Hash"),
        encoding: tables.intern("UTF-8"),
        imemo: tables.intern("callcache"),
        symbol: tables.intern("status"),
    }
}

fn edge(label: Label, value: Value) -> Edge<'static> {
    Edge { label, value, preview: None }
}

fn heap(dump: &mut impl Writer, tables: &Tables, names: &Names, count: u64) -> io::Result<()> {
    let mut random = 1_u64;
    let mut edges = Vec::new();
    let base = 0x7f12_3400_0000_u64;
    let texts: Vec<String> =
        (0..997).map(|number| format!("some text {}", number * number)).collect();
    for number in 0..count {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let dice = (random >> 33) % 100;
        let near = |step: u64| Value::Address(base + 40 * (number + step + (random >> 50) % 64));
        edges.clear();
        let content = &texts[(random >> 44) as usize % texts.len()];
        let string = Text {
            length: Some(content.len() as u64),
            capacity: None,
            encoding: names.encoding,
            coderange: CodeRange::SevenBit,
            content: Content::Full(content.as_bytes()),
        };
        let (kind, class_name, detail) = match dice {
            0..45 => (Kind::STRING, Some(names.string), Detail::String(string)),
            45..60 => {
                edges.extend((0..3).map(|index| edge(Label::Index(index), near(index.into()))));
                (Kind::ARRAY, Some(names.array), Detail::Length(3))
            }
            60..70 => {
                edges.push(edge(Label::Key, Value::Symbol(names.symbol)));
                edges.push(edge(Label::Entry, near(1)));
                edges.push(edge(Label::Key, near(2)));
                edges.push(Edge { preview: Some(b"user:42"), ..edge(Label::Entry, near(3)) });
                let detail = Detail::Hash { size: 2, default: Value::Nil, default_proc: false };
                (Kind::HASH, Some(names.hash), detail)
            }
            70..85 => {
                let ivars = names.ivars.iter().take(3).enumerate();
                edges.extend(ivars.map(|(place, name)| match place {
                    0 => edge(Label::Ivar(*name), Value::Int(number as i64)),
                    _ => edge(Label::Ivar(*name), near(place as u64)),
                }));
                let model = names.models[(random >> 40) as usize % names.models.len()];
                (Kind::OBJECT, Some(model), Detail::Object { ivars: 3 })
            }
            _ => {
                edges.extend((0..2).map(|step| edge(Label::None, near(step * 100))));
                let detail = Detail::Imemo {
                    name: names.imemo,
                    mid: None,
                    called_id: None,
                    receiver_class: 0,
                };
                (Kind::IMEMO, None, detail)
            }
        };
        let class = class_name.map_or(0, |name| 0x7f12_0000_0000 + 40 * u64::from(name.0));
        let object = Object {
            address: base + 40 * number,
            kind,
            class,
            class_name,
            slot_size: 40,
            memsize: if dice % 10 == 0 { 40 + (random >> 55) } else { 40 },
            shape_id: Some(u32::from(kind.0)),
            flags: Flags(Flags::WB_PROTECTED.0 | Flags::OLD.0 | Flags::MARKED.0),
            age: None,
            object_id: None,
            detail,
            fields: &[],
            allocation: None,
        };
        dump.object(tables, &object)?;
        dump.edges(tables, &edges)?;
        dump.end(tables)?;
    }
    Ok(())
}

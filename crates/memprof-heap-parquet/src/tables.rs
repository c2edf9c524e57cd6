//! The tables of objects and edges.

use std::collections::HashMap;
use std::io::{self, Write};

use memprof_analysis::export::{self, Counts, table};
use memprof_dump::record::NoteKind;
use memprof_heap::Heap;
use parquet::data_type::ByteArray;

use crate::columns::{Column, Table};

const OBJECTS: &str = "message objects {
  required int64 id;
  required int64 address;
  optional binary type (STRING);
  optional binary class (STRING);
  required int64 size;
  required int64 retained;
  optional int64 dominator;
  optional int64 generation;
  optional binary file (STRING);
  optional int64 line;
  optional binary flags (STRING);
  optional int64 length;
  optional binary dump_id (STRING);
  optional binary host (STRING);
  optional int64 pid;
  optional int64 time (TIMESTAMP(MICROS,true));
}";

const EDGES: &str = "message edges {
  required int64 from;
  required int64 to;
  optional binary label (STRING);
  optional binary dump_id (STRING);
}";

/// Options of the export.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'o> {
    /// The part of the heap to export.
    pub part: export::Options<'o>,
    /// Tells this dump's rows from other dumps' rows. `None`: host, process and time, or the file name of the dump.
    pub dump_id: Option<&'o str>,
}

/// Repeated texts, each in memory once.
#[derive(Default)]
struct Texts(HashMap<String, ByteArray>);

impl Texts {
    fn get(&mut self, text: &str) -> ByteArray {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let bytes = ByteArray::from(text);
        self.0.insert(text.to_owned(), bytes.clone());
        bytes
    }
}

/// The origin of a dump.
struct Origin {
    dump_id: ByteArray,
    host: Option<ByteArray>,
    pid: Option<i64>,
    /// Microseconds since the epoch.
    time: Option<i64>,
}

impl Origin {
    fn of(heap: &Heap, dump_id: Option<&str>) -> Origin {
        let header = heap.notes().iter().find(|(kind, _)| *kind == NoteKind::Header);
        let header =
            header.and_then(|(_, json)| serde_json::from_str::<serde_json::Value>(json).ok());
        let header = header.unwrap_or_default();
        let (host, pid) = (header["hostname"].as_str(), header["pid"].as_i64());
        let time = header["time_us"].as_i64();
        let id = match (dump_id, host, pid, time) {
            (Some(id), ..) => id.to_owned(),
            (None, Some(host), Some(pid), Some(time)) => format!("{host}-{pid}-{time}"),
            _ => {
                let name = heap.source.path.as_deref().and_then(|path| path.file_name());
                name.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
            }
        };
        Origin { dump_id: ByteArray::from(&*id), host: host.map(ByteArray::from), pid, time }
    }
}

/// Clamps numbers beyond 63 bits, which occur only in broken dumps.
fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Writes both tables.
///
/// # Errors
/// If writing to an output fails or the index of the heap cannot be read.
pub fn write(
    heap: &Heap,
    options: &Options<'_>,
    objects: impl Write + Send,
    edges: impl Write + Send,
) -> io::Result<Counts> {
    let table = table::Table::new(heap, &options.part)?;
    let origin = Origin::of(heap, options.dump_id);
    write_objects(heap, &table, &origin, objects)?;
    let references = write_edges(&table, &origin, edges)?;
    Ok(Counts { references, ..table.counts() })
}

fn write_objects(
    heap: &Heap,
    table: &table::Table<'_>,
    origin: &Origin,
    out: impl Write + Send,
) -> io::Result<()> {
    let (numbers, known, texts) =
        (|| Column::Numbers(vec![]), || Column::Known(vec![]), || Column::Texts(vec![]));
    let columns = vec![
        numbers(),
        numbers(),
        texts(),
        texts(),
        numbers(),
        numbers(),
        known(),
        known(),
        texts(),
        known(),
        texts(),
        known(),
        texts(),
        texts(),
        known(),
        known(),
    ];
    let mut file = Table::new(out, OBJECTS, columns, &["id", "address"])?;
    let mut texts = Texts::default();
    let mut flags: HashMap<u32, ByteArray> = HashMap::new();
    for row in table.objects() {
        let site = row.site;
        let flags = flags.entry(row.flags.0).or_insert_with(|| {
            let names: Vec<&str> = row.flags.names().collect();
            ByteArray::from(&*names.join(" "))
        });
        let values = [
            Value::Number(row.id.into()),
            Value::Number(number(row.address)),
            Value::Text(Some(texts.get(row.kind))),
            Value::Text(Some(texts.get(row.class))),
            Value::Number(number(row.size)),
            Value::Number(number(row.retained)),
            Value::Known(row.dominator.map(i64::from)),
            Value::Known(row.generation.map(i64::from)),
            Value::Text(site.map(|site| texts.get(heap.name(site.file)))),
            Value::Known(site.map(|site| i64::from(site.line)).filter(|&line| line > 0)),
            Value::Text(Some(flags.clone())),
            Value::Known(row.length.map(i64::from)),
            Value::Text(Some(origin.dump_id.clone())),
            Value::Text(origin.host.clone()),
            Value::Known(origin.pid),
            Value::Known(origin.time),
        ];
        push(&mut file, values)?;
    }
    file.finish()
}

fn write_edges(
    table: &table::Table<'_>,
    origin: &Origin,
    out: impl Write + Send,
) -> io::Result<u64> {
    let columns = vec![
        Column::Numbers(vec![]),
        Column::Numbers(vec![]),
        Column::Texts(vec![]),
        Column::Texts(vec![]),
    ];
    let mut file = Table::new(out, EDGES, columns, &["from"])?;
    let mut count = 0;
    table.references(|from, to, label| {
        count += 1;
        let label = (!label.is_empty()).then(|| ByteArray::from(label));
        let values = [
            Value::Number(from.into()),
            Value::Number(to.into()),
            Value::Text(label),
            Value::Text(Some(origin.dump_id.clone())),
        ];
        push(&mut file, values)
    })?;
    file.finish()?;
    Ok(count)
}

/// The value of a cell.
enum Value {
    Number(i64),
    Known(Option<i64>),
    Text(Option<ByteArray>),
}

fn push<W: Write + Send, const N: usize>(
    file: &mut Table<W>,
    values: [Value; N],
) -> io::Result<()> {
    for (column, value) in file.columns.iter_mut().zip(values) {
        match (column, value) {
            (Column::Numbers(column), Value::Number(number)) => column.push(number),
            (Column::Known(column), Value::Known(number)) => column.push(number),
            (Column::Texts(column), Value::Text(text)) => column.push(text),
            _ => return Err(io::Error::other("a cell of another column")),
        }
    }
    file.row()
}

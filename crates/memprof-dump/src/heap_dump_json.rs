//! The JSON array of the heap_dump gem: `[{"id":"_ROOTS_",...}`, each further object on a line that begins with a comma, and
//! a `]`.
//!
//! Where that format is ambiguous, this one is not: ids are addresses (`"0x7f00"`), a Symbol has a colon (`":name"`), a
//! string never replaces its id, and hash entries are pairs, since keys may be anything.

mod heap_dump_object;
mod held;

use std::io;

use super::large;
use super::record::{Counts, Edge, NoteKind, Object, Shape, Tables};
use super::record_counter::Tally;
use super::sink::Sink;
use super::text;
use super::writer::Writer;
use held::Held;

/// Writes the format.
pub struct HeapDumpJson {
    sink: Sink,
    bytes: u64,
    tally: Tally,
    held: Held,
    /// Content of the first line, until it is written.
    roots: Option<Roots>,
}

#[derive(Default)]
struct Roots {
    header: Option<String>,
    /// The note on global variables.
    globals: serde_json::Value,
    /// Ids by category, each after a comma.
    categories: Vec<(String, Vec<u8>)>,
}

impl HeapDumpJson {
    /// Writes to `sink`.
    pub fn new(sink: Sink) -> HeapDumpJson {
        HeapDumpJson {
            sink,
            bytes: 0,
            tally: Tally::default(),
            held: Held::default(),
            roots: Some(Roots::default()),
        }
    }

    /// Bytes written to the file; known when the dump is finished.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes the first line before all others.
    #[inline]
    fn begin(&mut self) -> io::Result<()> {
        match self.roots.take() {
            Some(roots) => {
                roots.write(self.sink.buffer());
                self.sink.passed()
            }
            None => Ok(()),
        }
    }
}

impl Roots {
    /// The machine stack and registered addresses have their traditional keys; other categories use their names.
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"[{\"id\":\"_ROOTS_\"");
        for (key, category) in [("stack", "machine_context"), ("globals", "global_list")] {
            text::string_field(out, ",", key);
            out.push(b':');
            let mut categories = self.categories.iter();
            let ids = categories.find(|(name, _)| name == category);
            list(out, ids.map_or(&[], |(_, ids)| ids));
        }
        out.extend_from_slice(b",\"global_tbl\":{");
        self.global_table(out);
        out.extend_from_slice(b"},\"roots\":{");
        let others = self.categories.iter();
        let is_other =
            |(name, _): &&(String, Vec<u8>)| name != "machine_context" && name != "global_list";
        for (place, (category, ids)) in others.filter(is_other).enumerate() {
            text::string_field(out, if place > 0 { "," } else { "" }, category);
            out.push(b':');
            list(out, ids);
        }
        out.push(b'}');
        if let Some(header) = &self.header {
            out.extend_from_slice(b",\"header\":");
            out.extend_from_slice(header.as_bytes());
        }
        out.extend_from_slice(b"}\n");
    }

    fn global_table(&self, out: &mut Vec<u8>) {
        let Some(variables) = self.globals["variables"].as_object() else {
            return;
        };
        for (place, (name, value)) in variables.iter().enumerate() {
            // The note has the names in memprof's traditional form, `:$name`.
            let name = name.strip_prefix(':').unwrap_or(name);
            text::string_field(out, if place > 0 { "," } else { "" }, name);
            out.extend_from_slice(b":{\"data\":");
            out.extend_from_slice(value.to_string().as_bytes());
            out.push(b'}');
        }
    }
}

/// A list of items that each start with a comma.
fn list(out: &mut Vec<u8>, items: &[u8]) {
    out.push(b'[');
    out.extend_from_slice(items.get(1..).unwrap_or(&[]));
    out.push(b']');
}

impl Writer for HeapDumpJson {
    /// The header and the global variables go to the first line. The format has no place for other notes.
    fn note(&mut self, _: &Tables, kind: NoteKind, json: &str) -> io::Result<()> {
        if let Some(roots) = &mut self.roots {
            match kind {
                NoteKind::Header => roots.header = Some(json.to_owned()),
                NoteKind::Globals => roots.globals = serde_json::from_str(json)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn roots(&mut self, _: &Tables, category: &str, edges: &[Edge<'_>]) -> io::Result<()> {
        let Some(roots) = &mut self.roots else {
            return Err(io::Error::other("roots behind objects"));
        };
        let place = roots.categories.iter().position(|(name, _)| name == category);
        let place = place.unwrap_or_else(|| {
            roots.categories.push((category.to_owned(), Vec::new()));
            roots.categories.len() - 1
        });
        let ids = &mut roots.categories[place].1;
        for edge in edges {
            if let Some(address) = self.tally.root(edge) {
                ids.push(b',');
                text::address(ids, address);
            }
        }
        Ok(())
    }

    /// Shapes are newer than this format.
    fn shape(&mut self, _: &Tables, _: &Shape) -> io::Result<()> {
        Ok(())
    }

    fn object(&mut self, tables: &Tables, object: &Object<'_>) -> io::Result<()> {
        self.begin()?;
        self.tally.object(object);
        self.held.object(object.kind);
        match large::split(object) {
            None => heap_dump_object::head(self.sink.buffer(), tables, object),
            Some((small, bytes)) => {
                let start = self.sink.buffer().len();
                heap_dump_object::head(self.sink.buffer(), tables, &small);
                large::write(&mut self.sink, start, ",\"val\":", bytes, true)?;
            }
        }
        Ok(())
    }

    fn edges(&mut self, tables: &Tables, edges: &[Edge<'_>]) -> io::Result<()> {
        for edge in edges {
            let reference = self.tally.reference(edge).is_some();
            self.held.edge(self.sink.buffer(), tables, edge, reference);
        }
        self.held.passed()?;
        self.sink.passed()
    }

    fn end(&mut self, _: &Tables) -> io::Result<()> {
        self.held.end(&mut self.sink)?;
        self.sink.buffer().extend_from_slice(b"}\n");
        self.sink.passed()
    }

    fn finish(&mut self, _: &Tables, whole: bool) -> io::Result<Counts> {
        self.begin()?;
        if whole {
            self.sink.buffer().extend_from_slice(b"]\n");
        }
        self.bytes = self.sink.close()?;
        Ok(self.tally.counts)
    }
}

#[cfg(test)]
mod tests;

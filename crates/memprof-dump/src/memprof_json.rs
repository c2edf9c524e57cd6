//! memprof's own JSON lines: one object per line, with memprof's classic keys, every fact, and a label for each reference.
//!
//! A line has the facts known when the object begins, then its contents, then the rest. The contents come in pieces: values
//! of the type's own container go to the file at once, references, labels and other containers are buffered until the line
//! ends.

mod edge_writer;
mod object_writer;

use std::fs::File;
use std::io;

use super::format::Compression;
pub(super) use super::kinds::from_lower as kind_of;
use super::large;
use super::record::{Counts, Edge, NoteKind, Object, Shape, Tables};
use super::record_counter::Tally;
use super::sink::Sink;
use super::text;
use super::worker::Worker;
use super::writer::{LiveWriter, Writer};
use edge_writer::Edges;
pub(super) use edge_writer::{item, value};
use object_writer::Parts;
pub(super) use object_writer::{bytes_field, is_taken};

/// Version of the format, in its header.
const VERSION: u32 = 1;

/// Writes the format.
pub struct MemprofJson {
    sink: Sink,
    bytes: u64,
    tally: Tally,
    edges: Edges,
    /// Name of the open root line.
    category: Option<String>,
    /// Facts of the open line, to be written after the object's contents.
    tail: Vec<u8>,
    parts: Parts,
    code: u8,
}

impl MemprofJson {
    /// Writes to `sink`.
    pub fn new(sink: Sink) -> MemprofJson {
        MemprofJson {
            sink,
            bytes: 0,
            tally: Tally::default(),
            edges: Edges::default(),
            category: None,
            tail: Vec::new(),
            parts: Parts::default(),
            code: 0,
        }
    }

    /// Like [`MemprofJson::new`], for the current position of a file.
    ///
    /// # Errors
    /// If the writer thread could not be started.
    pub fn create(file: File, compression: Compression, worker: Worker) -> io::Result<Self> {
        Ok(MemprofJson::new(Sink::by(file, compression, worker)?))
    }

    /// Bytes written to the file; known when the dump is finished.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn close_roots(&mut self) -> io::Result<()> {
        if self.category.take().is_some() {
            self.edges.references(&mut self.sink)?;
            self.sink.buffer().extend_from_slice(b"}\n");
        }
        Ok(())
    }
}

const NOTES: [(NoteKind, &str); 7] = [
    (NoteKind::Header, "header"),
    (NoteKind::Finalizers, "finalizers"),
    (NoteKind::Globals, "globals"),
    (NoteKind::Frame, "frame"),
    (NoteKind::Lsof, "lsof"),
    (NoteKind::Ps, "ps"),
    (NoteKind::Footer, "footer"),
];

/// The `_id` and `type` of a note.
fn note_name(kind: NoteKind) -> &'static str {
    let mut notes = NOTES.iter();
    notes.find(|(note, _)| *note == kind).map_or("", |(_, name)| name)
}

/// The note with this `type`.
pub(super) fn note_kind(name: &str) -> Option<NoteKind> {
    let mut notes = NOTES.iter();
    notes.find(|(_, note)| *note == name).map(|(kind, _)| *kind)
}
impl Writer for MemprofJson {
    /// Skips the footer: it is written when the dump is finished.
    fn note(&mut self, _: &Tables, kind: NoteKind, json: &str) -> io::Result<()> {
        self.close_roots()?;
        if kind == NoteKind::Footer {
            return Ok(());
        }
        let out = self.sink.buffer();
        let fields = json.trim_start().strip_prefix('{').unwrap_or(json);
        if !fields.trim_start().starts_with("\"_id\"") {
            let name = note_name(kind);
            text::string_field(out, "{\"_id\":", name);
            text::string_field(out, ",\"type\":", name);
            if kind == NoteKind::Header {
                text::field(out, ",\"format\":\"memprof\",\"version\":", VERSION);
            }
            if !fields.trim_start().starts_with('}') {
                out.push(b',');
            }
            out.extend_from_slice(fields.as_bytes());
        } else {
            out.extend_from_slice(json.as_bytes());
        }
        out.push(b'\n');
        self.sink.passed()
    }

    fn roots(&mut self, tables: &Tables, category: &str, edges: &[Edge<'_>]) -> io::Result<()> {
        if self.category.as_deref() != Some(category) {
            self.close_roots()?;
            self.category = Some(category.to_owned());
            let out = self.sink.buffer();
            out.extend_from_slice(b"{\"_id\":\"root:");
            text::escape(out, category);
            text::string_field(out, "\",\"type\":\"root\",\"root\":", category);
            self.edges.root();
        }
        for edge in edges {
            if let Some(address) = self.tally.root(edge) {
                self.edges.reference(tables, edge, address)?;
            }
        }
        Ok(())
    }

    fn shape(&mut self, tables: &Tables, shape: &Shape) -> io::Result<()> {
        self.close_roots()?;
        self.tally.counts.shapes += 1;
        object_writer::shape(self.sink.buffer(), tables, shape);
        self.sink.passed()
    }

    #[inline]
    fn object(&mut self, tables: &Tables, object: &Object<'_>) -> io::Result<()> {
        self.close_roots()?;
        self.tally.object(object);
        self.code = object.kind.0;
        self.edges.object(object);
        match large::split(object) {
            None => object_writer::head(self.sink.buffer(), &mut self.parts, tables, object),
            Some((small, bytes)) => {
                let start = self.sink.buffer().len();
                object_writer::head(self.sink.buffer(), &mut self.parts, tables, &small);
                large::write(&mut self.sink, start, ",\"data\":", bytes, true)?;
            }
        }
        self.tail.clear();
        object_writer::tail(&mut self.tail, &mut self.parts, tables, object);
        Ok(())
    }

    #[inline]
    fn edges(&mut self, tables: &Tables, edges: &[Edge<'_>]) -> io::Result<()> {
        for edge in edges {
            self.edges.value(self.sink.buffer(), tables, edge);
            if let Some(address) = self.tally.reference(edge) {
                self.edges.reference(tables, edge, address)?;
            }
        }
        self.edges.passed()?;
        self.sink.passed()
    }

    #[inline]
    fn end(&mut self, _: &Tables) -> io::Result<()> {
        self.edges.containers(&mut self.sink)?;
        self.sink.buffer().extend_from_slice(&self.tail);
        self.edges.references(&mut self.sink)?;
        let out = self.sink.buffer();
        text::field(out, ",\"code\":", self.code);
        out.extend_from_slice(b"}\n");
        self.sink.passed()
    }

    fn finish(&mut self, _: &Tables, whole: bool) -> io::Result<Counts> {
        self.close_roots()?;
        if whole {
            let out = self.sink.buffer();
            object_writer::footer(out, &self.tally.counts);
        }
        self.bytes = self.sink.close()?;
        Ok(self.tally.counts)
    }
}

impl LiveWriter for MemprofJson {}

#[cfg(test)]
mod tests;

//! The lines of Ruby's `ObjectSpace.dump_all`: with the keys, order and values of the given Ruby version. Where its output
//! would not be valid JSON (quotes in paths), the text is escaped.
//!
//! Skips everything that these lines have no place for: notes, labels, values that are not references.

mod detail;
mod encodings;
mod templates;

use std::fs::File;
use std::io;

use super::chunks::Chunks;
use super::format::Compression;
pub(super) use super::kinds::from_upper as kind_of;
use super::large;
use super::record::{Counts, Edge, Kind, NoteKind, Object, Shape, Tables, Value};
use super::record_counter::Tally;
use super::sink::Sink;
use super::text;
use super::worker::Worker;
use super::writer::{LiveWriter, TemplateId, Writer};
use encodings::Encodings;
use templates::Templates;

/// Writes the format.
pub struct ObjspaceJson {
    sink: Sink,
    bytes: u64,
    tally: Tally,
    ruby: (u8, u8),
    /// Name of the open root line.
    category: Option<String>,
    class: u64,
    /// Whether the line ends before references.
    short: bool,
    /// Whether the object has no line: a free malloc block, which readers of the format would count as used.
    skipped: bool,
    references: bool,
    /// Text after the references.
    tail: Vec<u8>,
    /// In place of the tail, for an object that adds nothing to its template: its memsize, and the template's number.
    template: Option<(u64, TemplateId)>,
    heads: Chunks,
    flags: Chunks,
    encodings: Encodings,
    templates: Templates,
}

impl ObjspaceJson {
    /// Writes lines like those of Ruby version `ruby`.
    pub fn new(sink: Sink, ruby: (u8, u8)) -> ObjspaceJson {
        ObjspaceJson {
            sink,
            bytes: 0,
            tally: Tally::default(),
            ruby,
            category: None,
            class: 0,
            short: false,
            skipped: false,
            references: false,
            tail: Vec::new(),
            template: None,
            heads: Chunks::default(),
            flags: Chunks::default(),
            encodings: Encodings::default(),
            templates: Templates::default(),
        }
    }

    /// Like [`ObjspaceJson::new`], for the current position of a file.
    ///
    /// # Errors
    /// If the writer thread could not be started.
    pub fn create(
        file: File,
        compression: Compression,
        worker: Worker,
        ruby: (u8, u8),
    ) -> io::Result<Self> {
        Ok(ObjspaceJson::new(Sink::by(file, compression, worker)?, ruby))
    }

    /// Bytes written to the file; known when the dump is finished.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    #[inline]
    fn close_roots(&mut self) {
        if self.category.is_some() {
            self.category = None;
            self.sink.buffer().extend_from_slice(b"]}\n");
        }
    }

    /// The start of every object's line.
    #[inline(always)]
    fn begin(&mut self, object: &Object<'_>) {
        self.close_roots();
        self.tally.object(object);
        self.class = object.class;
        self.short = matches!(object.kind, Kind::NONE | Kind::ZOMBIE);
        self.references = false;
        self.tail.clear();
        self.template = None;
        let out = self.sink.buffer();
        out.extend_from_slice(b"{\"address\":");
        text::address(out, object.address);
    }

    /// The line of an object, up to its references.
    #[inline]
    fn line(&mut self, tables: &Tables, object: &Object<'_>) -> io::Result<()> {
        let ruby = self.ruby;
        self.begin(object);
        let out = self.sink.buffer();
        detail::head(out, &mut self.heads, object, ruby);
        if !self.short {
            detail::detail(out, tables, &mut self.encodings, object, ruby);
            detail::tail(&mut self.tail, &mut self.flags, tables, object, ruby);
        }
        Ok(())
    }

    /// The line of an object with a large string. Its bytes also decide whether it is written.
    #[cold]
    fn large(&mut self, tables: &Tables, mut small: Object<'_>, bytes: &[u8]) -> io::Result<()> {
        if !bytes.is_ascii() {
            large::replace_content(&mut small, large::NOT_ASCII);
        }
        let start = self.sink.buffer().len();
        self.line(tables, &small)?;
        large::write(&mut self.sink, start, ", \"value\":", bytes, false)
    }

    #[inline(always)]
    fn reference(&mut self, edge: &Edge<'_>) {
        self.tally.reference(edge);
        let address = match edge.value {
            Value::Address(address) if address != self.class => address,
            _ => return,
        };
        let out = self.sink.buffer();
        if self.references {
            out.extend_from_slice(b", ");
        } else {
            out.extend_from_slice(b", \"references\":[");
            self.references = true;
        }
        text::address(out, address);
    }
}

impl Writer for ObjspaceJson {
    fn note(&mut self, _: &Tables, _: NoteKind, _: &str) -> io::Result<()> {
        self.close_roots();
        Ok(())
    }

    fn roots(&mut self, _: &Tables, category: &str, edges: &[Edge<'_>]) -> io::Result<()> {
        for edge in edges {
            let Some(address) = self.tally.root(edge) else {
                continue;
            };
            if self.category.as_deref() == Some(category) {
                self.sink.buffer().extend_from_slice(b", ");
            } else {
                self.close_roots();
                self.category = Some(category.to_owned());
                let out = self.sink.buffer();
                text::string_field(out, "{\"type\":\"ROOT\", \"root\":", category);
                out.extend_from_slice(b", \"references\":[");
            }
            text::address(self.sink.buffer(), address);
        }
        self.sink.passed()
    }

    fn shape(&mut self, tables: &Tables, shape: &Shape) -> io::Result<()> {
        self.close_roots();
        self.tally.counts.shapes += 1;
        detail::shape(self.sink.buffer(), tables, shape);
        self.sink.passed()
    }

    #[inline]
    fn object(&mut self, tables: &Tables, object: &Object<'_>) -> io::Result<()> {
        self.skipped = object.is_free_block(tables);
        if self.skipped {
            return Ok(());
        }
        match large::split(object) {
            None => self.line(tables, object),
            Some((small, bytes)) => self.large(tables, small, bytes),
        }
    }

    #[inline]
    fn edges(&mut self, _: &Tables, edges: &[Edge<'_>]) -> io::Result<()> {
        if self.short {
            return Ok(());
        }
        for edge in edges {
            self.reference(edge);
        }
        self.sink.passed()
    }

    #[inline]
    fn end(&mut self, _: &Tables) -> io::Result<()> {
        if self.skipped {
            return Ok(());
        }
        let out = self.sink.buffer();
        if self.references {
            out.push(b']');
        }
        if let Some((memsize, template)) = self.template {
            detail::memsize(out, memsize);
            out.extend_from_slice(self.templates.flags(template));
        } else if !self.short {
            out.extend_from_slice(&self.tail);
        }
        out.extend_from_slice(b"}\n");
        self.sink.passed()
    }

    fn finish(&mut self, _: &Tables, _whole: bool) -> io::Result<Counts> {
        self.close_roots();
        self.bytes = self.sink.close()?;
        Ok(self.tally.counts)
    }
}

impl LiveWriter for ObjspaceJson {
    const ONE_BY_ONE: bool = true;
    const LABELS: bool = false;

    #[inline(always)]
    fn object_from_template(
        &mut self,
        tables: &Tables,
        template: TemplateId,
        object: &Object<'_>,
    ) -> io::Result<()> {
        // Each of these adds something to the tail.
        let own = object.allocation.is_some() || object.object_id.is_some();
        if own || large::split(object).is_some() {
            return self.object(tables, object);
        }
        let ruby = self.ruby;
        self.skipped = false;
        self.begin(object);
        let out = self.sink.buffer();
        out.extend_from_slice(self.templates.head(template, object, ruby));
        detail::detail(out, tables, &mut self.encodings, object, ruby);
        self.template = Some((object.memsize, template));
        Ok(())
    }

    #[inline(always)]
    fn edge(&mut self, _: &Tables, edge: Edge<'_>) -> io::Result<()> {
        if self.short {
            return Ok(());
        }
        self.reference(&edge);
        self.sink.passed()
    }
}

#[cfg(test)]
mod tests;

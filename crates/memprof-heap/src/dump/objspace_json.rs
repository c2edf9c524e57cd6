//! The lines of Ruby's `ObjectSpace.dump_all`: its keys, in its order, with its values, as the given version of Ruby
//! writes them. Where that would be no valid JSON (quotes in paths), the text is escaped.
//!
//! What these lines have no place for is left out: notes, labels, values that are no references.

mod detail;

use std::io;

pub(super) use detail::{kind as kind_name, kind_of};

use super::chunks::Chunks;
use super::record::{Counts, Edge, Kind, NoteKind, Object, Shape, Tables, Value};
use super::sink::Sink;
use super::tally::Tally;
use super::text;
use super::writer::Writer;

/// Writes the format.
pub struct ObjspaceJson {
    sink: Sink,
    bytes: u64,
    tally: Tally,
    ruby: (u8, u8),
    /// Name of the root line that is open.
    category: Option<String>,
    class: u64,
    /// True if the line ends before references.
    short: bool,
    references: bool,
    /// What comes behind the references.
    tail: Vec<u8>,
    heads: Chunks,
    tails: Chunks,
}

impl ObjspaceJson {
    /// Lines as Ruby `ruby` writes them.
    pub fn new(sink: Sink, ruby: (u8, u8)) -> ObjspaceJson {
        ObjspaceJson {
            sink,
            bytes: 0,
            tally: Tally::default(),
            ruby,
            category: None,
            class: 0,
            short: false,
            references: false,
            tail: Vec::new(),
            heads: Chunks::default(),
            tails: Chunks::default(),
        }
    }

    /// Bytes that the file got; known when the dump is finished.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn close_roots(&mut self) {
        if self.category.take().is_some() {
            self.sink.buffer().extend_from_slice(b"]}\n");
        }
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
        self.close_roots();
        self.tally.object(object);
        self.class = object.class;
        self.short = matches!(object.kind, Kind::NONE | Kind::ZOMBIE);
        self.references = false;
        let out = self.sink.buffer();
        out.extend_from_slice(b"{\"address\":");
        text::address(out, object.address);
        detail::head(out, &mut self.heads, object, self.ruby);
        if !self.short {
            detail::detail(out, tables, object, self.ruby);
            self.tail.clear();
            detail::tail(&mut self.tail, &mut self.tails, tables, object, self.ruby);
        }
        Ok(())
    }

    #[inline]
    fn edges(&mut self, _: &Tables, edges: &[Edge<'_>]) -> io::Result<()> {
        if self.short {
            return Ok(());
        }
        for edge in edges {
            self.tally.reference(edge);
            let address = match edge.value {
                Value::Address(address) if address != self.class => address,
                _ => continue,
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
        self.sink.passed()
    }

    #[inline]
    fn end(&mut self, _: &Tables) -> io::Result<()> {
        let out = self.sink.buffer();
        if self.references {
            out.push(b']');
        }
        if !self.short {
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

#[cfg(test)]
mod tests;

//! memprof's binary format: small, fast, lossless. `FORMAT.md` beside `src/` describes it byte by byte.
//!
//! Records are grouped into blocks. A block can be read without the others: it defines everything that it refers to by
//! number. Only a long text may span several. A second thread compresses the blocks.

mod block;
mod decode;
mod edge_encoder;
mod encode;
mod form;
mod object_encoder;
mod out;
mod records;

use std::fs::File;
use std::io;

use super::pipe::Pipe;
use super::record::{
    Content, Counts, Detail, Edge, Label, NoteKind, Object, Shape, Tables, Text, Value,
};
use super::record_counter::Tally;
use super::worker::Worker;
use super::writer::{LiveWriter, TemplateId, Writer};
use block::{BlockCounts, Blocks, Task};
use encode::Interned;
use form::Forms;
use out::Out;

pub(super) use block::{FOOTER, HEADER, Header, MAGIC, RECORDS, VERSION};
pub(super) use records::{Pieces, replay};

/// A block is closed at this size.
const BLOCK: usize = 1024 * 1024;

/// Extra room for a last record.
const SLACK: usize = 64 * 1024;

/// A longer text is written in pieces of this size: a block is in memory before it is written.
const LONG: usize = BLOCK;

/// Edges between checks whether the block is full.
const PIECE: usize = 4096;

/// First number of a record. From [`record::OBJECT`] on it is that plus the number of the object's form.
mod record {
    pub const ROOTS: u8 = 0;
    pub const SHAPE: u8 = 1;
    pub const NOTE: u8 = 2;
    /// Continuation of an object that began in an earlier block.
    pub const MORE: u8 = 3;
    pub const OBJECT: u64 = 4;
    /// In place of the kind of a [`NOTE`]: a piece of the next object's text.
    pub const TEXT: u8 = 6;
}

/// Labels of edges: upper half of an edge's first byte; the lower half is the kind of the value.
mod label {
    pub const NONE: u8 = 0;
    pub const INDEX: u8 = 1;
    /// Index one after the last.
    pub const NEXT: u8 = 2;
    pub const KEY: u8 = 3;
    pub const KEY_PREVIEW: u8 = 4;
    pub const ENTRY: u8 = 5;
    pub const ENTRY_PREVIEW: u8 = 6;
    pub const IVAR: u8 = 7;
    pub const CLASS_VARIABLE: u8 = 8;
    pub const CONSTANT: u8 = 9;
    pub const MEMBER: u8 = 10;
    pub const LOCAL: u8 = 11;
    pub const GLOBAL: u8 = 12;
    pub const METHOD: u8 = 13;
    pub const ROLE: u8 = 14;
    /// The end of the edges.
    pub const END: u8 = 0xf0;
    /// References with label NEXT: their number and addresses.
    pub const RUN: u8 = 0xf1;
}

/// A string's text that is written in pieces. A reader can tell only by its length whether it has all of them.
#[inline(always)]
fn long_text<'a>(object: &Object<'a>) -> Option<&'a [u8]> {
    match object.detail {
        Detail::String(Text { content: Content::Full(text), length: Some(length), .. })
            if text.len() > LONG && text.len() as u64 == length =>
        {
            Some(text)
        }
        _ => None,
    }
}

/// Writes the format.
pub struct Binary {
    /// Bytes of the block, followed by free room.
    block: Vec<u8>,
    /// Number of bytes in use.
    at: usize,
    counts: BlockCounts,
    pipe: Pipe<Blocks>,
    bytes: u64,
    tally: Tally,
    interned: Interned,
    forms: Forms,
    last: Last,
}

/// Base values that distances are relative to.
#[derive(Clone, Copy, Default)]
struct Last {
    /// Whether roots are being written, not an object.
    root: bool,
    /// Address of the object.
    object: u64,
    /// Address after the last object's slot.
    behind: u64,
    reference: u64,
    /// Next index in an array.
    index: u32,
    generation: u64,
    time: u64,
    object_id: u64,
}

impl Binary {
    /// Writes to `file`.
    ///
    /// # Errors
    /// If the second thread could not be started, or the file could not be written.
    pub fn new(file: File, worker: Worker) -> io::Result<Binary> {
        Ok(Binary {
            block: vec![0; BLOCK + SLACK],
            at: 0,
            counts: BlockCounts::default(),
            pipe: Pipe::new(file, worker, Blocks::new)?,
            bytes: 0,
            tally: Tally::default(),
            interned: Interned::default(),
            forms: Forms::default(),
            last: Last::default(),
        })
    }

    /// Bytes written to the file; known when the dump is finished.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn close_block(&mut self) -> io::Result<()> {
        let counts = std::mem::take(&mut self.counts);
        self.interned.next_block();
        self.forms.next_block();
        self.last = Last::default();
        if self.at == 0 {
            return Ok(());
        }
        self.send(Task::Records(counts))
    }

    /// Hands the block over and begins another one.
    fn send(&mut self, task: Task) -> io::Result<()> {
        self.block.truncate(self.at);
        self.pipe.send(&mut self.block, task)?;
        self.at = 0;
        if self.block.capacity() == 0 {
            // Zeroed pages from the system, which cost nothing until touched.
            self.block = vec![0; BLOCK + SLACK];
        } else {
            // A returned buffer already has most of that, to be overwritten.
            self.block.resize(BLOCK + SLACK, 0);
        }
        Ok(())
    }

    #[inline(always)]
    fn byte(&mut self, byte: u8) {
        let mut out = Out::new(&mut self.block, self.at);
        out.push(byte);
        self.at = out.end();
    }

    /// Closes the block if it is full. May only be called between records.
    #[inline(always)]
    fn passed(&mut self) -> io::Result<()> {
        if self.at < BLOCK {
            return Ok(());
        }
        self.close_block()
    }

    /// Writes an object after the pieces of its text; its record then contains just their length.
    #[cold]
    #[inline(never)]
    fn with_pieces(
        &mut self,
        tables: &Tables,
        object: &Object<'_>,
        text: &[u8],
        template: Option<TemplateId>,
    ) -> io::Result<()> {
        for piece in text.chunks(LONG) {
            let mut out = Out::new(&mut self.block, self.at);
            out.push(record::NOTE);
            out.push(record::TEXT);
            out.bytes(piece);
            self.at = out.end();
            self.passed()?;
        }
        let mut object = *object;
        if let Detail::String(text) = &mut object.detail {
            text.content = Content::Absent;
        }
        self.counts.objects += 1;
        self.record(tables, &object, template);
        Ok(())
    }

    /// Closes the block in the middle of an object.
    #[cold]
    fn continue_in_next_block(&mut self) -> io::Result<()> {
        let (object, index) = (self.last.object, self.last.index);
        self.byte(label::END);
        self.close_block()?;
        self.more(object, index);
        Ok(())
    }

    /// Writes edges in pieces; `again` restarts the record in another block.
    fn pieces(
        &mut self,
        tables: &Tables,
        mut edges: &[Edge<'_>],
        again: impl Fn(&mut Binary, u32),
    ) -> io::Result<()> {
        while !edges.is_empty() {
            let mut cut = edges.len().min(PIECE);
            // Keep a key and its entry together.
            while cut < edges.len() && edges[cut].label == Label::Entry {
                cut += 1;
            }
            let (now, later) = edges.split_at(cut);
            self.edge_list(tables, now);
            edges = later;
            if self.at >= BLOCK {
                let index = self.last.index;
                self.byte(label::END);
                self.close_block()?;
                again(self, index);
            }
        }
        Ok(())
    }
}

impl Writer for Binary {
    /// Skips the footer: it is written when the dump is finished.
    fn note(&mut self, _: &Tables, kind: NoteKind, json: &str) -> io::Result<()> {
        if kind == NoteKind::Footer {
            return Ok(());
        }
        let mut out = Out::new(&mut self.block, self.at);
        out.push(record::NOTE);
        out.push(kind as u8);
        out.bytes(json.as_bytes());
        self.at = out.end();
        self.passed()
    }

    fn roots(&mut self, tables: &Tables, category: &str, edges: &[Edge<'_>]) -> io::Result<()> {
        let begin = |binary: &mut Binary, index: u32| {
            let mut out = Out::new(&mut binary.block, binary.at);
            out.push(record::ROOTS);
            out.bytes(category.as_bytes());
            out.varint(index.into());
            binary.at = out.end();
            binary.last.root = true;
            binary.last.reference = 0;
            binary.last.index = index;
        };
        begin(self, 0);
        self.pieces(tables, edges, begin)?;
        self.byte(label::END);
        self.last.root = false;
        self.passed()
    }

    fn shape(&mut self, tables: &Tables, shape: &Shape) -> io::Result<()> {
        self.tally.counts.shapes += 1;
        let mut out = Out::new(&mut self.block, self.at);
        out.push(record::SHAPE);
        out.address(shape.address, 0);
        out.varint(shape.id);
        match shape.parent_id {
            None => out.push(0),
            Some(parent) => {
                out.push(1);
                out.varint(parent);
            }
        }
        out.varint(shape.depth);
        self.interned.name(&mut out, tables, shape.shape_type);
        self.interned.optional_name(&mut out, tables, shape.edge_name);
        out.varint(shape.edges);
        out.varint(shape.memsize);
        self.at = out.end();
        self.passed()
    }

    #[inline]
    fn object(&mut self, tables: &Tables, object: &Object<'_>) -> io::Result<()> {
        self.tally.object(object);
        if let Some(text) = long_text(object) {
            return self.with_pieces(tables, object, text, None);
        }
        self.counts.objects += 1;
        self.record(tables, object, None);
        Ok(())
    }

    #[inline]
    fn edges(&mut self, tables: &Tables, edges: &[Edge<'_>]) -> io::Result<()> {
        if edges.len() <= PIECE && self.at < BLOCK {
            self.edge_list(tables, edges);
            return Ok(());
        }
        let object = self.last.object;
        self.pieces(tables, edges, |binary, index| binary.more(object, index))
    }

    #[inline(always)]
    fn end(&mut self, _: &Tables) -> io::Result<()> {
        self.byte(label::END);
        self.passed()
    }

    fn finish(&mut self, _: &Tables, whole: bool) -> io::Result<Counts> {
        self.close_block()?;
        if whole {
            let counts = self.tally.counts;
            self.send(Task::Footer(counts))?;
        }
        self.bytes = self.pipe.finish()?;
        Ok(self.tally.counts)
    }
}

impl LiveWriter for Binary {
    const ONE_BY_ONE: bool = true;

    #[inline(always)]
    fn object_from_template(
        &mut self,
        tables: &Tables,
        template: TemplateId,
        object: &Object<'_>,
    ) -> io::Result<()> {
        self.tally.object(object);
        if let Some(text) = long_text(object) {
            return self.with_pieces(tables, object, text, Some(template));
        }
        self.counts.objects += 1;
        self.record(tables, object, Some(template));
        Ok(())
    }

    #[inline(always)]
    fn edge(&mut self, tables: &Tables, edge: Edge<'_>) -> io::Result<()> {
        Binary::edge(self, tables, &edge);
        if self.at < BLOCK || edge.label == Label::Key {
            return Ok(());
        }
        self.continue_in_next_block()
    }

    fn run(&mut self, tables: &Tables, index: u32, addresses: &[u64]) -> io::Result<()> {
        if index != self.last.index || addresses.len() < 2 {
            let edges = (index..).zip(addresses).map(|(index, address)| Edge {
                label: Label::Index(index),
                value: Value::Address(*address),
                preview: None,
            });
            return self.edges(tables, &edges.collect::<Vec<_>>());
        }
        let length = addresses.len() as u32;
        self.tally.counts.references += u64::from(length);
        self.counts.references += length;
        self.addresses(addresses.iter().copied());
        if self.at < BLOCK {
            return Ok(());
        }
        self.continue_in_next_block()
    }
}

#[cfg(test)]
mod tests;

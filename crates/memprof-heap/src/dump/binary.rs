//! memprof's binary format: small, fast, without loss. `docs/dump-formats.md` has it byte by byte.
//!
//! Records are put into blocks. A block can be read without the others: what it refers to by number it has defined
//! itself. A second thread compresses the blocks.

mod block;
mod decode;
mod edges;
mod encode;
mod form;
mod object;
mod records;

use std::fs::File;
use std::io;

use super::pipe::Pipe;
use super::record::{Counts, Edge, Label, NoteKind, Object, Shape, Tables};
use super::tally::Tally;
use super::writer::Writer;
use block::{Blocks, Task, Told};
use encode::{Interned, address, bytes, varint};
use form::Forms;

pub(super) use block::{FOOTER, HEADER, Header, MAGIC, RECORDS, VERSION};
pub(super) use records::replay;

/// A block is closed when it has this many bytes.
const BLOCK: usize = 1024 * 1024;

/// Room behind that for a last record.
const SLACK: usize = 64 * 1024;

/// Edges after which it is looked whether the block is full.
const PIECE: usize = 4096;

/// First number of a record. From [`record::OBJECT`] on it is that plus the number of the object's form.
mod record {
    pub const ROOTS: u8 = 0;
    pub const SHAPE: u8 = 1;
    pub const NOTE: u8 = 2;
    /// More of an object that began in an earlier block.
    pub const MORE: u8 = 3;
    pub const OBJECT: u64 = 4;
}

/// Labels of edges: upper half of an edge's first byte; the lower half is the kind of the value.
mod label {
    pub const NONE: u8 = 0;
    pub const INDEX: u8 = 1;
    /// Index that is one more than the last.
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
    /// No edge, but the end of them.
    pub const END: u8 = 0xf0;
    /// References with label NEXT: their number and addresses.
    pub const RUN: u8 = 0xf1;
}

/// Writes the format.
pub struct Binary {
    block: Vec<u8>,
    told: Told,
    pipe: Pipe<Blocks>,
    bytes: u64,
    tally: Tally,
    interned: Interned,
    forms: Forms,
    last: Last,
}

/// What distances are counted from.
#[derive(Clone, Copy, Default)]
struct Last {
    /// Roots are being written, not an object.
    root: bool,
    /// Address of the object.
    object: u64,
    /// Address behind the last object's slot.
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
    /// If the second thread could not be started, or the file not be written to.
    pub fn new(file: File) -> io::Result<Binary> {
        Ok(Binary {
            block: Vec::with_capacity(BLOCK + SLACK),
            told: Told::default(),
            pipe: Pipe::new(file, Blocks::new)?,
            bytes: 0,
            tally: Tally::default(),
            interned: Interned::default(),
            forms: Forms::default(),
            last: Last::default(),
        })
    }

    /// Bytes that the file got; known when the dump is finished.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn close_block(&mut self) -> io::Result<()> {
        let told = std::mem::take(&mut self.told);
        self.interned.next_block();
        self.forms.next_block();
        self.last = Last::default();
        if self.block.is_empty() {
            return Ok(());
        }
        self.pipe.send(&mut self.block, Task::Records(told))
    }

    /// Closes the block if it is full. Between records only.
    #[inline]
    fn passed(&mut self) -> io::Result<()> {
        if self.block.len() < BLOCK {
            return Ok(());
        }
        self.close_block()
    }

    /// Writes edges in pieces; `again` begins the record anew in another block.
    fn pieces(
        &mut self,
        tables: &Tables,
        mut edges: &[Edge<'_>],
        again: impl Fn(&mut Binary, u32),
    ) -> io::Result<()> {
        while !edges.is_empty() {
            let mut cut = edges.len().min(PIECE);
            // A key and its entry stay together.
            while cut < edges.len() && edges[cut].label == Label::Entry {
                cut += 1;
            }
            let (now, later) = edges.split_at(cut);
            self.edge_list(tables, now);
            edges = later;
            if self.block.len() >= BLOCK {
                let index = self.last.index;
                self.block.push(label::END);
                self.close_block()?;
                again(self, index);
            }
        }
        Ok(())
    }
}

impl Writer for Binary {
    /// The footer is left out: it is written when the dump is finished.
    fn note(&mut self, _: &Tables, kind: NoteKind, json: &str) -> io::Result<()> {
        if kind == NoteKind::Footer {
            return Ok(());
        }
        self.block.extend_from_slice(&[record::NOTE, kind as u8]);
        bytes(&mut self.block, json.as_bytes());
        self.passed()
    }

    fn roots(&mut self, tables: &Tables, category: &str, edges: &[Edge<'_>]) -> io::Result<()> {
        let begin = |binary: &mut Binary, index: u32| {
            binary.block.push(record::ROOTS);
            bytes(&mut binary.block, category.as_bytes());
            varint(&mut binary.block, index.into());
            binary.last.root = true;
            binary.last.reference = 0;
            binary.last.index = index;
        };
        begin(self, 0);
        self.pieces(tables, edges, begin)?;
        self.block.push(label::END);
        self.last.root = false;
        self.passed()
    }

    fn shape(&mut self, tables: &Tables, shape: &Shape) -> io::Result<()> {
        self.tally.counts.shapes += 1;
        let out = &mut self.block;
        out.push(record::SHAPE);
        address(out, shape.address, 0);
        varint(out, shape.id);
        match shape.parent_id {
            None => out.push(0),
            Some(parent) => {
                out.push(1);
                varint(out, parent);
            }
        }
        varint(out, shape.depth);
        self.interned.name(out, tables, shape.shape_type);
        self.interned.optional_name(out, tables, shape.edge_name);
        varint(out, shape.edges);
        varint(out, shape.memsize);
        self.passed()
    }

    #[inline]
    fn object(&mut self, tables: &Tables, object: &Object<'_>) -> io::Result<()> {
        self.tally.object(object);
        self.told.objects += 1;
        self.record(tables, object);
        Ok(())
    }

    #[inline]
    fn edges(&mut self, tables: &Tables, edges: &[Edge<'_>]) -> io::Result<()> {
        if edges.len() <= PIECE && self.block.len() < BLOCK {
            self.edge_list(tables, edges);
            return Ok(());
        }
        let object = self.last.object;
        self.pieces(tables, edges, |binary, index| binary.more(object, index))
    }

    #[inline]
    fn end(&mut self, _: &Tables) -> io::Result<()> {
        self.block.push(label::END);
        self.passed()
    }

    fn finish(&mut self, _: &Tables, whole: bool) -> io::Result<Counts> {
        self.close_block()?;
        if whole {
            let counts = self.tally.counts;
            self.pipe.send(&mut self.block, Task::Footer(counts))?;
        }
        self.bytes = self.pipe.finish()?;
        Ok(self.tally.counts)
    }
}

#[cfg(test)]
mod tests;

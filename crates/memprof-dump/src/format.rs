//! The dump formats, and how to begin a dump in one.

use std::fs::File;
use std::io;
use std::str::FromStr;

use super::binary::Binary;
use super::heap_dump_json::HeapDumpJson;
use super::memprof_json::MemprofJson;
use super::objspace_json::ObjspaceJson;
use super::record::{Counts, Edge, NoteKind, Object, Shape, Tables};
use super::sink::Sink;
use super::worker::Worker;
use super::writer::Writer;

/// A format of dumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON lines with memprof's keys and labeled references.
    Memprof,
    /// JSON lines as Ruby's `ObjectSpace.dump_all` writes them.
    Objspace,
    /// memprof's own format, small and fast.
    Binary,
    /// The JSON array of the heap_dump gem.
    HeapDump,
}

/// The compression of a text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Format {
    const NAMES: [(&'static str, Format); 4] = [
        ("memprof", Format::Memprof),
        ("objspace", Format::Objspace),
        ("binary", Format::Binary),
        ("heap_dump", Format::HeapDump),
    ];

    /// Name in the `format:` option.
    pub fn name(self) -> &'static str {
        let mut names = Format::NAMES.iter();
        names.find(|(_, format)| *format == self).map_or("", |(name, _)| name)
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Format, String> {
        named("format", name, &Format::NAMES)
    }
}

impl FromStr for Compression {
    type Err = String;

    fn from_str(name: &str) -> Result<Compression, String> {
        let known =
            [("none", Compression::None), ("gzip", Compression::Gzip), ("zstd", Compression::Zstd)];
        named("compression", name, &known)
    }
}

/// The value of a name, or an error message that lists the known names.
pub(super) fn named<T: Copy>(what: &str, name: &str, known: &[(&str, T)]) -> Result<T, String> {
    if let Some((_, value)) = known.iter().find(|(known, _)| *known == name) {
        return Ok(*value);
    }
    let known: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    Err(format!("unknown {what} {name:?}; expected one of: {}", known.join(", ")))
}

/// Options for writing a dump.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The format.
    pub format: Format,
    /// The compression. [`Format::Binary`] compresses itself and takes only [`Compression::None`].
    pub compression: Compression,
    /// Version of the Ruby whose objspace lines to imitate.
    pub ruby: (u8, u8),
}

/// A dump being written.
pub struct Dump {
    writer: Kind,
}

enum Kind {
    Memprof(Box<MemprofJson>),
    Objspace(Box<ObjspaceJson>),
    Binary(Box<Binary>),
    HeapDump(Box<HeapDumpJson>),
}

/// Begins a dump at the current position of `file`. A second thread writes it.
///
/// # Errors
/// If the compression could not be set up, or the options contradict each other.
pub fn create(file: File, options: Options) -> io::Result<Dump> {
    create_by(file, options, Worker::Thread)
}

/// Like [`create`], with a chosen worker.
///
/// # Errors
/// As for [`create`].
pub fn create_by(file: File, options: Options, worker: Worker) -> io::Result<Dump> {
    let sink = |file| Sink::by(file, options.compression, worker);
    let writer = match options.format {
        Format::Memprof => Kind::Memprof(Box::new(MemprofJson::new(sink(file)?))),
        Format::Objspace => Kind::Objspace(Box::new(ObjspaceJson::new(sink(file)?, options.ruby))),
        Format::Binary if options.compression != Compression::None => {
            let text = "the binary format is compressed by itself; write it without compression";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        Format::Binary => Kind::Binary(Box::new(Binary::new(file, worker)?)),
        Format::HeapDump => Kind::HeapDump(Box::new(HeapDumpJson::new(sink(file)?))),
    };
    Ok(Dump { writer })
}

macro_rules! each {
    ($self:ident, $writer:ident => $call:expr) => {
        match &mut $self.writer {
            Kind::Memprof($writer) => $call,
            Kind::Objspace($writer) => $call,
            Kind::Binary($writer) => $call,
            Kind::HeapDump($writer) => $call,
        }
    };
}

impl Dump {
    /// Bytes written to the file; known when the dump is finished.
    pub fn bytes(&self) -> u64 {
        match &self.writer {
            Kind::Memprof(writer) => writer.bytes(),
            Kind::Objspace(writer) => writer.bytes(),
            Kind::Binary(writer) => writer.bytes(),
            Kind::HeapDump(writer) => writer.bytes(),
        }
    }
}

impl Writer for Dump {
    fn note(&mut self, tables: &Tables, kind: NoteKind, json: &str) -> io::Result<()> {
        each!(self, writer => writer.note(tables, kind, json))
    }

    fn roots(&mut self, tables: &Tables, category: &str, edges: &[Edge<'_>]) -> io::Result<()> {
        each!(self, writer => writer.roots(tables, category, edges))
    }

    fn shape(&mut self, tables: &Tables, shape: &Shape) -> io::Result<()> {
        each!(self, writer => writer.shape(tables, shape))
    }

    fn object(&mut self, tables: &Tables, object: &Object<'_>) -> io::Result<()> {
        each!(self, writer => writer.object(tables, object))
    }

    fn edges(&mut self, tables: &Tables, edges: &[Edge<'_>]) -> io::Result<()> {
        each!(self, writer => writer.edges(tables, edges))
    }

    fn end(&mut self, tables: &Tables) -> io::Result<()> {
        each!(self, writer => writer.end(tables))
    }

    fn finish(&mut self, tables: &Tables, whole: bool) -> io::Result<Counts> {
        each!(self, writer => writer.finish(tables, whole))
    }
}

//! Reads the Ruby heap in an image as the records of a dump: written to a file, in any format, or built into a heap, so that all
//! queries, pages and exports work on a core file.
//! Strings, arrays, hashes, structs and plain objects are read exactly, classes by name; references of other objects are found
//! conservatively, and labeled as such.

mod blocks;
mod details;
mod edges;
mod labels;
mod roots;
mod sizes;
mod string_contents;

use std::cell::OnceCell;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use memprof_dump::record::{Counts, Flags, Kind, NameId, NoteKind, Object as Record, Tables};
use memprof_dump::values::Values;
use memprof_dump::{Options, Writer};
use memprof_heap::graph::BitSet;
use memprof_heap::{self as heap, Builder, Heap, Progress, Source};
use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use crate::analysis::Analysis;
use crate::ruby_heap::{Object, RubyHeap, is_fstring};
use edges::Edges;
use sizes::Sizes;
use string_contents::Contents;

pub(crate) use labels::label;

/// The label of conservative references: words that look like addresses.
pub const CONSERVATIVE: &str = "conservative";
/// Limit on an object's size. Bogus sizes in damaged memory must not make sums too large.
const LARGEST: u64 = 1 << 48;
/// Objects between two checks whether the dump is still wanted.
const STEP: usize = 1024;

/// The contents of a dump or a heap.
pub struct Request<'r> {
    /// How much of the contents to write.
    pub values: Values,
    /// Additional header fields.
    pub header: Map<String, Value>,
    /// Whether malloc blocks are objects, too; objects then have only the bytes of their slots.
    pub blocks: bool,
    /// Writing or building fails soon after this becomes true.
    pub stop: &'r AtomicBool,
}

/// The result of a dump.
#[derive(Debug)]
pub struct Written {
    /// Numbers of records.
    pub counts: Counts,
    /// Bytes of the file.
    pub bytes: u64,
    /// Facts that could not be learned about this build of Ruby.
    pub unknown: Vec<&'static str>,
    /// Whether a part of the image is missing, so that the dump is marked as truncated.
    pub truncated: bool,
}

/// The format of heaps built from an image.
const FORMAT: &str = "image";

/// Dumps the Ruby heap in an image. Without Ruby, blocks alone are a heap, if requested.
///
/// # Errors
/// If it has no Ruby heap and blocks are not requested, the file cannot be written, or the dump is no longer wanted.
pub fn write(
    analysis: &Analysis,
    file: File,
    options: Options,
    request: Request<'_>,
) -> io::Result<Written> {
    check(analysis, &request)?;
    let mut writer = memprof_dump::create(file, options)?;
    let Passed { counts, unknown, truncated } = pass(analysis, &mut writer, request)?;
    Ok(Written { counts, bytes: writer.bytes(), unknown, truncated })
}

/// Builds the heap that [`write()`] dumps. Its texts go to the file.
///
/// # Errors
/// As for [`write()`].
pub fn build(
    analysis: &Analysis,
    texts: File,
    request: Request<'_>,
    options: &heap::Options<'_>,
) -> io::Result<Heap> {
    check(analysis, &request)?;
    (options.progress)(Progress::Reading(0, 0));
    let options = heap::Options { stop: Some(request.stop), ..*options };
    let mut builder = Builder::new(texts)?;
    let Passed { truncated, .. } = pass(analysis, &mut builder, request)?;
    (options.progress)(Progress::Linking);
    let source = Source { format: FORMAT.to_owned(), truncated, ..Source::default() };
    Heap::build(builder, source, &options)
}

/// Whether the image has what is requested.
fn check(analysis: &Analysis, request: &Request<'_>) -> io::Result<()> {
    if analysis.ruby.pages.is_empty() && !request.blocks {
        let text = "no pages of a Ruby heap in it: it ran no Ruby, or parts are missing; \
                    only its malloc blocks can be read as a heap (--blocks)";
        return Err(io::Error::other(text));
    }
    match analysis.unknown_blocks().filter(|_| request.blocks) {
        Some(reason) => Err(io::Error::new(io::ErrorKind::Unsupported, reason)),
        None => Ok(()),
    }
}

/// The result of [`pass`].
struct Passed {
    counts: Counts,
    unknown: Vec<&'static str>,
    truncated: bool,
}

/// Passes all records to a writer.
fn pass(analysis: &Analysis, writer: &mut impl Writer, request: Request<'_>) -> io::Result<Passed> {
    let heap = RubyHeap::new(analysis);
    let no_ruby = analysis.ruby.pages.is_empty();
    let unknown = if no_ruby { Vec::new() } else { heap.unknown() };
    let mut dump = Dump::new(&heap, writer, request.values, request.stop);
    dump.contents_of_objects = request.blocks.then(|| blocks::contents_of_objects(&heap));
    dump.header(request.header, &unknown)?;
    dump.roots()?;
    dump.objects()?;
    dump.blocks()?;
    let truncated = analysis.image.missing > 0;
    let counts = dump.writer.finish(&dump.tables, !truncated)?;
    Ok(Passed { counts, unknown, truncated })
}

struct Dump<'d, 'a, W> {
    writer: &'d mut W,
    tables: Tables,
    contents: Contents,
    /// By the address of the class.
    class_names: FxHashMap<u64, Option<NameId>>,
    /// The names of block signatures.
    signatures: FxHashMap<u64, Option<NameId>>,
    /// Computed when the first object is written.
    sizes: OnceCell<Sizes>,
    values: Values,
    /// Blocks with the contents of objects, whose references are known exactly; `None` if blocks are not dumped.
    contents_of_objects: Option<BitSet>,
    /// Blocks of no object whose references are written, as those of a root or of an object.
    taken: BitSet,
    heap: &'d RubyHeap<'a>,
    stop: &'d AtomicBool,
}

impl<'d, 'a, W: Writer> Dump<'d, 'a, W> {
    fn new(
        heap: &'d RubyHeap<'a>,
        writer: &'d mut W,
        values: Values,
        stop: &'d AtomicBool,
    ) -> Dump<'d, 'a, W> {
        Dump {
            writer,
            tables: Tables::default(),
            contents: Contents::new(heap.analysis),
            class_names: FxHashMap::default(),
            signatures: FxHashMap::default(),
            sizes: OnceCell::new(),
            values,
            contents_of_objects: None,
            taken: BitSet::default(),
            heap,
            stop,
        }
    }

    fn header(&mut self, more: Map<String, Value>, unknown: &[&str]) -> io::Result<()> {
        let image = &self.heap.analysis.image;
        let mut header = Map::new();
        for (key, value) in [
            ("_id", "header".into()),
            ("type", "header".into()),
            ("format", "memprof".into()),
            ("version", 1.into()),
            ("pid", image.pid.into()),
            ("values", self.values.policy.name().into()),
            ("source", "image".into()),
            ("unknown", unknown.to_vec().into()),
        ] {
            header.insert(key.to_owned(), value);
        }
        if self.values.previews() {
            header.insert("program".to_owned(), image.command.as_str().into());
        }
        header.extend(more);
        let json = Value::Object(header).to_string();
        self.writer.note(&self.tables, NoteKind::Header, &json)
    }

    fn objects(&mut self) -> io::Result<()> {
        let mut edges = Edges::default();
        let heap = self.heap;
        for (number, object) in heap.objects().enumerate() {
            if number % STEP == 0 {
                self.check_stop()?;
            }
            self.object(&object)?;
            self.edges(&object, &mut edges)?;
            self.contents(&object)?;
            self.writer.end(&self.tables)?;
        }
        Ok(())
    }

    fn check_stop(&self) -> io::Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "writing the dump was stopped"));
        }
        Ok(())
    }

    fn class_name(&mut self, class: u64) -> Option<NameId> {
        if let Some(name) = self.class_names.get(&class) {
            return *name;
        }
        let name = self.heap.classes.display_name(self.heap, class);
        let name = name.map(|name| self.tables.intern(&name));
        self.class_names.insert(class, name);
        name
    }

    fn object(&mut self, object: &Object) -> io::Result<()> {
        let heap = self.heap;
        let kind = object.kind();
        // VM-internal objects have something else in place of their class.
        let class =
            if kind == Kind::IMEMO || heap.slot(object.class).is_none() { 0 } else { object.class };
        let class_name = self.class_name(class);
        let facts = self.details(object);
        let record = Record {
            address: object.address,
            kind,
            class,
            class_name,
            slot_size: object.slot_size as u32,
            memsize: match self.contents_of_objects {
                Some(_) => object.slot_size,
                None => {
                    let sizes = self.sizes.get_or_init(|| Sizes::new(heap));
                    object.slot_size.saturating_add(sizes.of(heap, object)).min(LARGEST)
                }
            },
            shape_id: None,
            flags: flags(heap, object, &facts),
            age: None,
            object_id: None,
            detail: facts.detail(&self.contents, self.values),
            fields: &facts.fields,
            allocation: None,
        };
        self.writer.object(&self.tables, &record)
    }
}

/// The flags of an object, the same in all versions, and those specific to its type.
fn flags(heap: &RubyHeap<'_>, object: &Object, facts: &details::Facts) -> Flags {
    const FINALIZE: u64 = 1 << 7;
    const FROZEN: u64 = 1 << 11;
    let is_string = object.kind() == Kind::STRING;
    let mut flags = Flags::default();
    flags.set(Flags::FROZEN, object.flags & FROZEN != 0);
    flags.set(Flags::FINALIZE, object.flags & FINALIZE != 0);
    flags.set(Flags::EMBEDDED, facts.embedded);
    flags.set(Flags::SHARED, facts.shared);
    flags.set(Flags::FSTRING, is_string && is_fstring(object.flags));
    flags.set(Flags::SINGLETON, heap.classes.is_singleton(object));
    flags
}

//! `Memprof::Native::Image`: queries on a core file or the memory of a process. Questions and answers are JSON
//! ([`memprof_image::questions`]).

use std::io;
use std::sync::Arc;

use magnus::{
    Class, DataTypeFunctions, Error, Module, Object, RHash, RModule, Ruby, StaticSymbol,
    TryConvert, TypedData, function, method,
};
use memprof_dump::values::Values;
use memprof_dump::{Options, Policy};
use memprof_heap::Options as HeapOptions;
use memprof_image::{
    Analysis, Error as Unreadable, Image, Mismatch, dump as image_dump, questions,
    questions::Refusal,
};
use memprof_ledger::{Allocator, Arena};
use memprof_recording::{Error as NoRecording, LiveBlocks};
use serde_json::{Map, Value};

use super::dump::{duplicate, failure, key, word};
use super::heap::NativeHeap;
use super::job;
use super::requests::Input;
use crate::ruby_values::to_ruby;
use crate::vm::heap::binding::version;
use crate::vm::process_memory;

/// An open image. It is immutable.
#[derive(TypedData)]
#[magnus(class = "Memprof::Native::Image", free_immediately, size)]
pub(super) struct NativeImage(Arc<Analysis>);

impl NativeImage {
    /// Reads the blocks and references of an image.
    pub fn of(ruby: &Ruby, image: Image) -> Result<NativeImage, Error> {
        let analysis = job::run(ruby, "image", move |_| Arc::new(Analysis::new(image)))?;
        Ok(NativeImage(analysis))
    }
}

impl DataTypeFunctions for NativeImage {
    fn size(&self) -> usize {
        self.0.memsize()
    }
}

pub fn init(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    let image = native.define_class("Image", ruby.class_object())?;
    image.undef_default_alloc_func();
    image.define_singleton_method("open", function!(open, 1))?;
    image.define_method("ask", method!(ask, 2))?;
    image.define_method("damaged?", method!(is_damaged, 0))?;
    image.define_method("dump", method!(dump, 4))?;
    image.define_method("heap", method!(heap, 4))?;
    image.define_method("memory_of", method!(memory_of, 1))?;
    image.define_method("add_recording", method!(add_recording, 3))
}

/// Reads the core file from a file descriptor.
fn open(ruby: &Ruby, descriptor: i32) -> Result<NativeImage, Error> {
    let file = duplicate(ruby, descriptor)?;
    let analysis = job::run(ruby, "image", move |_| Image::of_core(file).map(Analysis::new))?;
    match analysis {
        Ok(analysis) => Ok(NativeImage(Arc::new(analysis))),
        Err(Unreadable::Io(error)) => Err(failure(ruby, &error)),
        Err(error @ Unreadable::Unreadable(_)) => {
            Err(failure(ruby, &io::Error::other(error.to_string())))
        }
    }
}

/// Whether malloc's heap is inconsistent: in a copy this may just mean that a thread was changing it.
fn is_damaged(_: &Ruby, image: &NativeImage) -> bool {
    !image.0.heap.corruptions.is_empty() || image.0.heap.skipped > 0
}

/// Answers a question; parameters and answer are JSON.
fn ask(
    ruby: &Ruby,
    image: &NativeImage,
    question: String,
    parameters: String,
) -> Result<String, Error> {
    let analysis = Arc::clone(&image.0);
    let answer = job::run(ruby, "image", move |_| {
        let parameters = serde_json::from_str(&parameters).map_err(|error| error.to_string())?;
        questions::ask(&analysis, &question, parameters)
    })?;
    answer.map_err(|refusal| match refusal {
        Refusal::Wrong(message) => Error::new(ruby.exception_arg_error(), message),
        Refusal::Unknown(reason) => {
            failure(ruby, &io::Error::new(io::ErrorKind::Unsupported, reason))
        }
    })
}

/// Measures the process whose memory this is a copy of, for the header of a dump: JSON, or nil if its /proc can't be read.
fn memory_of(ruby: &Ruby, image: &NativeImage, pid: u32) -> Result<Option<String>, Error> {
    let analysis = Arc::clone(&image.0);
    let facts = job::run(ruby, "image", move |_| {
        let malloc = analysis.unknown_blocks().is_none().then(|| allocator(&analysis));
        process_memory::facts_of_copied(pid, analysis.ruby.ranges().collect(), malloc)
    })?;
    Ok(facts.and_then(|facts| serde_json::to_string(&facts).ok()))
}

/// What `malloc_info` would say, but for blocks in caches of threads, which are free here.
fn allocator(analysis: &Analysis) -> Allocator {
    /// The size of a chunk precedes each block.
    const HEADER: u64 = 8;
    let arenas = questions::Arenas::of(analysis);
    let arena = |row: &questions::ArenaRow| {
        let free = row.top_size + row.free.bytes + row.free.count * HEADER;
        Arena { in_use: row.size.saturating_sub(free), free: free.min(row.size) }
    };
    Allocator {
        name: "glibc".to_owned(),
        arenas: arenas.arenas.iter().map(arena).collect(),
        mapped_blocks: arenas.mapped.count,
        mapped: arenas.mapped.bytes,
    }
}

/// Adds allocation sites of blocks from a recording of malloc: a file descriptor, read up to a time in milliseconds since 1970.
/// `pids`: ids of the process. Returns nil, or why the recording does not fit, with the process it belongs to.
fn add_recording(
    ruby: &Ruby,
    image: &NativeImage,
    descriptor: i32,
    until: u64,
    pids: Vec<u64>,
) -> Result<Option<(StaticSymbol, Option<u64>)>, Error> {
    let file = duplicate(ruby, descriptor)?;
    let analysis = Arc::clone(&image.0);
    let outcome = job::run(ruby, "recording", move |abandoned| {
        let mut input = io::BufReader::with_capacity(1 << 18, Input { file, abandoned });
        let live = LiveBlocks::read(&mut input, until)?;
        Ok(analysis.add_recording(live, &pids))
    })?;
    let why = match outcome {
        Ok(Ok(())) => return Ok(None),
        Ok(Err(Mismatch::NoAddresses)) => ("no_addresses", None),
        Ok(Err(Mismatch::OtherProcess(pid))) => ("other_process", Some(pid)),
        Ok(Err(Mismatch::OtherMemory)) => ("other_memory", None),
        Err(NoRecording::NoRecording) => ("no_recording", None),
        Err(NoRecording::Io(error)) => return Err(failure(ruby, &error)),
    };
    Ok(Some((ruby.sym_new(why.0), why.1)))
}

/// Writes the Ruby heap of the image to a file descriptor, with a JSON object's additions to the header; returns statistics.
fn dump(
    ruby: &Ruby,
    image: &NativeImage,
    descriptor: i32,
    options: RHash,
    header: String,
    blocks: bool,
) -> Result<RHash, Error> {
    let file = duplicate(ruby, descriptor)?;
    let header = parsed(ruby, &header)?;
    let values = Values { policy: word::<Policy>(ruby, options, "values")?, key: key() };
    let options = Options {
        format: word(ruby, options, "format")?,
        compression: word(ruby, options, "compression")?,
        ruby: version(ruby),
    };
    let analysis = Arc::clone(&image.0);
    let written = job::run(ruby, "image", move |abandoned| {
        let request = image_dump::Request { values, header, blocks, stop: &abandoned };
        image_dump::write(&analysis, file, options, request)
    })?;
    let written = written.map_err(|error| failure(ruby, &error))?;
    let hash = RHash::try_convert(to_ruby(ruby, &written.counts)?)?;
    hash.aset("bytes", written.bytes)?;
    hash.aset("unknown", written.unknown)?;
    hash.aset("truncated", written.truncated)?;
    Ok(hash)
}

/// The heap that [`dump`] writes, with a block for the progress. Texts go to the file of a descriptor.
fn heap(
    ruby: &Ruby,
    image: &NativeImage,
    descriptor: i32,
    header: String,
    blocks: bool,
    ignore_stack_roots: bool,
) -> Result<NativeHeap, Error> {
    let texts = duplicate(ruby, descriptor)?;
    let header = parsed(ruby, &header)?;
    let analysis = Arc::clone(&image.0);
    NativeHeap::built(ruby, move |progress, abandoned| {
        let request =
            image_dump::Request { values: Values::FULL, header, blocks, stop: &abandoned };
        let options =
            HeapOptions { index: false, ignore_stack_roots, progress, ..HeapOptions::default() };
        image_dump::build(&analysis, texts, request, &options)
    })
}

fn parsed(ruby: &Ruby, header: &str) -> Result<Map<String, Value>, Error> {
    serde_json::from_str(header)
        .map_err(|error| Error::new(ruby.exception_arg_error(), error.to_string()))
}

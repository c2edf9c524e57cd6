//! Opens a heap from its index or from the dump.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::builder::Builder;
use super::derived::Derived;
use super::index::{self, Fingerprint, Unfinished};
use super::link::link;
use super::{Heap, Source, fold, own, thread_locals};
use crate::graph::Stop;
use memprof_dump::read::{self, Outcome};
use memprof_dump::values::Values;

/// Root categories of guessed references: words on the machine stack, and in registers, that look like addresses.
const STACKS: [&str; 2] = [STACK, "registers"];
const STACK: &str = "machine_context";

/// Root categories that say little about what retains an object: the machine stack, JIT-compiled code, which references objects
/// that the program also references by name, and references from C memory in core files.
const LAST_RESORTS: [&str; 6] = [STACK, "registers", "YJIT", "ZJIT", "native", "external"];

/// The current stage of opening a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Bytes read, and their total; 0 if the total is unknown.
    Reading(u64, u64),
    /// References are being resolved.
    Linking,
    /// Dominators and paths are being computed.
    Computing,
    /// The index is being written.
    Writing,
}

/// Options for opening a heap.
#[derive(Clone, Copy)]
pub struct Options<'o> {
    /// Read the index beside the dump, or write it if it is missing.
    pub index: bool,
    /// Ignore objects referenced only by the machine stack: these references are not in the program, and may be numbers that look
    /// like addresses.
    pub ignore_stack_roots: bool,
    /// Limits on the size of the dump.
    pub limits: read::Limits,
    /// Called at each stage.
    pub progress: &'o dyn Fn(Progress),
    /// Opening fails soon after this becomes true, and leaves no index.
    pub stop: Option<&'o AtomicBool>,
    /// The index being written, for the caller to remove.
    pub unfinished: Option<&'o Unfinished>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options {
            index: true,
            ignore_stack_roots: false,
            limits: read::Limits::default(),
            progress: &|_| (),
            stop: None,
            unfinished: None,
        }
    }
}

impl Heap {
    /// Opens a dump of any format, or its index.
    ///
    /// # Errors
    /// If it is not a dump, cannot be read, or is no longer wanted ([`Options::stop`]).
    pub fn open(path: &Path, options: &Options<'_>) -> io::Result<Heap> {
        let metadata = fs::metadata(path)?;
        // Pipes and the like, which can be read only once, have no index; neither have directories of heap-profiler.
        if !(options.index && metadata.is_file()) {
            return Heap::read(read::open(path)?.input, Some(path), options);
        }
        let dump = File::open(path)?;
        let fingerprint = Fingerprint::of(&dump)?;
        let index = index::path_of(path);
        index::remove_stale(&index);
        let known = index::read(&index, &fingerprint, metadata.uid());
        let mut heap = match known {
            Some(heap) => heap,
            None => built(dump, path, &index, fingerprint, options)?,
        };
        heap.source.path = Some(path.to_owned());
        if options.ignore_stack_roots {
            return heap.computed(options);
        }
        Ok(heap)
    }

    /// Reads a dump of any format.
    ///
    /// # Errors
    /// As [`Heap::open`].
    pub fn read(
        dump: Box<dyn Read + Send>,
        path: Option<&Path>,
        options: &Options<'_>,
    ) -> io::Result<Heap> {
        let (heap, _) = linked(dump, path, tempfile::tempfile()?, options)?;
        heap.computed(options)
    }

    /// Builds a heap from the records passed to a builder.
    ///
    /// # Errors
    /// If its texts cannot be written, or it is no longer wanted.
    pub fn build(builder: Builder, source: Source, options: &Options<'_>) -> io::Result<Heap> {
        let stop = Stop::from(options.stop);
        let (mut heap, _) = link(builder, source, stop)?;
        fold::fold(&mut heap, stop)?;
        own::leave_out(&mut heap, stop)?;
        thread_locals::name(&mut heap)?;
        heap.computed(options)
    }

    fn computed(mut self, options: &Options<'_>) -> io::Result<Heap> {
        if options.ignore_stack_roots {
            self.silent = self.stack_roots();
        }
        (options.progress)(Progress::Computing);
        self.derived = Derived::of(&self, options.stop.into())?;
        Ok(self)
    }

    fn stack_roots(&self) -> Vec<u32> {
        self.roots_named(&STACKS)
    }

    /// Roots that paths begin with only if there are no others.
    pub(super) fn last_resorts(&self) -> Vec<u32> {
        self.roots_named(&LAST_RESORTS)
    }

    pub(super) fn roots_named(&self, names: &[&str]) -> Vec<u32> {
        let categories = self.categories.iter().enumerate();
        categories
            .filter(|(_, category)| names.contains(&category.name.as_str()))
            .map(|(number, _)| self.category_node(number))
            .collect()
    }
}

fn linked(
    dump: Box<dyn Read + Send>,
    path: Option<&Path>,
    texts: File,
    options: &Options<'_>,
) -> io::Result<(Heap, File)> {
    let mut builder = Builder::new(texts)?;
    let size = path.and_then(|path| fs::metadata(path).ok()).map_or(0, |metadata| metadata.len());
    let progress = |bytes: u64| (options.progress)(Progress::Reading(bytes, size));
    let reading = read::Options {
        values: Values::FULL,
        limits: options.limits,
        progress: Some(&progress),
        stop: options.stop,
    };
    let outcome = read::read(dump, &mut builder, &reading)?;
    (options.progress)(Progress::Linking);
    let stop = Stop::from(options.stop);
    let (mut heap, file) = link(builder, source(outcome, path), stop)?;
    fold::fold(&mut heap, stop)?;
    own::leave_out(&mut heap, stop)?;
    thread_locals::name(&mut heap)?;
    Ok((heap, file))
}

fn source(outcome: Outcome, path: Option<&Path>) -> Source {
    Source {
        path: path.map(Path::to_owned),
        format: outcome.format.name().to_owned(),
        truncated: outcome.truncated,
        skipped: outcome.skipped,
        first_skipped: outcome.first_skipped,
        missing: 0,
        own: Default::default(),
    }
}

/// Whether a write failed for lack of space.
fn is_full(error: &io::Error) -> bool {
    let kinds =
        [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded, io::ErrorKind::FileTooLarge];
    kinds.contains(&error.kind())
}

/// Reads a dump and writes an index if possible.
fn built(
    dump: File,
    path: &Path,
    index: &Path,
    fingerprint: Fingerprint,
    options: &Options<'_>,
) -> io::Result<Heap> {
    let own = Unfinished::default();
    let unfinished = options.unfinished.unwrap_or(&own);
    let Some(mut file) = unfinished.create(index) else {
        return Heap::read(Box::new(dump), Some(path), options);
    };
    // The index serves openings with any options.
    let with_all_roots = Options { ignore_stack_roots: false, ..*options };
    let result = index::begin(&mut file)
        .and_then(|()| linked(Box::new(dump), Some(path), file, options))
        .and_then(|(heap, file)| Ok((heap.computed(&with_all_roots)?, file)));
    let (heap, file) = match result {
        Ok(both) => both,
        Err(error) => {
            unfinished.discard();
            if !is_full(&error) {
                return Err(error);
            }
            // The texts may fit into the directory of temporary files. The dump is opened again: a thread that reads ahead may still
            // move the position of the first file.
            return Heap::read(Box::new(File::open(path)?), Some(path), options);
        }
    };
    // A dump truncated before its first object is not worth an index.
    if heap.is_empty() {
        unfinished.discard();
        return Ok(heap);
    }
    (options.progress)(Progress::Writing);
    let stop = Stop::from(options.stop);
    let written = index::write(&heap, file, fingerprint, stop);
    if written.and_then(|()| unfinished.finish(index)).is_err() {
        unfinished.discard();
        stop.check()?;
        // Without an index the next opening takes as long as this one, so this is not an error.
    }
    Ok(heap)
}

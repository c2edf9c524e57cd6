//! Dumps the heap: a walk ([`walk`]) creates a record for each object, which a format writes.
//!
//! During the walk the GC is disabled, no Ruby object is allocated and no object is written to; since Ruby 4.0 other Ractors
//! are paused. Data that needs Ruby code (threads' backtraces, global variables) is collected before by `lib/memprof/dump`.

pub mod binding;
mod class;
mod collector;
mod contents;
mod copy_memory;
mod details;
pub mod file;
mod finalizer_table;
pub mod forked_dump;
pub mod imemo;
mod ivars;
pub mod locals;
mod method;
mod name_table;
mod numeric;
mod pass;
mod plain;
mod prefetch;
mod reach;
mod roots;
mod ruby_value;
mod shapes;
mod stack_variables;
mod streams;
mod structs;
mod template_cache;
mod text;
pub mod typed_data;
mod unlabeled_refs;
mod visitor;
mod walk;

use std::ffi::{c_uint, c_void};
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use memprof_dump::binary::Binary;
use memprof_dump::format::{self, Compression, Dump, Format, Options};
use memprof_dump::memprof_json::MemprofJson;
use memprof_dump::objspace_json::ObjspaceJson;
use memprof_dump::record::{Counts, NoteKind};
use memprof_dump::values::Values;
use memprof_dump::worker::Worker;
use memprof_dump::writer::LiveWriter;
use memprof_heap::Builder;
use memprof_profile::sessions::SessionId;
use rb_sys::VALUE;

pub use roots::{Globals, add_global};
pub use typed_data::DataTypes;

use super::protect::protect;
use super::symbols::symbols;
use super::{layouts, naming, process_memory};
use name_table::Names;
use pass::Pass;
use walk::{Scope, Walk};

/// Contents and options of a dump.
pub struct Request {
    /// Format, compression, version of Ruby.
    pub options: Options,
    /// Which values are written.
    pub values: Values,
    /// Notes before the roots, the header first.
    pub before: Vec<(NoteKind, String)>,
    /// Whether to add the memory use of the process to the header. Not if other threads may be stopped while they hold a malloc
    /// lock.
    pub memory: bool,
    /// Memory shared with the parent process, if a child is to report it.
    pub worker: Option<process_memory::Worker>,
    /// Notes after the objects.
    pub after: Vec<(NoteKind, String)>,
    /// Only objects recorded by this session.
    pub session: Option<SessionId>,
    /// Types to look into, and facts about threads.
    pub data_types: DataTypes,
    /// Names of global variables by their values.
    pub globals: Globals,
}

impl Request {
    fn has_memory(&self) -> bool {
        let mut notes = self.before.iter();
        self.memory && notes.any(|(kind, _)| *kind == NoteKind::Header)
    }
}

/// Counts of written records, and bytes of the file.
pub type Written = (Counts, u64);

/// Prepares anything that would allocate Ruby objects during the walk. Called with the GVL.
pub fn prepare() {
    // Names that can't be interned for lack of memory are interned again in the walk, which also rescues.
    let _ = protect(|| {
        collector::init();
        structs::init();
    });
    naming::name_frames();
}

/// Checks whether the heap can be walked now. Called with the GVL.
fn check() -> io::Result<()> {
    layouts::check().map_err(|why| io::Error::new(io::ErrorKind::Unsupported, why))?;
    let symbols = symbols();
    let whole = symbols.each_objects.is_some()
        && symbols.memsize_of.is_some()
        && symbols.hash_foreach.is_some()
        && symbols.reachable_from.is_some()
        && symbols.reachable_from_root.is_some();
    if !whole {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "this Ruby lacks a function by which its heap is read",
        ));
    }
    if is_collecting() {
        return Err(io::Error::other("the heap cannot be read during a garbage collection"));
    }
    Ok(())
}

/// Whether this is called during a GC. A GC of another Ractor ends soon.
fn is_collecting() -> bool {
    const PATIENCE: u32 = 100;
    // SAFETY: reads a flag of the VM.
    let during_gc = || unsafe { rb_sys::rb_during_gc() } != 0;
    for _ in 0..PATIENCE {
        if !during_gc() {
            return false;
        }
        drop(VmLock::take());
        thread::sleep(Duration::from_millis(1));
    }
    during_gc()
}

/// Dumps the heap to a file. Called with the GVL, after [`prepare`].
pub fn dump(file: File, request: Request, worker: Worker) -> io::Result<Written> {
    check()?;
    choose(file, request, worker)
}

/// Passes the whole heap to a builder. Called with the GVL, after [`prepare`].
///
/// # Errors
/// If the heap cannot be read now, or texts cannot be written.
pub fn capture(mut builder: Builder, request: Request) -> io::Result<Builder> {
    check()?;
    with_quiet_heap(|| pass(&mut builder, request))?;
    Ok(builder)
}

/// As [`dump`], in a forked child, where other Ractors are already stopped and GC must never run.
fn walk_in_child(file: File, request: Request) -> io::Result<Written> {
    match symbols().gc_disable_no_rest {
        // SAFETY: called with the GVL, outside a GC. Leaves one that is under way as it is.
        Some(gc_disable_no_rest) => unsafe { gc_disable_no_rest() },
        // SAFETY: as above; ends one that is under way.
        None => unsafe { rb_sys::rb_gc_disable() as VALUE },
    };
    choose(file, request, Worker::ThreadOfChild)
}

/// Dumps with a walk compiled for the format, if that is worth its size, or else with one for all formats.
fn choose(file: File, request: Request, worker: Worker) -> io::Result<Written> {
    // In a child nothing else runs.
    let noisy = worker != Worker::ThreadOfChild;
    let Options { format, compression, ruby } = request.options;
    match (format, compression) {
        (Format::Binary, Compression::None) => {
            write(Binary::new(file, worker)?, Binary::bytes, request, noisy)
        }
        (Format::Objspace, _) => {
            let writer = ObjspaceJson::create(file, compression, worker, ruby)?;
            write(writer, ObjspaceJson::bytes, request, noisy)
        }
        (Format::Memprof, _) => {
            let writer = MemprofJson::create(file, compression, worker)?;
            write(writer, MemprofJson::bytes, request, noisy)
        }
        _ => {
            let dump = format::create_by(file, request.options, worker)?;
            write(dump, Dump::bytes, request, noisy)
        }
    }
}

fn write<W: LiveWriter>(
    mut writer: W,
    bytes: impl FnOnce(&W) -> u64,
    mut request: Request,
    noisy: bool,
) -> io::Result<Written> {
    let counts = if noisy {
        with_quiet_heap(|| {
            note_memory(&mut request, false);
            pass(&mut writer, request)
        })?
    } else {
        note_memory(&mut request, true);
        pass(&mut writer, request)?
    };
    Ok((counts, bytes(&writer)))
}

/// Measured here, not with the other facts of the header: a forked child does it while the program continues.
fn note_memory(request: &mut Request, forked: bool) {
    let header = (request.before.iter_mut()).find(|(kind, _)| *kind == NoteKind::Header);
    let Some((_, header)) = header.filter(|_| request.memory) else {
        return;
    };
    let worker = if forked { request.worker.take() } else { process_memory::worker() };
    let facts = process_memory::header_json(forked, worker);
    if let (Some(facts), Some(open)) = (facts, header.strip_suffix('}')) {
        *header = format!("{open},{facts}}}");
    }
}

/// Walks the heap. Any exception from the VM is caught here: the GC state and the writer belong to the callers, which continue
/// as after any other error.
fn pass<W: LiveWriter>(writer: &mut W, request: Request) -> io::Result<Counts> {
    protect(|| walk_over(writer, request))?
}

fn walk_over<W: LiveWriter>(writer: &mut W, request: Request) -> io::Result<Counts> {
    let scope = Scope { session: request.session, labels: W::LABELS, shapes: true };
    let names = Names::new(request.values);
    let walk = Walk::new(names, scope, request.data_types, request.globals);
    let mut pass = Pass { walk, writer };
    pass.run(&request.before, &request.after)?;
    let Pass { walk, writer } = pass;
    writer.finish(&walk.names.tables, true)
}

/// Calls `work` with GC disabled, and with other Ractors paused where possible.
fn with_quiet_heap<T>(work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    struct Enable(bool);
    impl Drop for Enable {
        fn drop(&mut self) {
            if self.0 {
                // SAFETY: called with the GVL; GC was enabled before.
                unsafe { rb_sys::rb_gc_enable() };
            }
        }
    }
    barrier(|| {
        // SAFETY: called with the GVL, outside a GC. Ends one that is under way.
        let disabled = unsafe { rb_sys::rb_gc_disable() } as VALUE;
        let _enable = Enable(disabled == rb_sys::Qfalse as VALUE);
        work()
    })
}

/// Whether no other thread exists, as in a copy of a process, regardless of the VM's state.
static ALONE: AtomicBool = AtomicBool::new(false);

/// From now on no dump waits for other Ractors.
pub fn stand_alone() {
    ALONE.store(true, Ordering::Relaxed);
}

/// Calls `work` while other Ractors are paused, if supported (4.0), or can't get memory (up to 3.2).
fn barrier<T>(work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    struct Call<W, T> {
        work: Option<W>,
        outcome: io::Result<T>,
    }
    unsafe extern "C" fn run<W: FnOnce() -> io::Result<T>, T>(call: *mut c_void) -> VALUE {
        // SAFETY: `barrier` passed the call, and uses it again only when this has returned.
        let call = unsafe { &mut *call.cast::<Call<W, T>>() };
        if let Some(work) = call.work.take() {
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            call.outcome = outcome.unwrap_or_else(|_| Err(bug()));
        }
        rb_sys::Qnil as VALUE
    }
    let mut call = Call { work: Some(work), outcome: Err(bug()) };
    let function = run_of(&call);
    let alone = ALONE.load(Ordering::Relaxed);
    match symbols().with_barrier.filter(|_| !alone) {
        // SAFETY: called with the GVL; the function is given the call, which outlives it.
        Some(with_barrier) => unsafe { with_barrier(function, (&raw mut call).cast()) },
        None => {
            let _lock = VmLock::take();
            // SAFETY: as above.
            unsafe { function((&raw mut call).cast()) }
        }
    };
    return call.outcome;

    fn run_of<W: FnOnce() -> io::Result<T>, T>(
        _: &Call<W, T>,
    ) -> unsafe extern "C" fn(*mut c_void) -> VALUE {
        run::<W, T>
    }
}

/// The VM's lock, if the VM has one that others can take.
struct VmLock(Option<c_uint>);

impl VmLock {
    fn take() -> VmLock {
        let (Some(lock), Some(_)) = (symbols().vm_lock, symbols().vm_unlock) else {
            return VmLock(None);
        };
        let mut level = 0;
        // SAFETY: called with the GVL; the lock is released by the same thread, when the value is dropped.
        unsafe { lock(&raw mut level) };
        VmLock(Some(level))
    }
}

impl Drop for VmLock {
    fn drop(&mut self) {
        if let (Some(level), Some(unlock)) = (&mut self.0, symbols().vm_unlock) {
            // SAFETY: taken by this thread, at this level.
            unsafe { unlock(std::ptr::from_mut(level)) };
        }
    }
}

fn bug() -> io::Error {
    io::Error::other("internal error in memprof (please report it)")
}

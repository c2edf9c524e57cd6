//! Effects of a block on the VM: objects it allocates, GCs that it triggers, its waits for the GVL.
//!
//! Counters only go up, one set per thread followed by some trace and one for the process. A trace copies the counters when it
//! begins, and reports their growth at its end. So traces may be nested, run concurrently and end in any order, as they do when
//! a fiber leaves the block. Nothing is counted without a trace, and the hooks are removed with the last one.
//!
//! Each tracer is a file: its counters, its hook, its report. The locks here are never held during calls of the VM that could
//! run a hook.

mod allocated_objects;
mod class_names;
mod counter_owners;
mod counting;
mod cpu;
mod gc;
mod gc_moment;
mod gvl_waits;
mod library_calls;

use std::borrow::Cow;
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};

use magnus::{DataTypeFunctions, Module};
use magnus::{Error, Ruby, TypedData, gc as magnus_gc, typed_data::Obj};

use memprof_native::{Choice as CallChoice, Counted as Calls, Node, Refused};
use rb_sys::VALUE;

use super::event_hook::EventHook;

pub use counter_owners::Owner;
pub use gvl_waits::waited;

/// The symbol of a name that the VM knows permanently, so that it is never collected.
fn symbol(name: &CStr) -> VALUE {
    // SAFETY: called with the GVL.
    unsafe { rb_sys::rb_id2sym(rb_sys::rb_intern(name.as_ptr())) }
}

/// A node with fixed names.
fn fields<const N: usize>(fields: [(&'static str, Node); N]) -> Node {
    Node::Map((fields.into_iter()).map(|(name, node)| (Cow::Borrowed(name), node)).collect())
}

/// The tracers of the VM.
const OWN: [&str; 3] = ["objects", "gc", "threads"];

/// Tracers that subtract waits for the GVL from the time that they measure.
const TIMED: [&str; 5] = ["mysql", "postgres", "memcache", "redis", "http"];

/// The available tracers: the VM's, and those of libraries and of the system.
pub fn names() -> Vec<&'static str> {
    OWN.iter().chain(memprof_native::names()).copied().collect()
}

/// The tracers of a trace.
pub struct Choice {
    objects: bool,
    gc: bool,
    threads: bool,
    /// Whether calls that may end with a wait for the GVL are timed.
    timed: bool,
    calls: Option<CallChoice>,
}

impl Choice {
    /// The named tracers, which are of [`names`]. `reported`: these and the ones written in Ruby.
    ///
    /// # Errors
    /// If a name is unknown.
    pub fn of(names: &[String], reported: &[String]) -> Result<Self, Refused> {
        let wants = |name: &str| names.iter().any(|wanted| wanted == name);
        let calls: Vec<&str> =
            (names.iter().map(String::as_str)).filter(|name| !OWN.contains(name)).collect();
        Ok(Choice {
            objects: wants("objects"),
            gc: wants("gc"),
            threads: wants("threads"),
            timed: reported.iter().any(|name| TIMED.contains(&&**name)),
            calls: (!calls.is_empty()).then(|| CallChoice::of(&calls)).transpose()?,
        })
    }
}

/// A running trace.
pub struct Running {
    _waits: Option<gvl_waits::Listener>,
    threads: Option<gvl_waits::Mark>,
    gc: Option<gc::Mark>,
    objects: Option<allocated_objects::Mark>,
    wants_objects: bool,
    engine: Option<library_calls::Mark>,
}

/// Preparations for traces that cost nothing between them: installed for a server that traces each request.
pub struct Installation {
    _gc: Option<gc::Mark>,
    _calls: Option<library_calls::Installation>,
}

/// Whether Ruby runs many threads on a few native ones (`RUBY_MN_THREADS`, since 3.3). Calls are counted by native thread, and
/// a thread that waits may resume on another one.
static MN_THREADS: AtomicBool = AtomicBool::new(false);

fn check_threads(choice: &Choice, process: bool) -> Result<(), Refused> {
    if !process && choice.calls.is_some() && MN_THREADS.load(Ordering::Relaxed) {
        return Err(Refused::Unsupported(
            "with RUBY_MN_THREADS a Ruby thread changes its native thread; trace with scope: :process",
        ));
    }
    Ok(())
}

/// Prepares anything that would allocate later, in a hook.
pub fn init(ruby: &Ruby) -> Result<(), Error> {
    let guard: Obj<TraceGuard> = ruby.obj_wrap(TraceGuard);
    ruby.gc_register_mark_object(guard);
    let description: String = ruby.class_object().const_get("RUBY_DESCRIPTION")?;
    MN_THREADS.store(description.contains("+MN"), Ordering::Relaxed);
    gc::init();
    gc_moment::init();
    Ok(())
}

/// Starts counting for the calling thread, or the process. The malloc counters are enabled last, as enabling the others takes
/// memory; enabling them allocates no objects.
///
/// # Errors
/// If library calls can't be counted in this process. Then nothing is counted.
pub fn begin(choice: &Choice, process: bool) -> Result<Running, Refused> {
    check_threads(choice, process)?;
    let owner = Owner::new(process);
    let threads = choice.threads.then(|| gvl_waits::Mark::new(process));
    let waits = choice.timed.then(gvl_waits::Listener::new);
    let gc = choice.gc.then(|| gc::Mark::new(owner));
    // Threads are objects, too.
    let objects = (choice.objects || choice.threads)
        .then(|| allocated_objects::Mark::new(owner, choice.objects));
    let engine = (choice.calls.as_ref()).map(|calls| library_calls::Mark::new(calls, process));
    Ok(Running {
        _waits: waits,
        threads,
        gc,
        objects,
        wants_objects: choice.objects,
        engine: engine.transpose()?,
    })
}

/// Installs everything that can remain between traces: not the allocation hook, which is called for every object.
///
/// # Errors
/// As for [`begin`].
pub fn install(choice: &Choice) -> Result<Installation, Refused> {
    Ok(Installation {
        _calls: (choice.calls.as_ref()).map(library_calls::Installation::new).transpose()?,
        _gc: choice.gc.then(|| gc::Mark::new(Owner::Process)),
    })
}

/// The hooks of the tracers.
pub fn hooks() -> [&'static EventHook; 2] {
    [allocated_objects::COUNTING.hook(), gc::COUNTING.hook()]
}

/// Runs immediately in the child of a fork; only sets atomics.
pub fn after_fork() {
    allocated_objects::COUNTING.after_fork();
    gc::COUNTING.after_fork();
}

/// Removes the hooks of the parent's traces in the child of a fork.
pub fn remove_hooks() {
    allocated_objects::COUNTING.remove_hook();
    gc::COUNTING.remove_hook();
    gvl_waits::remove_hook();
    library_calls::end_all();
}

/// The counts of a trace. They are final: a server creates the report after its client has the response.
pub struct Counted {
    calls: Option<Calls>,
    objects: Option<allocated_objects::Grown>,
    wants_objects: bool,
    gc: Option<gc::Grown>,
    waits: Option<Option<gvl_waits::Waits>>,
}

/// Stops counting, in reverse order.
pub fn finish(running: Running) -> Counted {
    Counted {
        calls: running.engine.and_then(library_calls::Mark::finish),
        objects: running.objects.map(allocated_objects::Mark::finish),
        wants_objects: running.wants_objects,
        gc: running.gc.map(gc::Mark::finish),
        waits: running.threads.map(gvl_waits::Mark::finish),
    }
}

impl Counted {
    /// Numbers by tracer. Called with the GVL, outside of a GC: reasons have names that the VM knows.
    pub fn report(&self) -> Vec<(&'static str, Node)> {
        let mut report = self.calls.as_ref().map(Calls::report).unwrap_or_default();
        if let Some(grown) = self.objects.as_ref().filter(|_| self.wants_objects) {
            report.push(("objects", grown.report()));
        }
        if let Some(grown) = &self.gc {
            report.push(("gc", grown.report()));
        }
        if let Some(waits) = &self.waits {
            let created = self.objects.as_ref().map_or(0, allocated_objects::Grown::threads);
            report.push(("threads", gvl_waits::report(created, waits.as_ref())));
        }
        report
    }
}

/// Has no contents; the VM reports compaction to it.
#[derive(TypedData)]
#[magnus(class = "Memprof::Native::TraceGuard", mark, compact)]
struct TraceGuard;

impl DataTypeFunctions for TraceGuard {
    fn mark(&self, _: &magnus_gc::Marker) {}

    fn compact(&self, _: &magnus_gc::Compactor) {
        allocated_objects::forget_addresses();
    }
}

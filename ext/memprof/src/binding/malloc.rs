//! `Memprof::Native::Malloc`: the malloc recorder. Locations are Strings here, as in `Memprof::Malloc`.

use std::ffi::CString;
use std::io;
use std::num::NonZeroU32;

use magnus::{
    Class, DataTypeFunctions, Error, Module, Object, RModule, Ruby, TypedData, Value, function,
};
use memprof_native::Refused;
use memprof_native::malloc::{self, Counts, Location, Settings, Stream};

use super::dump::{duplicate, failure};
use super::native_trace::unsupported;
use crate::vm::malloc_host::{self, QuietThread};

pub fn init(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    let module = native.define_module("Malloc")?;
    module.define_singleton_method("start", function!(start, 3))?;
    module.define_singleton_method("record", function!(record, 6))?;
    module.define_singleton_method("native_stack", function!(native_stack, 0))?;
    module.define_singleton_method("interpreter_functions", function!(interpreter_functions, 2))?;
    module.define_singleton_method("stop", function!(stop, 0))?;
    module.define_singleton_method("running?", function!(malloc::is_recording, 0))?;
    module.define_singleton_method("sample", function!(malloc::sample, 0))?;
    module.define_singleton_method("reset", function!(malloc::reset, 0))?;
    module.define_singleton_method("sites", function!(sites, 0))?;
    module.define_singleton_method("counts", function!(counts, 1))?;
    module.define_singleton_method("live_blocks", function!(live_blocks, 1))?;
    module.define_singleton_method("missed", function!(malloc::missed, 0))?;
    module.define_singleton_method("memsize", function!(malloc::memsize, 0))?;
    let quiet_thread = module.define_class("QuietThread", ruby.class_object())?;
    quiet_thread.undef_default_alloc_func();
    module.define_singleton_method("quiet", function!(quiet, 0))
}

/// False if it is already recording. `sample`: bytes between samples, nil for all blocks. `stack`: number of frames to record.
fn start(
    ruby: &Ruby,
    sample: Option<NonZeroU32>,
    stack: usize,
    native: bool,
) -> Result<bool, Error> {
    malloc_host::prepare();
    let settings = Settings { sample, stack, native };
    malloc::start(&malloc_host::HOST, settings).map_err(|why| unsupported(ruby, "malloc", &why))
}

/// Records as `start` does, and writes the events to a file descriptor, with addresses if `addresses`. False if it is already
/// recording.
fn record(
    ruby: &Ruby,
    descriptor: i32,
    command: String,
    sample: Option<NonZeroU32>,
    stack: usize,
    native: bool,
    addresses: bool,
) -> Result<bool, Error> {
    let file = duplicate(ruby, descriptor)?;
    malloc_host::prepare();
    let settings = Settings { sample, stack, native };
    let stream = Stream { file, command, addresses };
    malloc::start_stream(&malloc_host::HOST, settings, stream).map_err(|why| match why {
        Refused::File(error) => {
            failure(ruby, &io::Error::other(format!("the recording cannot be written: {error}")))
        }
        why => unsupported(ruby, "malloc", &why),
    })
}

/// The functions on the native stack, innermost first, without this library's, and the number of calls there from native code
/// into Ruby.
#[cfg(target_os = "linux")]
fn native_stack() -> (Vec<usize>, usize) {
    use memprof_native::unwind;

    malloc_host::prepare();
    unwind::prepare();
    let functions = unwind::stack()
        .into_iter()
        .filter_map(|address| unwind::function(address - 1))
        .map(|function| function.start);
    (functions.collect(), malloc_host::calls_of_ruby())
}

/// Sets the function that runs Ruby code, and those between it and the C functions that Ruby code calls.
#[cfg(target_os = "linux")]
fn interpreter_functions(run: usize, between: Vec<usize>) {
    use memprof_native::malloc::Interpreter;
    use memprof_native::unwind;

    malloc::set_interpreter(Interpreter {
        run: unwind::function(run).unwrap_or_default(),
        between: between.into_iter().filter_map(unwind::function).collect(),
    });
}

/// False if it was not recording. Raises the system's error if the recording's file could not be completed.
fn stop(ruby: &Ruby) -> Result<bool, Error> {
    malloc::stop().map_err(|error| failure(ruby, &error))
}

/// Allocations, their bytes, frees, their bytes, sum of ages, maximum age, live blocks, their bytes.
type Row = (u64, u64, u64, u64, u64, u64, u64, u64);

fn row(counts: &Counts) -> Row {
    (
        counts.allocations,
        counts.allocated_bytes,
        counts.frees,
        counts.freed_bytes,
        counts.age_total,
        counts.max_lifespan,
        counts.live,
        counts.live_bytes,
    )
}

/// Location and counts of each site with counts.
fn sites() -> Vec<(String, Row)> {
    let sites = malloc::sites();
    let rows = sites.iter().map(|site| row(&site.counts));
    malloc_host::names(&sites).into_iter().zip(rows).collect()
}

/// The counts of a location; nil if nothing was ever allocated there.
fn counts(name: String) -> Option<Row> {
    malloc::counts(&location(&name)?).as_ref().map(row)
}

/// Size of each live block of a location, and the number of GCs since its allocation.
fn live_blocks(name: String) -> Vec<(u64, u32)> {
    let blocks = location(&name).map(|location| malloc::live_blocks(&location));
    let blocks = blocks.unwrap_or_default().into_iter();
    blocks.map(|block| (block.size, block.age)).collect()
}

/// State of `quiet` while its block runs.
#[derive(TypedData)]
#[magnus(class = "Memprof::Native::Malloc::QuietThread", free_immediately)]
struct Quiet(QuietThread);

impl DataTypeFunctions for Quiet {}

/// Yields the depth; allocations of this thread are not recorded meanwhile.
fn quiet(ruby: &Ruby) -> Result<Value, Error> {
    // On the machine stack, where the GC finds it, and so does not move the thread.
    let thread = std::hint::black_box(ruby.thread_current());
    let held = std::hint::black_box(ruby.obj_wrap(Quiet(QuietThread::enter())));
    let value = ruby.yield_values((malloc_host::quiet_depth(),));
    held.0.leave();
    std::hint::black_box((thread, held));
    value
}

/// The location of a name: a line, or text with an address in square brackets.
fn location(name: &str) -> Option<Location> {
    if let Some((_, rest)) = name.rsplit_once("[0x") {
        let digits = rest.split_once(']')?.0;
        return usize::from_str_radix(digits, 16).ok().map(Location::Native);
    }
    #[cfg(target_os = "linux")]
    if name == memprof_recording::Native::JIT {
        return Some(Location::Native(memprof_native::unwind::JIT));
    }
    let (path, line) = name.rsplit_once(':')?;
    Some(Location::Line { path: CString::new(path).ok()?, line: line.parse().ok()? })
}

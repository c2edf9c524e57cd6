//! Functions called in a copy of a process that has not loaded memprof: the calling thread is the only one, stopped at an
//! arbitrary point. `dlopen` loads the library there without Ruby's knowledge, and no Ruby file of memprof is read: that would
//! release the GVL to a thread missing in the copy.

use std::ffi::c_char;
use std::os::fd::RawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

use magnus::value::ReprValue;
use magnus::{Module, RArray, RHash, Ruby, Symbol, TryConvert, Value};
use memprof_dump::values::Policy;
use serde::Deserialize;
use serde_json::{Map, json};

use super::{malloced, string};
use crate::vm::heap::{
    self,
    file::{self, Facts},
};
use crate::vm::process_memory;
use crate::vm::protect::{eval_at_top, protect};
use crate::vm::slots::FreeSlots;
use crate::vm::symbols::symbols;

/// Evaluates to a lambda.
const FACTS: &str = include_str!("facts_of_copy.rb");

/// A request to the copy.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
enum Request {
    /// A dump of the heap.
    Dump {
        /// Output descriptor.
        output: RawFd,
        format: String,
        compression: String,
        values: String,
        /// Whether to give up other threads if a GC in progress has to finish first.
        alone: bool,
    },
    /// The stack of each thread.
    Stack {
        /// Whether to give up other threads.
        alone: bool,
    },
}

/// Answers a JSON request with malloc'ed JSON: an `error`, or the result. NULL if out of memory.
///
/// # Safety
/// `request` is a NUL-terminated string. Only in a copy of a process, where nothing that this does is seen.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memprof_answer_in_copy(request: *const c_char) -> *const c_char {
    // SAFETY: the caller's string.
    let request = unsafe { string(request) }.unwrap_or_default();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        if !runs_ruby() {
            return Ok(json!({ "unfit": "the thread runs no Ruby now" }));
        }
        protect(|| answer(&request)).unwrap_or_else(|raised| Err(raised.to_string()))
    }));
    let answer = match outcome {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => json!({ "error": error }),
        Err(_) => json!({ "error": "internal error in memprof (please report it)" }),
    };
    malloced(answer.to_string().as_bytes()).unwrap_or(std::ptr::null())
}

/// False for a thread between two Ractors: the VM parks it for the next busy Ractor, and still treats it as a Ruby thread.
/// Functions that may raise must not be called there.
fn runs_ruby() -> bool {
    if cfg!(not(ruby_gte_3_3)) {
        return true;
    }
    let (mut frame, mut line) = (0, 0);
    // SAFETY: room for one frame; without a running Ruby thread there is none.
    unsafe { rb_sys::rb_profile_frames(0, 1, &raw mut frame, &raw mut line) > 0 }
}

fn answer(request: &str) -> Result<serde_json::Value, String> {
    let request: Request = parsed(request)?;
    let ruby = moment()?;
    let mut request = request;
    if let Request::Dump { output, .. } = &mut request {
        *output = out_of_the_way(*output)?;
    }
    let among = among_ractors(&ruby, &request)?;
    if let Among::Unfit(why) = among {
        return Ok(why);
    }
    match request {
        Request::Stack { .. } => {
            let fibers = among != Among::Unwalkable;
            let (threads, _, about, fibers) = facts(&ruby, true, fibers)?;
            let mut rows: Vec<serde_json::Value> = Vec::new();
            for (_, json) in threads {
                rows.push(parsed(&json)?);
            }
            let about: Map<String, serde_json::Value> = parsed(&about)?;
            let fibers: serde_json::Value = parsed(&fibers)?;
            // The VM no longer counts other Ractors, as their threads are gone.
            let ractors = about.get("ractors").filter(|_| among != Among::Alone);
            Ok(json!({ "threads": rows, "fibers": fibers, "ractors": ractors }))
        }
        Request::Dump { output, format, compression, values, .. } => {
            let policy: Policy = values.parse()?;
            let contents = matches!(policy, Policy::Full | Policy::Truncate);
            // SAFETY: asks the kernel: the copy is the process's child.
            let pid = unsafe { libc::getppid() } as u32;
            let memory = process_memory::facts_of_original(pid);
            let before = FreeSlots::now()?;
            let (threads, globals, about, _) = facts(&ruby, contents, false)?;
            let mut about: Map<String, serde_json::Value> = parsed(&about)?;
            heap::binding::data_types(&ruby).map_err(|error| explained(&error))?;
            // Allocations made to find this out are not part of the process.
            let own = before.used_since()?;
            let own = own.iter().map(|object| format!("{object:#x}"));
            about.insert("own_objects".to_owned(), own.collect());
            if let Some(memory) = memory.and_then(|facts| serde_json::to_value(facts).ok()) {
                about.insert("memory".to_owned(), memory);
            }
            let facts = Facts {
                format: format.parse()?,
                compression: compression.parse()?,
                policy,
                threads,
                globals,
                pid,
                about,
            };
            let file = heap::binding::duplicate(output).map_err(|error| error.to_string())?;
            let counts = file::dump_with(&ruby, file, facts)?;
            serde_json::to_value(counts).map_err(|error| error.to_string())
        }
    }
}

fn parsed<T: for<'json> Deserialize<'json>>(json: &str) -> Result<T, String> {
    serde_json::from_str(json).map_err(|error| error.to_string())
}

/// Checks whether the heap can be read: the copy was made at an arbitrary moment.
fn moment() -> Result<Ruby, String> {
    // SAFETY: both may be called on any thread of a process that runs Ruby.
    unsafe {
        if symbols().native_thread_p.is_some_and(|question| question() == 0) {
            return Err("the thread is not a Ruby thread".into());
        }
        if rb_sys::rb_during_gc() != 0 {
            return Err("a garbage collection is running".into());
        }
    }
    // SAFETY: one of Ruby's threads. It may wait for something without the GVL: no other thread has that in the copy.
    Ok(unsafe { Ruby::get_unchecked() })
}

/// Other Ractors in the copy.
#[derive(PartialEq)]
enum Among {
    /// Another copy is needed, for this reason.
    Unfit(serde_json::Value),
    /// All Ractors of the process.
    Others,
    /// The same, and the heap cannot be walked without waiting for them.
    Unwalkable,
    /// None: other threads and Ractors were given up.
    Alone,
}

/// Checks for other Ractors: their threads are missing here, and the VM would wait for them forever before it continues a GC.
fn among_ractors(ruby: &Ruby, request: &Request) -> Result<Among, String> {
    heap::stand_alone();
    if let Some(disable) = symbols().gc_disable_no_rest {
        // SAFETY: no other thread is here; what the copy allocates starts no GC then.
        unsafe { disable() };
    }
    let asked = || -> Result<Among, magnus::Error> {
        let ractor: Value = ruby.class_object().const_get("Ractor")?;
        if !ractor
            .funcall::<_, _, Value>("current", ())?
            .equal(ractor.funcall::<_, _, Value>("main", ())?)?
        {
            return Ok(Among::Unfit(json!({ "unfit": "the thread is another Ractor's" })));
        }
        let gc: Value = ruby.class_object().const_get("GC")?;
        let state: Symbol = gc.funcall("latest_gc_info", (ruby.to_symbol("state"),))?;
        let single = ractor.funcall::<_, _, usize>("count", ())? == 1;
        if single {
            return Ok(Among::Others);
        }
        if state.name()? == "none" {
            // Since 4.0 every heap walk waits for the others.
            return Ok(match cfg!(ruby_gte_4_0) {
                true => Among::Unwalkable,
                false => Among::Others,
            });
        }
        Ok(match request {
            Request::Dump { alone: true, .. } | Request::Stack { alone: true } => {
                occupy_descriptors();
                // SAFETY: what the VM does after a fork; this is one of Ruby's threads.
                unsafe { rb_sys::rb_thread_atfork_before_exec() };
                Among::Alone
            }
            Request::Dump { .. } => {
                Among::Unfit(json!({ "busy": "a garbage collection is under way" }))
            }
            // Its allocations may fit into slots that were already swept.
            Request::Stack { .. } => Among::Unwalkable,
        })
    };
    asked().map_err(|error| explained(&error))
}

/// The first descriptor that [`occupy_descriptors`] leaves free.
fn first_left() -> RawFd {
    const MOST: RawFd = 1 << 16;
    const LEFT: RawFd = 64;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes the limit, which lives until it returns.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    let limit = RawFd::try_from(limit.rlim_cur).unwrap_or(RawFd::MAX);
    limit.saturating_sub(LEFT).clamp(3, MOST)
}

/// A duplicate under a number unknown to the VM: the original number may be that of a VM descriptor, which are closed in the
/// copy.
fn out_of_the_way(descriptor: RawFd) -> Result<RawFd, String> {
    // SAFETY: makes a new descriptor.
    let moved = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, first_left()) };
    match moved {
        0.. => Ok(moved),
        _ => Err(std::io::Error::last_os_error().to_string()),
    }
}

/// Opens all descriptors except for some left free. After a fork the VM closes those of its timer, and aborts if that fails; in
/// the copy they are already closed.
fn occupy_descriptors() {
    for descriptor in 3..first_left() {
        // SAFETY: what is open stays as it is. If dup2 fails, the number is closed as before.
        unsafe {
            if libc::fcntl(descriptor, libc::F_GETFD) < 0 {
                libc::dup2(2, descriptor);
            }
        }
    }
}

type Threads = Vec<(Value, String)>;
type Globals = Vec<(String, Value)>;
type About = (Threads, Globals, String, String);

/// JSON for threads and global variables, the header, and suspended fibers if requested.
fn facts(ruby: &Ruby, contents: bool, fibers: bool) -> Result<About, String> {
    let found = || -> Result<About, magnus::Error> {
        let lambda: Value = eval_at_top(ruby, FACTS)?;
        let all: RArray = lambda.funcall("call", (contents, fibers))?;
        let mut threads = Threads::new();
        let table: RHash = all.entry(0)?;
        table.foreach(|thread: Value, json: String| {
            threads.push((thread, json));
            Ok(magnus::r_hash::ForEach::Continue)
        })?;
        let mut globals = Globals::new();
        for one in all.entry::<RArray>(1)? {
            globals.push(<(String, Value)>::try_convert(one)?);
        }
        Ok((threads, globals, all.entry(2)?, all.entry(3)?))
    };
    found().map_err(|error| explained(&error))
}

/// The exception raised by Ruby code, with its location: the program may have redefined methods that it calls.
fn explained(error: &magnus::Error) -> String {
    let Some(raised) = error.value() else {
        return error.to_string();
    };
    let frames = raised.funcall::<_, _, RArray>("backtrace", ());
    let place = frames.and_then(|frames| frames.entry::<String>(0));
    let place = place.map_or_else(|_| String::new(), |place| format!(" ({place})"));
    // SAFETY: the exception's class is held by the exception.
    let class = unsafe { raised.classname() }.into_owned();
    format!("Ruby code raised {class} in the copy: {error}{place}")
}

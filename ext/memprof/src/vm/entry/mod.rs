//! Functions for use in a debugger: `call (int)memprof_dump_all("heap.json")` in gdb. Those with the prefix `heapdump_` have
//! the names and arguments of the gem heap_dump.
//!
//! A debugger stops a process anywhere, so each function first checks whether the heap can be read at this moment, and
//! otherwise prints the reason as one line on stderr. None of them runs a program's Ruby code, and those that count allocate no
//! Ruby object.

mod gvl_owner;
mod in_copy;
mod moment;
mod output;

use std::ffi::{CStr, c_char, c_int};
use std::io::{self, Write};

use memprof_profile::sessions::SessionId;
use serde::Serialize;
use serde_json::ser::PrettyFormatter;

use super::census::{self, Census};
use super::{sessions, tracker};
pub use moment::init;
use moment::when_safe;
use output::{heap_to, write};

/// Writes the heap like the gem heap_dump, as one JSON array, to `file`, or to `dump.json` if it is NULL.
///
/// # Safety
/// `file` is NULL or a NUL-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapdump_dump(file: *const c_char) {
    when_safe("heapdump_dump", (), || {
        // SAFETY: the caller's string.
        let file = unsafe { string(file) }.unwrap_or_else(|| "dump.json".into());
        heap_to(Some(&file), "heap_dump")
    });
}

/// Writes the whole heap like `Memprof.dump_all` to `file`, or to standard output if it is NULL. Returns 0, or -1 on failure.
///
/// # Safety
/// As [`heapdump_dump`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memprof_dump_all(file: *const c_char) -> c_int {
    when_safe("memprof_dump_all", -1, || {
        // SAFETY: the caller's string.
        let file = unsafe { string(file) };
        heap_to(file.as_deref(), "memprof").map(|()| 0)
    })
}

/// Writes the output of `Memprof.stats` to `file`, or to standard output if it is NULL. Returns 0, or -1 on failure or if
/// nothing is tracked.
///
/// # Safety
/// As [`heapdump_dump`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memprof_stats(file: *const c_char) -> c_int {
    when_safe("memprof_stats", -1, || {
        // SAFETY: the caller's string.
        let file = unsafe { string(file) };
        let session =
            oldest_session().ok_or("objects are not tracked; call Memprof.start first")?;
        let mut text = String::new();
        let rows = sessions::stats(session).map_err(|raised| raised.to_string())?;
        for row in rows {
            text += &format!("{:7} {}:{}:{}\n", row.objects, row.file, row.line, row.class);
        }
        write(file.as_deref(), text.as_bytes()).map(|()| 0)
    })
}

/// The oldest session that tracks the whole process: that of `Memprof.start`, if it exists.
fn oldest_session() -> Option<SessionId> {
    tracker::with(|tracker| {
        let sessions = &tracker.recorder.sessions;
        let of_process = |id: &&SessionId| {
            sessions.options(**id).is_some_and(|options| options.thread.is_none())
        };
        tracker.facts.keys().filter(of_process).min().copied()
    })
    .flatten()
}

/// Stable Rust cannot declare C's variadic arguments, so they are taken from the registers they are passed in.
macro_rules! count_objects {
    ($($name:ident),*) => {
        /// Counts objects and writes the counts to stderr as indented JSON. The arguments are names of classes and modules
        /// whose objects to count by class, terminated by NULL or "". An argument may contain several names, separated by
        /// commas or blanks. Only six arguments are supported (eight on arm64).
        ///
        /// # Safety
        /// All arguments up to the first NULL or "" are NUL-terminated strings.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn heapdump_count_objects_print($($name: *const c_char),*) {
            when_safe("heapdump_count_objects_print", (), || {
                // SAFETY: the caller's strings.
                let census = census::count_objects(&unsafe { names(&[$($name),*]) })?;
                let mut json = indented(&census)?;
                json.push(b'\n');
                io::stderr().write_all(&json).map_err(|error| error.to_string())
            });
        }

        /// As [`heapdump_count_objects_print`], but returns the counts as JSON on one line, which the caller has to `free`.
        /// NULL on failure.
        ///
        /// # Safety
        /// As [`heapdump_count_objects_print`].
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn heapdump_count_objects_return($($name: *const c_char),*) -> *const c_char {
            when_safe("heapdump_count_objects_return", std::ptr::null(), || {
                // SAFETY: the caller's strings.
                let census = census::count_objects(&unsafe { names(&[$($name),*]) })?;
                malloced(&serde_json::to_vec(&census).map_err(|error| error.to_string())?)
            })
        }
    };
}

#[cfg(all(target_arch = "x86_64", not(windows)))]
count_objects!(first, second, third, fourth, fifth, sixth);
#[cfg(all(target_arch = "aarch64", not(target_vendor = "apple"), not(windows)))]
count_objects!(first, second, third, fourth, fifth, sixth, seventh, eighth);
// On other platforms variadic arguments are passed elsewhere.
#[cfg(not(any(
    all(target_arch = "x86_64", not(windows)),
    all(target_arch = "aarch64", not(target_vendor = "apple"), not(windows))
)))]
count_objects!(first);

/// Names up to the first argument that is NULL or empty.
///
/// # Safety
/// As [`heapdump_count_objects_print`].
unsafe fn names(arguments: &[*const c_char]) -> Vec<String> {
    (arguments.iter())
        // SAFETY: asked for one after the other, and never behind the end of the list.
        .map_while(|argument| unsafe { string(*argument) }.filter(|text| !text.is_empty()))
        .flat_map(|text| {
            let names = text.split([',', ' ']).filter(|name| !name.is_empty());
            names.map(str::to_owned).collect::<Vec<_>>()
        })
        .collect()
}

unsafe fn string(pointer: *const c_char) -> Option<String> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: not NULL, so a NUL-terminated string, as the caller of the entry point vouches.
    let text = unsafe { CStr::from_ptr(pointer) };
    Some(text.to_string_lossy().into_owned())
}

fn indented(census: &Census) -> Result<Vec<u8>, String> {
    let mut json = Vec::new();
    let mut serializer =
        serde_json::Serializer::with_formatter(&mut json, PrettyFormatter::with_indent(b"    "));
    census.serialize(&mut serializer).map_err(|error| error.to_string())?;
    Ok(json)
}

/// A malloc'ed copy, terminated by a NUL.
fn malloced(text: &[u8]) -> Result<*const c_char, String> {
    // SAFETY: room for the text and a NUL is asked for, and written if there is some.
    unsafe {
        let copy = libc::malloc(text.len() + 1).cast::<u8>();
        if copy.is_null() {
            return Err("out of memory".into());
        }
        copy.copy_from_nonoverlapping(text.as_ptr(), text.len());
        *copy.add(text.len()) = 0;
        Ok(copy.cast_const().cast())
    }
}

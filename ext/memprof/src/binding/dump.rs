//! `Memprof::Native.dump_heap` and `.fork_dump`: convert Ruby's options to a [`Request`].

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::os::fd::IntoRawFd;
use std::str::FromStr;
use std::sync::OnceLock;

use magnus::r_hash::ForEach;
use magnus::value::ReprValue;
use magnus::{Error, Module, Object, RArray, RHash, RModule, Ruby, TryConvert, Value, function};
use memprof_dump::format::Options;
use memprof_dump::record::NoteKind;
use memprof_dump::values::{Key, Policy, Values};
use memprof_dump::worker::Worker;
use memprof_profile::sessions::SessionId;

use crate::os_errors;
use crate::ruby_values::to_ruby;
use crate::vm::heap::{self, Globals, Request, Written, forked_dump};
use crate::vm::tracker;

pub fn init(_: &Ruby, native: RModule) -> Result<(), Error> {
    native.define_singleton_method("dump_heap", function!(dump_heap, 2))?;
    native.define_singleton_method("fork_dump", function!(fork_dump, 3))
}

/// Writes the heap to a file descriptor; returns statistics.
fn dump_heap(ruby: &Ruby, descriptor: i32, options: RHash) -> Result<Value, Error> {
    let file = duplicate(ruby, descriptor)?;
    let request = tracker::suspended(|| request(ruby, options))?;
    heap::prepare();
    let written =
        heap::dump(file, request, Worker::Thread).map_err(|error| failure(ruby, &error))?;
    written_to_ruby(ruby, &written)
}

/// Forks a child that writes the heap to a file descriptor; adds its pid, and the descriptor of its report, to `made`. They are
/// not returned, as an exception from another thread or a signal could come before the caller has the return value.
fn fork_dump(ruby: &Ruby, descriptor: i32, options: RHash, made: RArray) -> Result<(), Error> {
    let file = duplicate(ruby, descriptor)?;
    let request = tracker::suspended(|| request(ruby, options))?;
    heap::prepare();
    let child = forked_dump::fork(file, request).map_err(|error| failure(ruby, &error))?;
    made.push(child.pid)?;
    made.push(child.report.into_raw_fd())
}

fn written_to_ruby(ruby: &Ruby, (counts, bytes): &Written) -> Result<Value, Error> {
    let hash = RHash::try_convert(to_ruby(ruby, counts)?)?;
    hash.aset("bytes", *bytes)?;
    Ok(hash.as_value())
}

/// A duplicate of the descriptor, which we own.
pub(super) fn duplicate(ruby: &Ruby, descriptor: i32) -> Result<File, Error> {
    if descriptor < 0 {
        return Err(Error::new(ruby.exception_arg_error(), "the file is closed"));
    }
    heap::binding::duplicate(descriptor).map_err(|error| failure(ruby, &error))
}

/// A Memprof::Error, or a Memprof::Unsupported if this Ruby doesn't support it.
pub(super) fn failure(ruby: &Ruby, error: &std::io::Error) -> Error {
    let name = match error.kind() {
        std::io::ErrorKind::Unsupported if error.raw_os_error().is_none() => "Unsupported",
        _ => "Error",
    };
    let class = ruby
        .class_object()
        .const_get::<_, RModule>("Memprof")
        .and_then(|memprof| memprof.const_get(name));
    Error::new(class.unwrap_or_else(|_| ruby.exception_runtime_error()), os_errors::text(error))
}

pub(super) fn request(ruby: &Ruby, options: RHash) -> Result<Request, Error> {
    let header = lookup::<String>(ruby, options, "header")?;
    let mut before = Vec::from_iter(header.map(|json| (NoteKind::Header, json)));
    before.extend(notes(ruby, options, "before")?);
    let session = lookup::<u64>(ruby, options, "session")?.map(SessionId);
    let mut data_types = heap::binding::data_types(ruby)?;
    if let Some(threads) = lookup::<RHash>(ruby, options, "threads")? {
        threads.foreach(|thread: Value, json: String| {
            data_types.threads.insert(heap::binding::address(thread), facts(ruby, &json)?);
            Ok(ForEach::Continue)
        })?;
    }
    Ok(Request {
        options: Options {
            format: word(ruby, options, "format")?,
            compression: word(ruby, options, "compression")?,
            ruby: heap::binding::version(ruby),
        },
        values: Values { policy: word::<Policy>(ruby, options, "values")?, key: key() },
        before,
        after: notes(ruby, options, "after")?,
        memory: session.is_none(),
        worker: None,
        session,
        data_types,
        globals: globals(ruby, options)?,
    })
}

/// Key of the marks in dumps of this process and its forks, which makes their dumps comparable.
pub(super) fn key() -> Key {
    static KEY: OnceLock<Key> = OnceLock::new();
    *KEY.get_or_init(|| {
        let random = RandomState::new();
        Key([random.hash_one(1), random.hash_one(2)])
    })
}

/// Facts of a JSON object, each with its value as JSON.
fn facts(ruby: &Ruby, json: &str) -> Result<Vec<(String, String)>, Error> {
    let fields = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(json)
        .map_err(|error| Error::new(ruby.exception_arg_error(), error.to_string()))?;
    let pairs = fields.into_iter().map(|(key, value)| (key, value.to_string()));
    Ok(pairs.collect())
}

/// Names of global variables by the addresses of their values.
fn globals(ruby: &Ruby, options: RHash) -> Result<Globals, Error> {
    let mut globals = Globals::default();
    if let Some(pairs) = lookup::<RArray>(ruby, options, "globals")? {
        for pair in pairs {
            let (name, value) = <(String, Value)>::try_convert(pair)?;
            heap::add_global(&mut globals, &name, heap::binding::address(value));
        }
    }
    Ok(globals)
}

fn notes(ruby: &Ruby, options: RHash, key: &str) -> Result<Vec<(NoteKind, String)>, Error> {
    let mut notes = Vec::new();
    if let Some(pairs) = lookup::<RArray>(ruby, options, key)? {
        for pair in pairs {
            let (kind, json) = <(String, String)>::try_convert(pair)?;
            notes.push((note_kind(ruby, &kind)?, json));
        }
    }
    Ok(notes)
}

fn note_kind(ruby: &Ruby, word: &str) -> Result<NoteKind, Error> {
    Ok(match word {
        "globals" => NoteKind::Globals,
        "finalizers" => NoteKind::Finalizers,
        "frame" => NoteKind::Frame,
        "lsof" => NoteKind::Lsof,
        "ps" => NoteKind::Ps,
        _ => {
            let message = format!("unknown note {word:?}");
            return Err(Error::new(ruby.exception_arg_error(), message));
        }
    })
}

fn lookup<T: TryConvert>(ruby: &Ruby, options: RHash, key: &str) -> Result<Option<T>, Error> {
    options.lookup::<_, Option<T>>(ruby.to_symbol(key))
}

fn fetch<T: TryConvert>(ruby: &Ruby, options: RHash, key: &str) -> Result<T, Error> {
    options.fetch(ruby.to_symbol(key))
}

pub(super) fn word<T: FromStr<Err = String>>(
    ruby: &Ruby,
    options: RHash,
    key: &str,
) -> Result<T, Error> {
    let word: String = fetch(ruby, options, key)?;
    word.parse().map_err(|message: String| Error::new(ruby.exception_arg_error(), message))
}

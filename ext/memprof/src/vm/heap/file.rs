//! A dump without any Ruby code, for use in a debugger.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use magnus::{Ruby, Value};
use memprof_dump::format::{Compression, Format, Options};
use memprof_dump::record::{Counts, NoteKind};
use memprof_dump::values::{Key, Policy, Values};
use memprof_dump::worker::Worker;
use serde_json::Map;

use super::roots;
use super::{Globals, Request, binding};
use crate::os_errors;
use crate::vm::dump_files;

/// Options of the dump, and facts from Ruby about threads and global variables.
pub struct Facts {
    /// Format of the dump.
    pub format: Format,
    /// Compression of the dump.
    pub compression: Compression,
    /// Which values it contains.
    pub policy: Policy,
    /// Facts about each thread, as JSON.
    pub threads: Vec<(Value, String)>,
    /// Names and values of global variables.
    pub globals: Vec<(String, Value)>,
    /// The process.
    pub pid: u32,
    /// Additional facts for the header.
    pub about: Map<String, serde_json::Value>,
}

impl Facts {
    fn none(format: &str) -> Result<Facts, String> {
        Ok(Facts {
            format: format.parse()?,
            compression: Compression::None,
            policy: Policy::Full,
            threads: Vec::new(),
            globals: Vec::new(),
            pid: std::process::id(),
            about: Map::new(),
        })
    }
}

/// Dumps the heap atomically to a file. Called with the GVL, where allocating Ruby objects is allowed.
pub fn dump_file(ruby: &Ruby, path: &str, format: &str) -> Result<Counts, String> {
    let unfinished = format!("{path}.IN_PROGRESS");
    dump_files::write_whole(
        Path::new(path),
        Path::new(&unfinished),
        |error| format!("cannot write {path}: {}", os_errors::text(error)),
        |file| dump_to(ruby, file, format),
    )
}

/// As [`dump_file`], to an open file. It is written by this thread: with `set scheduler-locking on` a debugger runs only the
/// calling thread, which would wait for another one forever.
pub fn dump_to(ruby: &Ruby, file: File, format: &str) -> Result<Counts, String> {
    dump_with(ruby, file, Facts::none(format)?)
}

/// The same with facts.
pub fn dump_with(ruby: &Ruby, file: File, facts: Facts) -> Result<Counts, String> {
    let mut data_types = binding::data_types(ruby).map_err(|error| error.to_string())?;
    for (thread, json) in &facts.threads {
        let fields: Map<String, serde_json::Value> =
            serde_json::from_str(json).map_err(|error| error.to_string())?;
        let pairs = fields.into_iter().map(|(key, value)| (key, value.to_string()));
        data_types.threads.insert(binding::address(*thread), pairs.collect());
    }
    let mut globals = Globals::default();
    for (name, value) in &facts.globals {
        roots::add_global(&mut globals, name, binding::address(*value));
    }
    let request = Request {
        options: Options {
            format: facts.format,
            compression: facts.compression,
            ruby: binding::version(ruby),
        },
        values: Values { policy: facts.policy, key: random_key() },
        before: vec![(NoteKind::Header, header(&facts))],
        memory: false,
        worker: None,
        after: Vec::new(),
        session: None,
        data_types,
        globals,
    };
    super::prepare();
    let (counts, _) = super::dump(file, request, Worker::Inline)
        .map_err(|error| format!("cannot write the dump: {}", os_errors::text(&error)))?;
    Ok(counts)
}

/// A random key, so that texts cannot be guessed from their marks.
fn random_key() -> Key {
    let random = RandomState::new();
    Key([random.hash_one(1), random.hash_one(2)])
}

fn header(facts: &Facts) -> String {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64;
    let own = serde_json::json!({
        "_id": "header", "type": "header", "format": facts.format.name(), "version": 1,
        "memprof": env!("CARGO_PKG_VERSION").replace('-', "."), "pid": facts.pid, "values": facts.policy.name(),
        "time": memprof_trace::time_text(time as i64), "time_us": time,
    });
    let mut all = facts.about.clone();
    if let serde_json::Value::Object(own) = own {
        all.extend(own);
    }
    serde_json::Value::Object(all).to_string()
}

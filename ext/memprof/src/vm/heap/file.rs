//! A dump without any Ruby code around it, for those who call it from a debugger.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{SystemTime, UNIX_EPOCH};

use magnus::Ruby;
use memprof_dump::format::{Compression, Options};
use memprof_dump::record::{Counts, NoteKind};
use memprof_dump::values::{Key, Policy, Values};
use memprof_dump::worker::Worker;

use super::{Globals, Request, binding};
use crate::os_errors;

/// Dumps the heap to a file, which appears under its name when it is whole. Called with the GVL, where allocating Ruby
/// objects is allowed.
pub fn dump_file(ruby: &Ruby, path: &str, format: &str) -> Result<Counts, String> {
    let unfinished = format!("{path}.IN_PROGRESS");
    let failed = |error: io::Error| format!("cannot write {path}: {}", os_errors::text(&error));
    let file = create(&unfinished).map_err(failed)?;
    let outcome = dump_to(ruby, file, format).and_then(|counts| {
        std::fs::rename(&unfinished, path).map_err(failed)?;
        Ok(counts)
    });
    if outcome.is_err() {
        let _ = std::fs::remove_file(&unfinished);
    }
    outcome
}

/// As [`dump_file`], to a file that is open. No second thread writes it: with `set scheduler-locking on` a debugger lets
/// only the thread run that it calls in, and would wait for the other one forever.
pub fn dump_to(ruby: &Ruby, file: File, format: &str) -> Result<Counts, String> {
    let request = Request {
        options: Options {
            format: format.parse()?,
            compression: Compression::None,
            ruby: binding::version(ruby),
        },
        values: Values {
            policy: Policy::Full,
            key: Key([0, 0]),
        },
        before: vec![(NoteKind::Header, header(format))],
        memory: false,
        after: Vec::new(),
        session: None,
        data_types: binding::data_types(ruby).map_err(|error| error.to_string())?,
        globals: Globals::default(),
    };
    super::prepare();
    let (counts, _) = super::dump(file, request, Worker::Inline)
        .map_err(|error| format!("cannot write the dump: {}", os_errors::text(&error)))?;
    Ok(counts)
}

fn create(path: &str) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

fn header(format: &str) -> String {
    let time = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    serde_json::json!({
        "_id": "header", "type": "header", "format": format, "version": 1,
        "memprof": env!("CARGO_PKG_VERSION").replace('-', "."), "pid": std::process::id(), "time": time.as_micros() as u64,
    })
    .to_string()
}

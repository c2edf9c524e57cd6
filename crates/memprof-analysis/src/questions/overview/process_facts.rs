//! Facts about the process in the header of a dump.

use serde_json::{Map, Value};

use memprof_dump::record::NoteKind;
use memprof_heap::Heap;

/// Keys of the header about the process.
const PROCESS: [&str; 16] = [
    "ruby",
    "ruby_version",
    "platform",
    "memprof",
    "pid",
    "ppid",
    "hostname",
    "program",
    "time",
    "rss",
    "generation",
    "values",
    "tracking",
    "compactions",
    "auto_compact",
    "moved",
];

/// Keys that an answer always contains, even if the dump lacks them.
const ALWAYS: [&str; 7] = ["ruby", "ruby_version", "pid", "time", "rss", "generation", "tracking"];

/// Whether the heap was read from the memory of a process, in a core file or a copy.
pub(in crate::questions) fn is_image(header: &Map<String, Value>) -> bool {
    header.get("source").is_some_and(|source| source == "image")
}

/// The header.
pub(in crate::questions) fn header(heap: &Heap) -> Map<String, Value> {
    let mut notes = heap.notes().iter();
    let header = notes.find(|(kind, _)| *kind == NoteKind::Header);
    let header = header.and_then(|(_, json)| serde_json::from_str(json).ok());
    match header {
        Some(Value::Object(header)) => header,
        _ => Map::new(),
    }
}

/// Facts about the process.
pub(super) fn process(header: &Map<String, Value>) -> Map<String, Value> {
    let mut process = Map::new();
    for key in PROCESS {
        match header.get(key) {
            Some(value) => process.insert(key.to_owned(), value.clone()),
            None if ALWAYS.contains(&key) => process.insert(key.to_owned(), Value::Null),
            None => None,
        };
    }
    process
}

/// Facts about the GC: `GC.stat`.
pub(super) fn collector(header: &Map<String, Value>) -> Map<String, Value> {
    match header.get("gc") {
        Some(Value::Object(gc)) => gc.clone(),
        _ => Map::new(),
    }
}

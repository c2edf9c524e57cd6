//! Whether a dump has allocation sites, and how to get them in the next one.

use serde_json::Value;

use super::overview::process_facts::header;
use super::units::{bytes, thousands};
use memprof_heap::Heap;

/// The class that `require "memprof/signal"` defines.
const SIGNAL: &str = "Memprof::OnSignal";

/// Whether objects were tracked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tracking {
    /// Some objects were.
    On,
    /// No object was, although memprof waits for a signal in the process.
    Off,
    /// No object was, and memprof may not have been loaded.
    Unknown,
}

impl Tracking {
    pub fn of(heap: &Heap) -> Tracking {
        if !heap.sites().is_empty() {
            return Tracking::On;
        }
        let names = heap.class_objects().iter().filter_map(|class| class.name);
        match names.map(|name| heap.name(name)).any(|name| name == SIGNAL) {
            true => Tracking::Off,
            false => Tracking::Unknown,
        }
    }

    /// How to get objects tracked.
    pub fn advice(self) -> &'static str {
        match self {
            Tracking::On => "track earlier",
            Tracking::Off => {
                "memprof/signal is loaded, but tracking is off; call Memprof.start before they are"
            }
            Tracking::Unknown => {
                "call Memprof.start (or require \"memprof/signal\") before they are"
            }
        }
    }
}

/// Possible errors of an answer about a heap; `lines` says whether it has allocation lines, if it could.
pub(super) fn remarks(heap: &Heap, lines: Option<bool>) -> Vec<String> {
    let unknown = (lines == Some(false)).then(|| match Tracking::of(heap) {
        Tracking::On => "The lines that allocated these objects are not known: they were allocated before tracking began, or by C code.".to_owned(),
        unknown => format!(
            "The dump does not say where objects were allocated: {}, and dump again.",
            unknown.advice()
        ),
    });
    let cut = heap
        .source
        .truncated
        .then(|| "The dump is truncated: what its missing part retains is not counted.".to_owned());
    [unknown, cut, not_learned(heap), left_out(heap)].into_iter().flatten().collect()
}

/// A line about memprof's own objects, if there are any.
pub(super) fn left_out(heap: &Heap) -> Option<String> {
    let own = heap.source.own;
    (own.count > 0).then(|| {
        let objects = if own.count == 1 { "object" } else { "objects" };
        let (count, size) = (thousands(own.count), bytes(own.size));
        format!("{count} {objects} of memprof itself ({size}) not counted.")
    })
}

/// A line about the unknown facts of the Ruby in a core file, if there are any.
pub(super) fn not_learned(heap: &Heap) -> Option<String> {
    let header = header(heap);
    let unknown: Vec<&str> =
        (header.get("unknown")?.as_array()?.iter()).filter_map(Value::as_str).collect();
    (!unknown.is_empty()).then(|| format!("Unknown for this Ruby: {}.", unknown.join(", ")))
}

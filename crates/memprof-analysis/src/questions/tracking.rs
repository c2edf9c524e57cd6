//! Whether a dump has allocation sites, and what else limits an answer about it.

use serde::Serialize;
use serde_json::Value;

use super::Remark;
use super::overview::process_facts::header;
use memprof_heap::Heap;

/// The class that `require "memprof/signal"` defines.
const SIGNAL: &str = "Memprof::OnSignal";

/// Whether objects were tracked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tracking {
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
}

/// Limits of an answer about a heap; `lines` says whether it has allocation lines, if it could.
pub(super) fn remarks(heap: &Heap, lines: Option<bool>) -> Vec<Remark> {
    let unknown = (lines == Some(false)).then(|| match Tracking::of(heap) {
        Tracking::On => Remark::LinesUnknown,
        tracking => Remark::NoLines { tracking },
    });
    let cut = heap.source.truncated.then_some(Remark::Truncated);
    [unknown, cut, not_learned(heap), left_out(heap)].into_iter().flatten().collect()
}

/// memprof's own objects, if there are any.
pub(super) fn left_out(heap: &Heap) -> Option<Remark> {
    let own = heap.source.own;
    (own.count > 0).then_some(Remark::OwnObjects { count: own.count, size: own.size })
}

/// The unknown facts of the Ruby in a core file, if there are any.
pub(super) fn not_learned(heap: &Heap) -> Option<Remark> {
    let header = header(heap);
    let unknown = (header.get("unknown")?.as_array()?.iter()).filter_map(Value::as_str);
    let facts: Vec<String> = unknown.map(str::to_owned).collect();
    (!facts.is_empty()).then_some(Remark::UnknownFacts { facts })
}

//! Possible errors of a comparison.

use serde_json::Value;

use super::identity::Side;
use crate::questions::Remark;
use crate::questions::leaked::has_blocks;
use memprof_dump::record::NoteKind;
use memprof_heap::Heap;

/// Facts about the dump itself.
fn header(heap: &Heap) -> Value {
    let note = heap.notes().iter().find(|(kind, _)| *kind == NoteKind::Header);
    note.and_then(|(_, json)| serde_json::from_str(json).ok()).unwrap_or(Value::Null)
}

/// All that may be wrong.
pub(super) fn of(before: &Side<'_>, after: &Side<'_>) -> Vec<Remark> {
    let generations = match (before.is_tracked(), after.is_tracked()) {
        (false, false) => Some(Remark::NoGenerations),
        (true, false) => Some(Remark::TrackingEnded),
        _ => None,
    };
    let (first, second) = (header(before.heap), header(after.heap));
    let differ = |key: &str| match (&first[key], &second[key]) {
        (Value::Null, _) | (_, Value::Null) => None,
        (left, right) => Some(left != right),
    };
    let moves = |header: &Value| header["moved"] == Value::Bool(true);
    let compacted = differ("compactions").unwrap_or(moves(&first) || moves(&second));
    let times = (first["time_us"].as_u64(), second["time_us"].as_u64());
    let reversed = matches!(times, (Some(first), Some(second)) if first > second);
    let cut = |side: &Side<'_>, name| {
        side.heap.source.truncated.then_some(Remark::OneTruncated { dump: name })
    };
    let limits = [
        generations,
        (differ("pid") == Some(true)).then_some(Remark::TwoProcesses),
        (has_blocks(before.heap) != has_blocks(after.heap)).then_some(Remark::BlocksDiffer),
        compacted.then_some(Remark::Compacted),
        reversed.then_some(Remark::WrongOrder),
        cut(before, "earlier"),
        cut(after, "later"),
    ];
    limits.into_iter().flatten().collect()
}

//! Possible errors of a comparison.

use serde_json::Value;

use super::identity::Side;
use memprof_dump::record::NoteKind;
use memprof_heap::Heap;

/// Facts about the dump itself.
fn header(heap: &Heap) -> Value {
    let note = heap.notes().iter().find(|(kind, _)| *kind == NoteKind::Header);
    note.and_then(|(_, json)| serde_json::from_str(json).ok()).unwrap_or(Value::Null)
}

/// All warnings, in sentences.
pub(super) fn of(before: &Side<'_>, after: &Side<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut warn = |text: &str| warnings.push(text.to_owned());
    match (before.is_tracked(), after.is_tracked()) {
        (false, false) => warn(
            "neither dump knows generations: an object in the slot of a freed one of the same class counts as survived. \
             To tell them apart, record with Memprof.start before the dumps",
        ),
        (true, false) => warn(
            "the later dump knows no generations: tracking ended in between, and all that was tracked counts as gone",
        ),
        _ => {}
    }
    let (first, second) = (header(before.heap), header(after.heap));
    let differ = |key: &str| match (&first[key], &second[key]) {
        (Value::Null, _) | (_, Value::Null) => None,
        (left, right) => Some(left != right),
    };
    if differ("pid") == Some(true) {
        warn("the dumps are of two processes, whose addresses mean different objects");
    }
    let moves = |header: &Value| header["moved"] == Value::Bool(true);
    if differ("compactions").unwrap_or(moves(&first) || moves(&second)) {
        warn("the heap was compacted in between: an object that moved counts as gone and as new");
    }
    if let (Some(first), Some(second)) = (first["time_us"].as_u64(), second["time_us"].as_u64()) {
        if first > second {
            warn(
                "the dumps are in the wrong order: the one that is called the earlier was written later",
            );
        }
    }
    for (side, name) in [(before, "earlier"), (after, "later")] {
        if side.heap.source.truncated {
            warn(&format!(
                "the {name} dump was cut: what was cut off looks as if it had not been there"
            ));
        }
    }
    warnings
}

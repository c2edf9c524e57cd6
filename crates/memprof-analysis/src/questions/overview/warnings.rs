//! Limits of a dump.

use serde_json::{Map, Value};

use super::Answer;
use crate::questions::Remark;
use crate::questions::tracking::{self, Tracking};
use memprof_heap::Heap;

/// Percentage of objects with a site below which the answer warns.
const MOSTLY: f64 = 5.0;

/// The limits, the worst first.
pub(super) fn of(heap: &Heap, answer: &Answer, header: &Map<String, Value>) -> Vec<Remark> {
    let source = &answer.source;
    let unit = if source.format == "binary" { "block" } else { "line" };
    let skipped = source.first_skipped;
    let skipped = skipped.map(|first| Remark::Skipped { unit, count: source.skipped, first });
    let missing = source.missing;
    let moved = header.get("moved") == Some(&Value::Bool(true));
    let limits = [
        (answer.objects.count == 0).then_some(Remark::NoObjects),
        source.truncated.then_some(Remark::EndsEarly),
        skipped,
        (missing > 0).then_some(Remark::Missing { count: missing }),
        heap.categories().is_empty().then_some(Remark::Rootless),
        moved.then_some(Remark::Moved),
        lines(heap, answer),
        has_no_texts(answer).then_some(Remark::NoTexts),
        tracking::not_learned(heap),
        tracking::left_out(heap),
    ];
    limits.into_iter().flatten().collect()
}

fn lines(heap: &Heap, answer: &Answer) -> Option<Remark> {
    let percent = answer.tracked.count as f64 / answer.objects.count as f64 * 100.0;
    match (answer.objects.count, answer.tracked.count) {
        (0, _) => None,
        (_, 0) => Some(Remark::NoLines { tracking: Tracking::of(heap) }),
        _ => (percent < MOSTLY).then_some(Remark::FewLines { percent }),
    }
}

fn has_no_texts(answer: &Answer) -> bool {
    let policy = answer.process.get("values").and_then(Value::as_str);
    matches!(policy, Some("none" | "length" | "hash"))
}

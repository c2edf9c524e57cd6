//! Limits of a dump, in sentences.

use serde_json::{Map, Value};

use super::Answer;
use crate::questions::tracking::{self, Tracking};
use memprof_heap::Heap;

/// Percentage of objects with a site below which the answer warns.
const MOSTLY: f64 = 5.0;

/// Sentences for people, the worst problem first.
pub(super) fn of(heap: &Heap, answer: &Answer, header: &Map<String, Value>) -> Vec<String> {
    let mut warnings = Vec::new();
    let source = &answer.source;
    let rooted = !heap.categories().is_empty();
    if answer.objects.count == 0 {
        warnings.push("The dump has no objects.".to_owned());
    }
    if source.truncated {
        warnings.push(
            "The dump ends too early: objects are missing, and others look like garbage because what references them is missing."
                .to_owned(),
        );
    }
    if let Some(first) = source.first_skipped {
        let parts = if source.format == "binary" { ("block", "blocks") } else { ("line", "lines") };
        let broken = counted(source.skipped, parts);
        warnings.push(format!(
            "Skipped {broken} that cannot be read, the first is {} {first}.",
            parts.0
        ));
    }
    if source.missing > 0 {
        let references = counted(source.missing, ("reference leads", "references lead"));
        warnings.push(format!("{references} to objects that the dump does not have."));
    }
    if !rooted {
        warnings.push(
            "The dump has no roots, so retained sizes and paths are not known: dump the whole heap, without since:."
                .to_owned(),
        );
    }
    if header.get("moved") == Some(&Value::Bool(true)) {
        warnings.push(
            "The collector moved objects while the dump was made: some references may be wrong."
                .to_owned(),
        );
    }
    let objects = answer.objects.count.max(1) as f64;
    let share = answer.tracked.count as f64 / objects * 100.0;
    if answer.tracked.count == 0 && answer.objects.count > 0 {
        warnings.push(format!(
            "It is not known where objects were allocated: {}.",
            Tracking::of(heap).advice()
        ));
    } else if share < MOSTLY {
        warnings.push(format!(
            "Allocation lines are known for only {share:.1} % of the objects: start tracking earlier."
        ));
    }
    if source_has_no_texts(answer) {
        warnings.push(
            "Contents of strings are not known: dump with values: :full or :truncate.".to_owned(),
        );
    }
    warnings.extend(tracking::not_learned(heap));
    warnings.extend(tracking::left_out(heap));
    warnings
}

fn source_has_no_texts(answer: &Answer) -> bool {
    let policy = answer.process.get("values").and_then(Value::as_str);
    matches!(policy, Some("none" | "length" | "hash"))
}

fn counted(count: u64, (one, many): (&str, &str)) -> String {
    match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {many}"),
    }
}

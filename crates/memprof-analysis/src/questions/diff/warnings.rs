//! Possible errors of a comparison.

use serde_json::{Map, Value};

use super::identity::Side;
use crate::questions::Remark;
use crate::questions::leaked::has_blocks;
use crate::questions::overview::process_facts::{header, is_image};

/// All that may be wrong.
pub(super) fn of(before: &Side<'_>, after: &Side<'_>) -> Vec<Remark> {
    let generations = match (before.is_tracked(), after.is_tracked()) {
        (false, false) => Some(Remark::NoGenerations),
        (true, false) => Some(Remark::TrackingEnded),
        _ => None,
    };
    let (first, second) = (header(before.heap), header(after.heap));
    let differ = |key: &str| {
        let known = first.get(key).zip(second.get(key));
        let known = known.filter(|(left, right)| !left.is_null() && !right.is_null());
        known.map(|(left, right)| left != right)
    };
    let moves = |header: &Map<String, Value>| header.get("moved") == Some(&Value::Bool(true));
    let compacted = differ("compactions").unwrap_or(moves(&first) || moves(&second));
    let time = |header: &Map<String, Value>| header.get("time_us")?.as_u64();
    let times = (time(&first), time(&second));
    let reversed = matches!(times, (Some(first), Some(second)) if first > second);
    let cut = |side: &Side<'_>, name| {
        side.heap.source.truncated.then_some(Remark::OneTruncated { dump: name })
    };
    let limits = [
        generations,
        (differ("pid") == Some(true)).then_some(Remark::TwoProcesses),
        (has_blocks(before.heap) != has_blocks(after.heap)).then_some(Remark::BlocksDiffer),
        (is_image(&first) != is_image(&second)).then_some(Remark::ImagesDiffer),
        compacted.then_some(Remark::Compacted),
        reversed.then_some(Remark::WrongOrder),
        cut(before, "earlier"),
        cut(after, "later"),
    ];
    limits.into_iter().flatten().collect()
}

//! Valgrind's Massif: snapshots of live bytes, the peak and the end with what they consist of. The format is described by
//! the reader that comes with Valgrind (`ms_print`).

use std::io::{self, Write};

use super::{Value, one_line, ranked};
use crate::summary::Summary;

/// Locations below this share are summed up: Massif's own default.
const THRESHOLD: f64 = 0.01;
const RULE: &str = "#-----------";

/// What a snapshot says of its bytes.
enum Tree {
    None,
    Of(Value, &'static str),
}

pub fn write(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "desc: memprof malloc")?;
    writeln!(out, "cmd: {}", one_line(&summary.command))?;
    writeln!(out, "time_unit: ms")?;
    let peak = (summary.peak_ms, summary.total.peak_bytes);
    let points: Vec<(u64, u64)> = summary
        .timeline
        .iter()
        // The most between two points is what it says; the peak is written by itself.
        .map(|point| (point.ms, point.live_bytes.min(peak.1)))
        .collect();
    let before = points.partition_point(|(ms, _)| *ms <= peak.0);
    let (first, rest) = points.split_at(before);
    let mut number = 0;
    for (ms, bytes) in first {
        snapshot(out, &mut number, (*ms, *bytes), summary, Tree::None)?;
    }
    snapshot(
        out,
        &mut number,
        peak,
        summary,
        Tree::Of(Value::Peak, "peak"),
    )?;
    for (ms, bytes) in rest {
        snapshot(out, &mut number, (*ms, *bytes), summary, Tree::None)?;
    }
    let end = (summary.ms.max(peak.0), summary.total.leaked_bytes);
    snapshot(
        out,
        &mut number,
        end,
        summary,
        Tree::Of(Value::Leaked, "detailed"),
    )
}

fn snapshot(
    out: &mut dyn Write,
    number: &mut usize,
    (ms, bytes): (u64, u64),
    summary: &Summary,
    tree: Tree,
) -> io::Result<()> {
    writeln!(out, "{RULE}\nsnapshot={number}\n{RULE}")?;
    writeln!(
        out,
        "time={ms}\nmem_heap_B={bytes}\nmem_heap_extra_B=0\nmem_stacks_B=0"
    )?;
    *number += 1;
    let Tree::Of(value, kind) = tree else {
        return writeln!(out, "heap_tree=empty");
    };
    writeln!(out, "heap_tree={kind}")?;
    let ranked = ranked(summary, value);
    let least = bytes as f64 * THRESHOLD;
    let shown = ranked.partition_point(|(_, bytes)| *bytes as f64 >= least);
    let (shown, small) = ranked.split_at(shown);
    let children = shown.len() + usize::from(!small.is_empty());
    writeln!(
        out,
        "n{children}: {bytes} (heap allocation functions) malloc/new/new[], --alloc-fns, etc."
    )?;
    for (location, bytes) in shown {
        let location = one_line(location);
        writeln!(out, " n0: {bytes} 0x0: {location} ({location})")?;
    }
    if !small.is_empty() {
        let (places, sum) = (
            small.len(),
            small.iter().map(|(_, bytes)| bytes).sum::<u64>(),
        );
        let word = if places == 1 { "place" } else { "places" };
        writeln!(
            out,
            " n0: {sum} in {places} {word}, below massif's threshold (1.00%)"
        )?;
    }
    Ok(())
}

//! Valgrind's Massif: snapshots of live bytes, with details at the peak and at the end. The format is described by the reader
//! that comes with Valgrind (`ms_print`).

use std::io::{self, Write};

use memprof_profile::profile::estimates;

use super::{Value, one_line};
use crate::summary::Summary;
use crate::tree::{Children, Direction, Tree};

/// Locations below this share are combined: Massif's own default.
const THRESHOLD: f64 = 0.01;
/// Maximum frames of a stack: Massif's own default.
const DEPTH: usize = 30;
const RULE: &str = "#-----------";

/// Details of a snapshot's bytes.
enum Contents {
    None,
    Of(Value, &'static str),
}

pub fn write(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    let estimates = summary.sample.map(estimates);
    let note = estimates.map_or_else(String::new, |note| format!(", {note}"));
    writeln!(out, "desc: memprof malloc{note}")?;
    writeln!(out, "cmd: {}", one_line(&summary.command))?;
    writeln!(out, "time_unit: ms")?;
    let peak = (summary.peak_ms, summary.total.peak_bytes);
    let points: Vec<(u64, u64)> = summary
        .timeline
        .iter()
        // A point has the maximum since the point before; the peak is a snapshot of its own.
        .map(|point| (point.ms, point.live_bytes.min(peak.1)))
        .collect();
    let before = points.partition_point(|(ms, _)| *ms <= peak.0);
    let (first, rest) = points.split_at(before);
    let mut number = 0;
    for (ms, bytes) in first {
        snapshot(out, &mut number, (*ms, *bytes), summary, Contents::None)?;
    }
    snapshot(out, &mut number, peak, summary, Contents::Of(Value::Peak, "peak"))?;
    for (ms, bytes) in rest {
        snapshot(out, &mut number, (*ms, *bytes), summary, Contents::None)?;
    }
    let end = (summary.ms.max(peak.0), summary.total.leaked_bytes);
    snapshot(out, &mut number, end, summary, Contents::Of(Value::Leaked, "detailed"))
}

fn snapshot(
    out: &mut dyn Write,
    number: &mut usize,
    (ms, bytes): (u64, u64),
    summary: &Summary,
    contents: Contents,
) -> io::Result<()> {
    writeln!(out, "{RULE}\nsnapshot={number}\n{RULE}")?;
    writeln!(out, "time={ms}\nmem_heap_B={bytes}\nmem_heap_extra_B=0\nmem_stacks_B=0")?;
    *number += 1;
    let Contents::Of(value, kind) = contents else {
        return writeln!(out, "heap_tree=empty");
    };
    writeln!(out, "heap_tree={kind}")?;
    let tree = Tree::new(&summary.stacks, Direction::BottomUp, value);
    let least = (bytes as f64 * THRESHOLD).ceil() as u64;
    write_branch(&tree, 0, 0, least.max(1), out)
}

/// A branch and its children.
fn write_branch(
    tree: &Tree<'_>,
    at: usize,
    depth: usize,
    least: u64,
    out: &mut dyn Write,
) -> io::Result<()> {
    let branch = tree.branch(at);
    let children = if depth < DEPTH { tree.children(at, least) } else { Children::default() };
    let count = children.shown.len() + usize::from(children.others > 0);
    let (indent, bytes) = (" ".repeat(depth), branch.bytes);
    write!(out, "{indent}n{count}: {bytes} ")?;
    match tree.frame(at) {
        None => writeln!(out, "(heap allocation functions) malloc/new/new[], --alloc-fns, etc.")?,
        Some(frame) => {
            let (label, location) = (one_line(&frame.label()), one_line(&frame.location()));
            writeln!(out, "0x0: {label} ({location})")?;
        }
    }
    for child in children.shown {
        write_branch(tree, child, depth + 1, least, out)?;
    }
    if children.others > 0 {
        let (places, sum) = (children.others, children.other_bytes);
        let word = if places == 1 { "place" } else { "places" };
        writeln!(out, "{indent} n0: {sum} in {places} {word}, below massif's threshold (1.00%)")?;
    }
    Ok(())
}

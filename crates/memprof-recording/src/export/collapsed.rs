//! Allocating stacks, one per line: frames, outermost first, and bytes.

use std::io::{self, Write};

use super::{Value, one_line};
use crate::summary::Summary;

pub fn write(summary: &Summary, value: Value, out: &mut dyn Write) -> io::Result<()> {
    let stacks = &summary.stacks;
    let counts = stacks.counts.iter();
    let mut lines: Vec<(String, u64)> = counts
        .map(|(node, counts)| (*node, value.of(counts)))
        .filter(|(_, bytes)| *bytes > 0)
        .map(|(node, bytes)| {
            let mut frames: Vec<String> = stacks
                .path(node)
                .map(|node| one_line(&stacks.frame(node).label()).replace(';', ":"))
                .collect();
            frames.reverse();
            (frames.join(";"), bytes)
        })
        .collect();
    lines.sort_unstable();
    for same in lines.chunk_by(|one, other| one.0 == other.0) {
        let bytes: u64 = same.iter().map(|(_, bytes)| bytes).sum();
        writeln!(out, "{} {bytes}", same[0].0)?;
    }
    Ok(())
}

//! A recording as an allocation profile, for the exports of those.

use memprof_profile::profile::{self, Amount, Meta, Profile, SiteRow, StackNode};
use memprof_profile::sites::Interner;

use crate::export::Value;
use crate::stacks::Frame;
use crate::summary::Summary;

/// Name of blocks where a profile has classes of objects.
const BLOCK: &str = "<malloc>";

/// All blocks as objects of one class. Retained are those live at the end, or at the peak if `value` says so.
pub fn of(summary: &Summary, value: Value) -> Profile {
    let stacks = &summary.stacks;
    let mut files: Interner<String> = Interner::default();
    let frames = stacks.frames.iter().map(|frame| match frame {
        Frame::Ruby { path, line, method } => profile::Frame {
            file: files.intern(path.clone()),
            method: if method.is_empty() { format!("{path}:{line}") } else { method.clone() },
            first_line: 0,
            native: false,
        },
        Frame::Native(_) => profile::Frame {
            file: files.intern(String::new()),
            method: frame.label(),
            first_line: 0,
            native: true,
        },
    });
    let frames = frames.collect();
    let nodes = stacks.nodes.iter().map(|node| StackNode {
        parent: node.parent,
        frame: node.frame,
        line: match &stacks.frames[node.frame as usize] {
            Frame::Ruby { line, .. } => u32::try_from(*line).unwrap_or(u32::MAX),
            Frame::Native(_) => 0,
        },
    });
    let rows = stacks.counts.iter().map(|(node, counts)| {
        let retained = match value {
            Value::Peak => Amount::new(counts.peak, counts.peak_bytes),
            Value::Leaked | Value::Allocated => Amount::new(counts.leaked, counts.leaked_bytes),
        };
        SiteRow {
            site: *node,
            stack: *node,
            class: 0,
            allocated: Amount::new(counts.allocations, counts.allocated_bytes),
            retained,
            freed: Amount::default(),
            ages: profile::Ages::default(),
            peak: Amount::default(),
        }
    });
    Profile {
        meta: Meta {
            runtime: "malloc".to_owned(),
            memprof: env!("CARGO_PKG_VERSION").to_owned(),
            pid: u32::try_from(summary.pid).unwrap_or(0),
            command: summary.command.clone(),
            started_at: summary.started as f64 / 1e3,
            duration: summary.ms as f64 / 1e3,
            sample: 1,
            malloc_sample: summary.sample,
            ..Meta::default()
        },
        rows: rows.collect(),
        stacks: nodes.collect(),
        frames,
        files: files.into_values(),
        classes: vec![BLOCK.to_owned()],
        ..Profile::default()
    }
}

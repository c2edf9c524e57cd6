//! What a recording adds up to, by the location that allocated.

use std::io::Read;

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::reader::{End, Error, read};
use crate::record::{Event, Record};
use crate::timeline::{Point, Timeline};

/// A location.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Row {
    /// `file:line`, or native code; empty for a sum.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub location: String,
    /// Calls of malloc and the like.
    pub allocations: u64,
    /// Their bytes.
    pub allocated_bytes: u64,
    /// Blocks that were freed by the very next event of the recording.
    pub temporary: u64,
    /// Bytes live when most bytes of all were live.
    pub peak_bytes: u64,
    /// Blocks live at the end.
    pub leaked: u64,
    /// Their bytes.
    pub leaked_bytes: u64,
}

/// Blocks of a range of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SizeClass {
    /// The largest size; the class begins behind that of the class before.
    pub up_to: u64,
    /// Calls.
    pub allocations: u64,
    /// Their bytes.
    pub allocated_bytes: u64,
}

/// A recording, summed up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// What was run.
    pub command: String,
    /// Process.
    pub pid: u64,
    /// When the recording started, in milliseconds since 1970.
    pub started: u64,
    /// How long it took, in milliseconds.
    pub ms: u64,
    /// Whether it was stopped; else it goes on, or its process was killed.
    pub complete: bool,
    /// The byte of the file from which on it is damaged.
    pub damaged_at: Option<u64>,
    /// Blocks that could not be recorded.
    pub missed: u64,
    /// The sum of all rows, with the bytes at the peak.
    pub total: Row,
    /// When most bytes were live, in milliseconds, to the block of the file.
    pub peak_ms: u64,
    /// The greatest RSS that was seen, in bytes.
    pub peak_rss: u64,
    /// Locations, in no order.
    pub locations: Vec<Row>,
    /// Sizes of blocks, smallest first.
    pub sizes: Vec<SizeClass>,
    /// Consumption over time.
    pub timeline: Vec<Point>,
}

impl Summary {
    /// Reads a recording.
    ///
    /// # Errors
    ///
    /// When it is none, or can't be read.
    pub fn read(input: &mut dyn Read) -> Result<Summary, Error> {
        let mut sums = Sums {
            sizes: vec![(0, 0); CLASSES],
            ..Sums::default()
        };
        let end = read(input, &mut |record| sums.add(record).is_some())?;
        Ok(sums.finish(end))
    }
}

/// No recorder makes more: so much memory a damaged file may take.
const MOST_NODES: usize = 1 << 23;
const MOST_TEXT: usize = 1 << 28;

/// What is counted at a location. `peak` is as of the peak with the number `seen`; if there was a later one, it is what
/// is live, as nothing happened here since.
#[derive(Default)]
struct Counters {
    allocations: u64,
    allocated_bytes: u64,
    temporary: u64,
    live: u64,
    live_bytes: u64,
    peak: u64,
    seen: u64,
}

#[derive(Default)]
struct Sums {
    /// Names of frames, and for each the first frame of the same name.
    names: Vec<String>,
    first: FxHashMap<String, usize>,
    counters: Vec<Counters>,
    /// The counters of each node.
    nodes: Vec<u32>,
    text: usize,
    live: u64,
    live_bytes: u64,
    peak_bytes: u64,
    peak_number: u64,
    peak_ms: u64,
    most_since_clock: u64,
    last: Option<Event>,
    allocations: u64,
    allocated_bytes: u64,
    temporary: u64,
    sizes: Vec<(u64, u64)>,
    timeline: Timeline,
    ms: u64,
    peak_rss: u64,
    pid: u64,
    started: u64,
    command: String,
    missed: u64,
}

/// One for each power of two.
const CLASSES: usize = 65;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The class of a size: that of the next power of two.
fn class(size: u64) -> usize {
    match size {
        0..=8 => 3,
        _ => (64 - (size - 1).leading_zeros()) as usize,
    }
}

impl Sums {
    /// None for a record that can't be.
    fn add(&mut self, record: Record<'_>) -> Option<()> {
        match record {
            Record::Allocation(event) => self.allocate(event),
            Record::Free(event) => self.free(event),
            Record::Clock { ms, rss } => {
                self.ms = self.ms.max(ms);
                self.peak_rss = self.peak_rss.max(rss);
                self.timeline.add(Point {
                    ms: self.ms,
                    live_bytes: self.most_since_clock,
                    rss,
                    allocations: self.allocations,
                });
                self.most_since_clock = self.live_bytes;
                Some(())
            }
            Record::RubyFrame { path, line, .. } => self.frame(format!("{}:{line}", text(path))),
            Record::NativeFrame {
                address,
                offset,
                module,
            } => self.frame(match module {
                [] => format!("[{address:#x}]"),
                _ => format!("{}(+{offset:#x}) [{address:#x}]", text(module)),
            }),
            Record::Node { parent, frame } => {
                let frame = usize::try_from(frame).ok()?.checked_sub(1)?;
                if frame >= self.names.len()
                    || parent > self.nodes.len() as u64
                    || self.nodes.len() >= MOST_NODES
                {
                    return None;
                }
                self.nodes.push(frame as u32);
                Some(())
            }
            Record::Name { frame, text: name } => {
                let frame = usize::try_from(frame).ok()?.checked_sub(1)?;
                self.text += name.len();
                if self.text > MOST_TEXT {
                    return None;
                }
                *self.names.get_mut(frame)? = text(name);
                Some(())
            }
            Record::Start { pid, time, command } => {
                (self.pid, self.started, self.command) = (pid, time, text(command));
                Some(())
            }
            Record::End { missed } => {
                self.missed = missed;
                Some(())
            }
        }
    }

    fn frame(&mut self, name: String) -> Option<()> {
        self.text += name.len();
        if self.text > MOST_TEXT || self.names.len() >= MOST_NODES {
            return None;
        }
        self.names.push(name);
        self.counters.push(Counters::default());
        Some(())
    }

    /// The counters of an event, as they are before it.
    fn at(&mut self, node: u64) -> Option<&mut Counters> {
        let node = usize::try_from(node).ok()?.checked_sub(1)?;
        let counters = self.counters.get_mut(*self.nodes.get(node)? as usize)?;
        if counters.seen != self.peak_number {
            counters.peak = counters.live_bytes;
            counters.seen = self.peak_number;
        }
        Some(counters)
    }

    fn allocate(&mut self, event: Event) -> Option<()> {
        let size = event.size;
        let sum = self.live_bytes.checked_add(size)?;
        let total = self.allocated_bytes.checked_add(size)?;
        let counters = self.at(event.node)?;
        counters.allocations += 1;
        counters.allocated_bytes += size;
        counters.live += 1;
        counters.live_bytes += size;
        (self.live_bytes, self.allocated_bytes) = (sum, total);
        self.live += 1;
        self.allocations += 1;
        let (calls, bytes) = &mut self.sizes[class(size)];
        *calls += 1;
        *bytes += size;
        if sum > self.peak_bytes {
            self.peak_bytes = sum;
            self.peak_ms = self.ms;
            self.peak_number += 1;
        }
        self.most_since_clock = self.most_since_clock.max(sum);
        self.last = Some(event);
        Some(())
    }

    fn free(&mut self, event: Event) -> Option<()> {
        let is_temporary = self.last.take() == Some(event);
        let counters = self.at(event.node)?;
        counters.live = counters.live.checked_sub(1)?;
        counters.live_bytes = counters.live_bytes.checked_sub(event.size)?;
        counters.temporary += u64::from(is_temporary);
        self.live -= 1;
        self.live_bytes -= event.size;
        self.temporary += u64::from(is_temporary);
        Some(())
    }

    fn finish(mut self, end: End) -> Summary {
        let locations = self.rows();
        let sizes = self.sizes.iter().enumerate();
        let sizes = sizes.filter(|(_, (calls, _))| *calls > 0);
        let sizes = sizes.map(|(power, &(allocations, allocated_bytes))| SizeClass {
            up_to: 1u64.checked_shl(power as u32).unwrap_or(u64::MAX),
            allocations,
            allocated_bytes,
        });
        Summary {
            command: self.command,
            pid: self.pid,
            started: self.started,
            ms: self.ms,
            complete: end == End::Complete,
            damaged_at: match end {
                End::Damaged(at) => Some(at),
                End::Complete | End::Open => None,
            },
            missed: self.missed,
            total: Row {
                location: String::new(),
                allocations: self.allocations,
                allocated_bytes: self.allocated_bytes,
                temporary: self.temporary,
                peak_bytes: self.peak_bytes,
                leaked: self.live,
                leaked_bytes: self.live_bytes,
            },
            peak_ms: self.peak_ms,
            peak_rss: self.peak_rss,
            locations,
            sizes: sizes.collect(),
            timeline: self.timeline.into_points(),
        }
    }

    /// Frames of the same name are one row.
    fn rows(&mut self) -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::new();
        let names = std::mem::take(&mut self.names);
        for (name, counters) in names.into_iter().zip(&self.counters) {
            if counters.allocations == 0 {
                continue;
            }
            let at = *self.first.entry(name).or_insert_with_key(|name| {
                rows.push(Row {
                    location: name.clone(),
                    ..Row::default()
                });
                rows.len() - 1
            });
            let row = &mut rows[at];
            row.allocations += counters.allocations;
            row.allocated_bytes += counters.allocated_bytes;
            row.temporary += counters.temporary;
            row.leaked += counters.live;
            row.leaked_bytes += counters.live_bytes;
            row.peak_bytes += if counters.seen == self.peak_number {
                counters.peak
            } else {
                counters.live_bytes
            };
        }
        rows
    }
}

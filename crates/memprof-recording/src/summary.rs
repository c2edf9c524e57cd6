//! Summary of a recording by allocating location.

use std::io::Read;

use serde::Serialize;

use crate::reader::{Error, read};
use crate::selection::Selection;
use crate::stacks::{Counts, Row, Stacks};
use crate::sums::Sums;
use crate::symbols;
use crate::timeline::Point;

/// Blocks of a range of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SizeClass {
    /// The largest size; the class starts above the previous one.
    pub up_to: u64,
    /// Calls.
    pub allocations: u64,
    /// Their bytes.
    pub allocated_bytes: u64,
}

/// A summarized recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// The recorded command.
    pub command: String,
    /// Process.
    pub pid: u64,
    /// When the recording started, in milliseconds since 1970.
    pub started: u64,
    /// Its duration, in milliseconds.
    pub ms: u64,
    /// Whether it was stopped; otherwise it is still being written, or its process was killed.
    pub complete: bool,
    /// Offset of the damage in the file.
    pub damaged_at: Option<u64>,
    /// Average bytes between samples: counts are estimates, and temporary blocks are unknown. None if all blocks are recorded.
    pub sample: Option<u64>,
    /// Whether blocks have addresses.
    pub addresses: bool,
    /// Blocks that could not be recorded.
    pub missed: u64,
    /// Sum of all rows, with the bytes at the peak.
    pub total: Counts,
    /// Time of the peak of live bytes, in milliseconds, to the precision of a block in the file.
    pub peak_ms: u64,
    /// Maximum RSS seen, in bytes.
    pub peak_rss: u64,
    /// Locations, unordered.
    pub locations: Vec<Row>,
    /// Sizes of blocks, smallest first.
    pub sizes: Vec<SizeClass>,
    /// Consumption over time.
    pub timeline: Vec<Point>,
    /// Blocks live at the end that are known leaks and not counted.
    pub suppressed: u64,
    /// Their bytes.
    pub suppressed_bytes: u64,
    /// Whether callers were recorded.
    pub callers: bool,
    /// The stacks that allocated.
    #[serde(skip)]
    pub stacks: Stacks,
}

impl Summary {
    /// Summarizes a recording kept in memory, without events: live blocks are live at the peak and at the end. `sample`: bytes
    /// between samples.
    #[must_use]
    pub fn of_stacks(mut stacks: Stacks, sample: Option<u64>) -> Summary {
        symbols::name(&mut stacks.frames);
        Summary {
            pid: u64::from(std::process::id()),
            sample,
            total: stacks.total(),
            locations: stacks.rows(),
            callers: stacks.have_callers(),
            stacks,
            ..Summary::default()
        }
    }

    /// Reads a recording.
    ///
    /// # Errors
    ///
    /// If it is not a recording, or can't be read.
    pub fn read(input: &mut dyn Read) -> Result<Summary, Error> {
        Summary::read_part(input, &Selection::default())
    }

    /// Reads part of a recording.
    ///
    /// # Errors
    ///
    /// If it is not a recording, or can't be read.
    pub fn read_part(input: &mut dyn Read, selection: &Selection) -> Result<Summary, Error> {
        let mut sums = Sums::new(selection);
        let end = read(input, &mut |record| sums.add(record).is_some())?;
        let mut summary = sums.finish(end);
        let suppressed = selection.suppressions.apply(&mut summary.stacks);
        if suppressed.leaked > 0 {
            (summary.suppressed, summary.suppressed_bytes) =
                (suppressed.leaked, suppressed.leaked_bytes);
            summary.total.leaked -= suppressed.leaked;
            summary.total.leaked_bytes -= suppressed.leaked_bytes;
            summary.locations = summary.stacks.rows();
        }
        Ok(summary)
    }
}

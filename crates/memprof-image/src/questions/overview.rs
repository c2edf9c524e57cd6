//! The origin of an image, and the distribution of its writable memory.

use serde::{Deserialize, Serialize};

use super::{Total, damage};
use crate::analysis::Analysis;
use crate::blocks::Kind;
use crate::image::Machine;
use crate::sets::SetName;

/// Has no parameters.
#[derive(Deserialize)]
pub struct Question {}

/// The answer. Sizes are in bytes.
#[derive(Serialize)]
pub struct Answer {
    command: String,
    pid: Option<u32>,
    signal: Option<u32>,
    machine: &'static str,
    threads: usize,
    /// `glibc`, or the allocator of a loaded library; None if unknown.
    allocator: Option<&'static str>,
    /// The reason why blocks are unknown: then all their numbers are null.
    unknown: Option<String>,
    /// Writable memory in the image.
    writable: u64,
    /// Memory and number of arenas.
    arenas: Total,
    /// Blocks with a mapping of their own.
    mapped: Option<Total>,
    /// Pages of Ruby's heap; None without Ruby.
    ruby_pages: Option<Total>,
    stacks: Total,
    statics: Total,
    /// Number of other mappings, and bytes of their nonzero pages.
    external: Total,
    /// Pages of them that consist of zeros.
    zeros: u64,
    used: Option<Total>,
    free: Option<Total>,
    thread_cached: Option<Total>,
    /// Free bytes at the ends of arenas.
    tops: Option<u64>,
    owned: Option<Total>,
    native: Option<Total>,
    garbage: Option<Total>,
    leaked: Option<Total>,
    unreferenced: Option<Total>,
    #[serde(flatten)]
    damage: damage::Answer,
    /// The facts about used blocks from a recording, if one was added.
    recording: Option<Recording>,
}

#[derive(Serialize)]
struct Recording {
    /// Blocks with a known allocation site.
    known: Total,
    unknown: Total,
    /// Whether it was stopped before the image was taken.
    ended: bool,
    /// Bytes between samples; None: all blocks were recorded.
    sample: Option<u64>,
    /// The offset in its file at which damage begins.
    damaged_at: Option<u64>,
}

impl Question {
    /// Sums up the memory.
    pub fn answer(&self, analysis: &Analysis) -> Result<Answer, String> {
        let (image, heap, map) = (&analysis.image, &analysis.heap, &analysis.map);
        let sum = |ranges: &mut dyn Iterator<Item = std::ops::Range<u64>>| {
            let mut total = Total::default();
            ranges.for_each(|range| total.add(range.end - range.start));
            total
        };
        let unknown = analysis.unknown_blocks();
        let is_known = unknown.is_none();
        let of = |set| {
            let mut total = Total::default();
            for (number, block) in heap.blocks.iter().enumerate() {
                if analysis.contains(set, number as u32) {
                    total.add(block.size);
                }
            }
            is_known.then_some(total)
        };
        let ruby = sum(&mut analysis.ruby.ranges());
        let external = sum(&mut map.external.iter().cloned());
        let zeros = map.external.iter().map(|range| zeros(analysis, range.clone())).sum();
        Ok(Answer {
            command: image.command.clone(),
            pid: image.pid,
            signal: image.signal,
            machine: match image.machine {
                Machine::X86_64 => "x86-64",
                Machine::Aarch64 => "aarch64",
            },
            threads: image.threads.len(),
            allocator: analysis.allocator(),
            writable: sum(&mut image.writable_runs(|_| true).into_iter()).bytes,
            arenas: Total { count: heap.arenas.len() as u64, bytes: sum(&mut heap.heaps()).bytes },
            mapped: is_known.then(|| sum(&mut heap.mapped.iter().cloned())),
            ruby_pages: (ruby.count > 0).then_some(ruby),
            stacks: sum(&mut map.stacks.iter().cloned()),
            statics: sum(&mut map.statics.iter().cloned()),
            external: Total { bytes: external.bytes - zeros, ..external },
            zeros,
            used: of(SetName::Used),
            free: of(SetName::Free),
            thread_cached: of(SetName::ThreadCached),
            tops: is_known.then(|| heap.tops.iter().sum()),
            owned: of(SetName::Owned),
            native: of(SetName::Native),
            garbage: of(SetName::Garbage),
            leaked: of(SetName::Leaked),
            unreferenced: of(SetName::Unreferenced),
            damage: damage::Answer::of(analysis),
            recording: recording(analysis),
            unknown,
        })
    }
}

fn recording(analysis: &Analysis) -> Option<Recording> {
    let recorded = analysis.recorded()?;
    let (mut known, mut unknown) = (Total::default(), Total::default());
    let blocks = (0..).zip(analysis.heap.blocks.iter());
    for (number, block) in blocks.filter(|(_, block)| block.kind == Kind::Used) {
        match recorded.index(number) {
            Some(_) => known.add(block.size),
            None => unknown.add(block.size),
        }
    }
    Some(Recording {
        known,
        unknown,
        ended: recorded.ended,
        sample: recorded.sample,
        damaged_at: recorded.damaged_at,
    })
}

/// Bytes of pages that consist of zeros: most of them were never written to.
fn zeros(analysis: &Analysis, range: std::ops::Range<u64>) -> u64 {
    const PAGE: u64 = 4096;
    let mut used = 0;
    let mut last = None;
    analysis.image.each_word(range.clone(), |address, word| {
        if word != 0 && last != Some(address / PAGE) {
            last = Some(address / PAGE);
            let page = address & !(PAGE - 1);
            used += range.end.min(page + PAGE) - range.start.max(page);
        }
    });
    range.end - range.start - used
}

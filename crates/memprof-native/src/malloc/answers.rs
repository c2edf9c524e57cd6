//! The results of a recording in memory.

use std::collections::HashSet;

use memprof_recording::{self as recorded, Stacks};

use super::recorder::{age, generation, reading};
use super::sites::{self, SiteId};
use super::{Counts, LiveBlock, Location, Site, block_shards, names};

/// All sites where something was counted.
#[must_use]
pub fn sites() -> Vec<Site> {
    reading(sites::counted)
}

/// The stacks of all sites with their counts. Live blocks count as live both at the peak and at the end.
#[must_use]
pub fn stacks() -> Stacks {
    let (frames, nodes, counts) = reading(sites::tree);
    // Asks the loader, whose lock a thread in a hook may have: so not while the tables' lock is held.
    let frames = frames.into_iter().map(|frame| match frame.location {
        Location::Line { path, line } => recorded::Frame::Ruby {
            path: path.to_string_lossy().into_owned(),
            line: u64::from(line),
            method: frame.method.to_string_lossy().into_owned(),
        },
        Location::Native(address) => recorded::Frame::Native(names::native(address)),
    });
    let counts = counts.into_iter().map(|(node, counts)| {
        let counts = recorded::Counts {
            allocations: counts.allocations,
            allocated_bytes: counts.allocated_bytes,
            temporary: 0,
            peak: counts.live,
            peak_bytes: counts.live_bytes,
            leaked: counts.live,
            leaked_bytes: counts.live_bytes,
        };
        (node, counts)
    });
    Stacks { frames: frames.collect(), nodes, counts: counts.collect() }
}

/// The counts of a location; None if nothing was ever allocated there.
#[must_use]
pub fn counts(location: &Location) -> Option<Counts> {
    reading(|| {
        let sites = sites::find(location);
        (!sites.is_empty()).then(|| sites::counts(&sites))
    })
}

/// The live blocks of a location, in no particular order.
#[must_use]
pub fn live_blocks(location: &Location) -> Vec<LiveBlock> {
    reading(|| {
        let mut found = Vec::new();
        let sites: HashSet<SiteId> = sites::find(location).into_iter().collect();
        if !sites.is_empty() {
            let now = generation();
            block_shards::each(|block| {
                if sites.contains(&block.site) {
                    found.push(LiveBlock { size: block.size, age: age(block, now) });
                }
            });
        }
        found
    })
}

/// Bytes that the recorder itself uses for live blocks.
#[must_use]
pub fn memsize() -> usize {
    reading(block_shards::memsize)
}

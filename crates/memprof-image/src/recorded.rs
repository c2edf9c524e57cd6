//! Allocation sites of blocks, from a malloc recording of the same process.

use memprof_recording::{LiveBlock, LiveBlocks, Place, Stacks};

use crate::blocks::{Block, Blocks, Kind};
use crate::image::Image;

/// The reason why a recording does not match an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The recording has no addresses.
    NoAddresses,
    /// The recording is of another process, with this id.
    OtherProcess(u64),
    /// The recording is of another process with the same id, or ended long before: none of its blocks exists in the image.
    OtherMemory,
}

/// The allocation sites of an image's blocks.
#[derive(Debug)]
pub struct Recorded {
    places: Vec<Place>,
    stacks: Stacks,
    /// The place of each block, plus one, and the node of its stack; 0 if unknown.
    of_blocks: Vec<(u32, u32)>,
    /// Whether the recording was stopped before the image was taken.
    pub ended: bool,
    /// Bytes between samples; None: all blocks were recorded.
    pub sample: Option<u64>,
    /// The offset in the file at which damage begins.
    pub damaged_at: Option<u64>,
}

impl Recorded {
    /// Looks up the live blocks of a recording in an image. `pids` are the ids of its process.
    ///
    /// # Errors
    ///
    /// If the recording is of another process, or has no addresses.
    pub(crate) fn new(
        live: LiveBlocks,
        image: &Image,
        blocks: &Blocks,
        pids: &[u64],
    ) -> Result<Recorded, Mismatch> {
        let summary = &live.summary;
        let Some(recorded) = live.blocks else {
            return Err(Mismatch::NoAddresses);
        };
        let is_same = image.pid.is_none_or(|pid| u64::from(pid) == summary.pid);
        if !is_same && !pids.contains(&summary.pid) {
            return Err(Mismatch::OtherProcess(summary.pid));
        }
        let mut of_blocks = vec![(0, 0); blocks.len()];
        let mut found = 0;
        for one in &recorded {
            let number = blocks.at(one.address);
            let block = number.and_then(|number| Some((number, blocks.get(number)?)));
            if let Some((number, _)) = block.filter(|(_, block)| fits(one, block)) {
                of_blocks[number as usize] = (one.place + 1, one.node);
                found += 1;
            }
        }
        if found == 0 && !recorded.is_empty() {
            return Err(Mismatch::OtherMemory);
        }
        let (sample, damaged_at) = (summary.sample, summary.damaged_at);
        Ok(Recorded {
            places: live.places,
            stacks: live.summary.stacks,
            of_blocks,
            ended: live.ended,
            sample,
            damaged_at,
        })
    }

    /// Bytes used, without texts.
    pub(crate) fn memsize(&self) -> usize {
        size_of_val(&self.of_blocks[..])
            + size_of_val(&self.places[..])
            + size_of_val(&self.stacks.nodes[..])
            + size_of_val(&self.stacks.frames[..])
    }

    /// The allocation site of a block; None if unknown.
    #[must_use]
    pub fn place(&self, number: u32) -> Option<&Place> {
        self.places.get(self.index(number)?)
    }

    /// The frames that led to the allocation of a block, innermost first; empty if unknown.
    #[must_use]
    pub fn stack(&self, number: u32) -> Vec<String> {
        match self.of_blocks.get(number as usize) {
            Some(&(1.., node)) => self.stacks.labels(node).collect(),
            _ => Vec::new(),
        }
    }

    /// The index of a block's allocation site.
    pub(crate) fn index(&self, number: u32) -> Option<usize> {
        let (place, _) = *self.of_blocks.get(number as usize)?;
        Some(place.checked_sub(1)? as usize)
    }

    pub(crate) fn places(&self) -> &[Place] {
        &self.places
    }
}

/// Whether a block may be the recorded one. If that was freed and an unrecorded block now has its address, the size usually
/// differs from glibc's rounding of the recorded size: the next multiple of 16 or two, whole pages for large blocks.
fn fits(recorded: &LiveBlock, block: &Block) -> bool {
    const MOST_SPARE: u64 = 48;
    let spare = block.size.checked_sub(recorded.size);
    block.kind == Kind::Used && spare.is_some_and(|spare| spare <= MOST_SPARE + recorded.size / 8)
}

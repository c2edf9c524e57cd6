//! Where blocks were allocated, as a recording of malloc of the same process has it.

use memprof_recording::{LiveBlock, LiveBlocks, Place, Stacks};

use crate::blocks::{Block, Blocks, Kind};
use crate::image::Image;

/// Why a recording says nothing about an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// It has no addresses.
    NoAddresses,
    /// It is of this process.
    OtherProcess(u64),
    /// It is of another process with the same number, or ended long before: none of its blocks is there.
    OtherMemory,
}

/// The places where the blocks of an image were allocated.
#[derive(Debug)]
pub struct Recorded {
    places: Vec<Place>,
    stacks: Stacks,
    /// The place of each block, + 1, and the node of its stack; 0: not known.
    of_blocks: Vec<(u32, u32)>,
    /// Whether the recording was stopped before the image was taken.
    pub ended: bool,
    /// Bytes between samples; None: all blocks were recorded.
    pub sample: Option<u64>,
    /// The byte of the file from which on it is damaged.
    pub damaged_at: Option<u64>,
}

impl Recorded {
    /// Looks the live blocks of a recording up in an image. `pids` are the numbers that its process has.
    ///
    /// # Errors
    ///
    /// When the recording is of another process, or says nothing about addresses.
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

    /// Bytes that it takes, without those of texts.
    pub(crate) fn memsize(&self) -> usize {
        size_of_val(&self.of_blocks[..])
            + size_of_val(&self.places[..])
            + size_of_val(&self.stacks.nodes[..])
            + size_of_val(&self.stacks.frames[..])
    }

    /// Where a block was allocated, by its number; None if that is not known.
    #[must_use]
    pub fn place(&self, number: u32) -> Option<&Place> {
        self.places.get(self.index(number)?)
    }

    /// The frames that led to the allocation of a block, innermost first; none if that is not known.
    #[must_use]
    pub fn stack(&self, number: u32) -> Vec<String> {
        match self.of_blocks.get(number as usize) {
            Some(&(1.., node)) => self.stacks.labels(node).collect(),
            _ => Vec::new(),
        }
    }

    /// The number of the place of a block.
    pub(crate) fn index(&self, number: u32) -> Option<usize> {
        let (place, _) = *self.of_blocks.get(number as usize)?;
        Some(place.checked_sub(1)? as usize)
    }

    pub(crate) fn places(&self) -> &[Place] {
        &self.places
    }
}

/// Whether a block may be the recorded one. Where that was freed and there is another one of its address, which was not
/// recorded, its size mostly is not what glibc makes of the recorded one: the next multiple of 16 or two, for large ones pages.
fn fits(recorded: &LiveBlock, block: &Block) -> bool {
    const MOST_SPARE: u64 = 48;
    let spare = block.size.checked_sub(recorded.size);
    block.kind == Kind::Used && spare.is_some_and(|spare| spare <= MOST_SPARE + recorded.size / 8)
}

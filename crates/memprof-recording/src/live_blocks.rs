//! The blocks live at the end of a recording with addresses, and where they were allocated.

use std::io::Read;

use rustc_hash::FxHashMap;

use crate::reader::{Error, read};
use crate::record::{Event, Record};
use crate::selection::Selection;
use crate::stacks::{Frame, Stacks};
use crate::summary::Summary;
use crate::sums::Sums;

/// Maximum number of concurrent reallocations, that is, of frees missing from a damaged file.
const MOST_REALLOCATIONS: usize = 1 << 10;

/// A live block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveBlock {
    /// The address that the allocator returned.
    pub address: u64,
    /// Requested bytes.
    pub size: u64,
    /// Its index in [`LiveBlocks::places`].
    pub place: u32,
    /// Its stack: an index into [`Stacks::nodes`].
    pub node: u32,
}

/// Where a block was allocated.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// `file:line`, or native code if no Ruby code ran.
    pub location: String,
    /// The method; empty if unknown.
    pub method: String,
}

/// The live blocks of a recording.
#[derive(Clone, Debug, Default)]
pub struct LiveBlocks {
    /// Blocks live at `until`, or at the last complete block of the file if that is earlier. Unordered. None if the recording
    /// has no addresses.
    pub blocks: Option<Vec<LiveBlock>>,
    /// Locations of the blocks' allocations.
    pub places: Vec<Place>,
    /// Whether the recording was stopped before the time up to which it was read.
    pub ended: bool,
    /// Summary of the whole recording.
    pub summary: Summary,
}

impl LiveBlocks {
    /// Reads a recording up to a time, in milliseconds since 1970. Memory use is proportional to the maximum number of live
    /// blocks.
    ///
    /// # Errors
    ///
    /// If it is not a recording, or can't be read.
    pub fn read(input: &mut dyn Read, until: u64) -> Result<LiveBlocks, Error> {
        let mut sums = Sums::new(&Selection::default());
        let mut live = Live { until, ..Live::default() };
        let end = read(input, &mut |record| sums.add(record).is_some() && live.add(record))?;
        let summary = sums.finish(end);
        let ended = summary.complete && !live.is_over;
        let mut places = Places::default();
        let blocks = live.blocks.into_values().map(|event| {
            // Nodes are numbered from 1 in records.
            let node = event.node as u32 - 1;
            LiveBlock {
                address: event.address,
                size: event.size,
                place: places.of(&summary.stacks, node),
                node,
            }
        });
        let blocks: Vec<LiveBlock> = blocks.collect();
        Ok(LiveBlocks {
            blocks: summary.addresses.then_some(blocks),
            places: places.all,
            ended,
            summary,
        })
    }
}

#[derive(Default)]
struct Live {
    has_addresses: bool,
    started: u64,
    until: u64,
    is_over: bool,
    blocks: FxHashMap<u64, Event>,
    /// Blocks whose address was already reused: realloc releases a block before its free can be recorded.
    reallocated: Vec<Event>,
}

impl Live {
    /// False for an impossible record.
    fn add(&mut self, record: Record<'_>) -> bool {
        match record {
            Record::Start { time, .. } => {
                self.started = time;
                true
            }
            Record::Addresses => {
                self.has_addresses = true;
                true
            }
            // The following events happened before this time, and after the previous one.
            Record::Clock { ms, .. } => {
                self.is_over |= self.started.saturating_add(ms) > self.until;
                true
            }
            Record::Allocation(_) | Record::Free(_) if self.is_over => true,
            Record::Allocation(event) if self.has_addresses => {
                let before = self.blocks.insert(event.address, event);
                self.reallocated.extend(before);
                self.reallocated.len() <= MOST_REALLOCATIONS
            }
            Record::Free(event) if self.has_addresses => self.free(event),
            _ => true,
        }
    }

    fn free(&mut self, event: Event) -> bool {
        if let Some(place) = self.reallocated.iter().position(|one| *one == event) {
            self.reallocated.swap_remove(place);
            return true;
        }
        let is_live = self.blocks.get(&event.address) == Some(&event);
        is_live && self.blocks.remove(&event.address).is_some()
    }
}

/// The place of each node, without duplicates.
#[derive(Default)]
struct Places {
    all: Vec<Place>,
    numbers: FxHashMap<Place, u32>,
    of_nodes: FxHashMap<u32, u32>,
}

impl Places {
    fn of(&mut self, stacks: &Stacks, node: u32) -> u32 {
        *self.of_nodes.entry(node).or_insert_with(|| {
            let frame = stacks.allocating_frame(node);
            let place = Place {
                location: frame.location(),
                method: match frame {
                    Frame::Ruby { method, .. } => method.clone(),
                    Frame::Native(_) => String::new(),
                },
            };
            *self.numbers.entry(place).or_insert_with_key(|place| {
                self.all.push(place.clone());
                self.all.len() as u32 - 1
            })
        })
    }
}

//! The blocks that are live at the end of a recording with addresses, and where each of them was allocated.

use std::io::Read;

use rustc_hash::FxHashMap;

use crate::reader::{Error, read};
use crate::record::{Event, Record};
use crate::selection::Selection;
use crate::stacks::{Frame, Stacks};
use crate::summary::Summary;
use crate::sums::Sums;

/// Reallocations that are under way at once, at most: so many frees a damaged file may leave out.
const MOST_REALLOCATIONS: usize = 1 << 10;

/// A live block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveBlock {
    /// The address that the allocator returned.
    pub address: u64,
    /// Bytes asked for.
    pub size: u64,
    /// Its place in [`LiveBlocks::places`].
    pub place: u32,
    /// The node of its stack in [`Stacks::nodes`].
    pub node: u32,
}

/// Where blocks were allocated.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// `file:line`, or native code where no Ruby ran.
    pub location: String,
    /// The method; empty if it is not known.
    pub method: String,
}

/// The live blocks of a recording.
#[derive(Clone, Debug, Default)]
pub struct LiveBlocks {
    /// Live at the end of the file, or before: as of its last whole block, and of `until`. In no order. None if it has no
    /// addresses.
    pub blocks: Option<Vec<LiveBlock>>,
    /// Where they were allocated.
    pub places: Vec<Place>,
    /// Whether the recording was stopped before the time up to which it was read.
    pub ended: bool,
    /// What the whole recording adds up to.
    pub summary: Summary,
}

impl LiveBlocks {
    /// Reads a recording up to a time, in milliseconds since 1970. It takes as much memory as the most blocks that are live at
    /// once.
    ///
    /// # Errors
    ///
    /// When it is none, or can't be read.
    pub fn read(input: &mut dyn Read, until: u64) -> Result<LiveBlocks, Error> {
        let mut sums = Sums::new(&Selection::default());
        let mut live = Live {
            until,
            ..Live::default()
        };
        let end = read(input, &mut |record| {
            sums.add(record).is_some() && live.add(record)
        })?;
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
    /// Blocks at whose address there is another one already: realloc gives a block back before its free can be recorded.
    reallocated: Vec<Event>,
}

impl Live {
    /// False for a record that can't be.
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
            // What follows happened before this time, and after the time before.
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

/// The place of each node, and each place once.
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

//! Adds up the records of a recording, in order.

use crate::reader::End;
use crate::record::{Event, Record};
use crate::samples::Scale;
use crate::selection::Selection;
use crate::stacks::{Counts, Frame, Native, Node, Stacks};
use crate::summary::{SizeClass, Summary};
use crate::timeline::{Point, Timeline};

/// Maximum in any recorder, which limits the memory for a damaged file.
const MOST_NODES: usize = 1 << 23;
const MOST_TEXT: usize = 1 << 28;

/// Counts of a node. `peak` and `peak_bytes` are as of the peak number `seen`; at a later peak they equal the live counts, as
/// nothing has happened here since.
#[derive(Default)]
struct Counters {
    allocations: u64,
    allocated_bytes: u64,
    temporary: u64,
    live: u64,
    live_bytes: u64,
    peak: u64,
    peak_bytes: u64,
    seen: u64,
}

/// Sums of the records so far. Blocks and bytes are sums of weights, which `scale` converts.
#[derive(Default)]
pub(crate) struct Sums {
    frames: Vec<Frame>,
    nodes: Vec<Node>,
    /// Index of each node's counters + 1, or 0 if it has none.
    places: Vec<u32>,
    counters: Vec<Counters>,
    text: usize,
    from_ms: u64,
    to_ms: u64,
    /// Whether the range has begun, and whether it is over.
    is_on: bool,
    is_over: bool,
    live: u64,
    live_bytes: u64,
    peak: u64,
    peak_bytes: u64,
    peak_number: u64,
    peak_ms: u64,
    most_since_clock: u64,
    /// The last clock: the events after it happened up to then.
    clock: Option<(u64, u64)>,
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
    scale: Scale,
    addresses: bool,
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
    pub(crate) fn new(selection: &Selection) -> Sums {
        Sums {
            sizes: vec![(0, 0); CLASSES],
            from_ms: selection.from_ms,
            to_ms: selection.to_ms.unwrap_or(u64::MAX),
            ..Sums::default()
        }
    }

    /// None for an impossible record.
    pub(crate) fn add(&mut self, record: Record<'_>) -> Option<()> {
        match record {
            Record::Allocation(_) | Record::Free(_) | Record::Clock { .. } if self.is_over => {
                Some(())
            }
            Record::Allocation(event) => self.allocate(event),
            Record::Free(event) => self.free(event),
            Record::Clock { ms, .. } if ms > self.to_ms => {
                self.end_point();
                self.is_over = true;
                Some(())
            }
            Record::Clock { ms, rss } => {
                self.end_point();
                self.ms = self.ms.max(ms);
                if !self.is_on {
                    // Earlier events only set the initial state.
                    self.is_on = ms >= self.from_ms;
                    self.forget_calls();
                    if !self.is_on {
                        return Some(());
                    }
                }
                self.peak_rss = self.peak_rss.max(rss);
                self.clock = Some((self.ms, rss));
                Some(())
            }
            Record::RubyFrame { path, line, method } => {
                let size = path.len() + method.len();
                let (path, method) = (text(path), text(method));
                self.frame(size, Frame::Ruby { path, line, method })
            }
            Record::NativeFrame { address, offset, module } => {
                let module = text(module);
                let native = Native { address, offset, module, ..Native::default() };
                self.frame(native.module.len(), Frame::Native(native))
            }
            Record::Node { parent, frame } => {
                let frame = frame.checked_sub(1)?;
                if frame >= self.frames.len() as u64
                    || parent > self.nodes.len() as u64
                    || self.nodes.len() >= MOST_NODES
                {
                    return None;
                }
                self.nodes.push(Node {
                    parent: parent.checked_sub(1).map(|parent| parent as u32),
                    frame: frame as u32,
                });
                self.places.push(0);
                Some(())
            }
            Record::Name { frame, distance, function } => {
                let frame = usize::try_from(frame).ok()?.checked_sub(1)?;
                self.text += function.len();
                let Frame::Native(native) = self.frames.get_mut(frame)? else {
                    return None;
                };
                (native.distance, native.function) = (distance, text(function));
                (self.text <= MOST_TEXT).then_some(())
            }
            Record::Start { pid, time, command } => {
                (self.pid, self.started, self.command) = (pid, time, text(command));
                Some(())
            }
            Record::Samples { period } => {
                self.scale = Scale::new(Some(period));
                (period > 0).then_some(())
            }
            Record::Addresses => {
                self.addresses = true;
                Some(())
            }
            Record::End { missed } => {
                self.missed = missed;
                Some(())
            }
        }
    }

    /// Completes the point of the last clock.
    fn end_point(&mut self) {
        if let Some((ms, rss)) = self.clock.take() {
            self.timeline.add(Point {
                ms,
                live_bytes: self.scale.bytes(self.most_since_clock),
                rss,
                allocations: self.scale.blocks(self.allocations),
            });
            self.most_since_clock = self.live_bytes;
        }
    }

    /// Starts the range: resets counts of calls, but keeps live blocks.
    fn forget_calls(&mut self) {
        for counters in &mut self.counters {
            (counters.allocations, counters.allocated_bytes, counters.temporary) = (0, 0, 0);
        }
        self.sizes.fill((0, 0));
        (self.allocations, self.allocated_bytes, self.temporary) = (0, 0, 0);
        (self.peak, self.peak_bytes, self.peak_ms) = (self.live, self.live_bytes, self.ms);
        self.peak_number += 1;
        self.most_since_clock = self.live_bytes;
        self.peak_rss = 0;
    }

    fn frame(&mut self, size: usize, frame: Frame) -> Option<()> {
        self.text += size;
        if self.text > MOST_TEXT || self.frames.len() >= MOST_NODES {
            return None;
        }
        self.frames.push(frame);
        Some(())
    }

    /// The counters of a node before an event.
    fn at(&mut self, node: u64) -> Option<&mut Counters> {
        let node = usize::try_from(node).ok()?.checked_sub(1)?;
        let place = self.places.get_mut(node)?;
        if *place == 0 {
            self.counters.push(Counters::default());
            *place = self.counters.len() as u32;
        }
        let counters = &mut self.counters[*place as usize - 1];
        if counters.seen != self.peak_number {
            (counters.peak, counters.peak_bytes) = (counters.live, counters.live_bytes);
            counters.seen = self.peak_number;
        }
        Some(counters)
    }

    fn allocate(&mut self, event: Event) -> Option<()> {
        let weight = self.scale.weight(event.size);
        let sum = self.live_bytes.checked_add(weight.bytes)?;
        let total = self.allocated_bytes.checked_add(weight.bytes)?;
        let live = self.live.checked_add(weight.blocks)?;
        let allocations = self.allocations.checked_add(weight.blocks)?;
        let counters = self.at(event.node)?;
        counters.allocations += weight.blocks;
        counters.allocated_bytes += weight.bytes;
        counters.live += weight.blocks;
        counters.live_bytes += weight.bytes;
        (self.live_bytes, self.allocated_bytes) = (sum, total);
        (self.live, self.allocations) = (live, allocations);
        let (calls, bytes) = &mut self.sizes[class(event.size)];
        *calls += weight.blocks;
        *bytes += weight.bytes;
        if sum > self.peak_bytes {
            (self.peak, self.peak_bytes) = (live, sum);
            self.peak_ms = self.ms;
            self.peak_number += 1;
        }
        self.most_since_clock = self.most_since_clock.max(sum);
        self.last = Some(event);
        Some(())
    }

    fn free(&mut self, event: Event) -> Option<()> {
        // It is unknown what happened between two samples.
        let is_temporary = self.last.take() == Some(event) && self.scale.period().is_none();
        let weight = self.scale.weight(event.size);
        let counters = self.at(event.node)?;
        counters.live = counters.live.checked_sub(weight.blocks)?;
        counters.live_bytes = counters.live_bytes.checked_sub(weight.bytes)?;
        counters.temporary += u64::from(is_temporary);
        self.live -= weight.blocks;
        self.live_bytes -= weight.bytes;
        self.temporary += u64::from(is_temporary);
        Some(())
    }

    pub(crate) fn finish(mut self, end: End) -> Summary {
        self.end_point();
        let (stacks, scale) = (self.stacks(), self.scale);
        let sizes = self.sizes.iter().enumerate();
        let sizes = sizes.filter(|(_, (calls, _))| *calls > 0);
        let sizes = sizes.map(|(power, &(allocations, allocated_bytes))| SizeClass {
            up_to: 1u64.checked_shl(power as u32).unwrap_or(u64::MAX),
            allocations: scale.blocks(allocations),
            allocated_bytes: scale.bytes(allocated_bytes),
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
            sample: scale.period(),
            addresses: self.addresses,
            missed: self.missed,
            total: Counts {
                allocations: scale.blocks(self.allocations),
                allocated_bytes: scale.bytes(self.allocated_bytes),
                temporary: self.temporary,
                peak: scale.blocks(self.peak),
                peak_bytes: scale.bytes(self.peak_bytes),
                leaked: scale.blocks(self.live),
                leaked_bytes: scale.bytes(self.live_bytes),
            },
            peak_ms: self.peak_ms,
            peak_rss: self.peak_rss,
            locations: stacks.rows(),
            sizes: sizes.collect(),
            timeline: self.timeline.into_points(),
            suppressed: 0,
            suppressed_bytes: 0,
            callers: stacks.have_callers(),
            stacks,
        }
    }

    fn stacks(&mut self) -> Stacks {
        let at = |place: &u32| place.checked_sub(1).map(|at| &self.counters[at as usize]);
        let counted = self.places.iter().enumerate();
        let counts = counted.filter_map(|(node, place)| {
            let counters = at(place)?;
            let counters = counters.counts(self.peak_number, self.scale);
            let is_there = counters != Counts::default();
            is_there.then_some((node as u32, counters))
        });
        let counts = counts.collect();
        let mut stacks = Stacks {
            counts,
            frames: std::mem::take(&mut self.frames),
            nodes: std::mem::take(&mut self.nodes),
        };
        stacks.name();
        stacks
    }
}

impl Counters {
    /// The counts if the last peak had that number.
    fn counts(&self, peak_number: u64, scale: Scale) -> Counts {
        let (peak, peak_bytes) = if self.seen == peak_number {
            (self.peak, self.peak_bytes)
        } else {
            (self.live, self.live_bytes)
        };
        Counts {
            allocations: scale.blocks(self.allocations),
            allocated_bytes: scale.bytes(self.allocated_bytes),
            temporary: self.temporary,
            peak: scale.blocks(peak),
            peak_bytes: scale.bytes(peak_bytes),
            leaked: scale.blocks(self.live),
            leaked_bytes: scale.bytes(self.live_bytes),
        }
    }
}

//! Stacks that were interned, remembered by the addresses of their frames: a loop meets the same stack again and again.

use std::ffi::c_int;

use rb_sys::VALUE;
use rustc_hash::FxHashMap;

use super::origin::Origin;

/// Stacks that are remembered.
const MOST: usize = 1 << 16;

/// A stack as it was read.
#[derive(Clone, Copy)]
pub struct Raw<'a> {
    /// Frames, innermost first.
    pub values: &'a [VALUE],
    /// Their lines.
    pub lines: &'a [c_int],
    /// Paths of evaluated code (see [`super::control_frames::paths`]).
    pub paths: &'a [VALUE],
    /// Most frames that are kept.
    pub keep: usize,
}

struct Remembered {
    values: Box<[VALUE]>,
    lines: Box<[c_int]>,
    paths: Box<[VALUE]>,
    keep: usize,
    origin: Origin,
}

impl Remembered {
    #[inline]
    fn is(&self, raw: Raw) -> bool {
        self.keep == raw.keep
            && *self.values == *raw.values
            && *self.lines == *raw.lines
            && *self.paths == *raw.paths
    }
}

/// The stacks.
#[derive(Default)]
pub struct StackMemo {
    stacks: Vec<Remembered>,
    /// Hash of a stack -> index in `stacks`.
    by_hash: FxHashMap<u64, u32>,
    /// Index of the stack met last.
    last: usize,
    /// Frames of all stacks.
    frames: usize,
}

impl StackMemo {
    /// Where a stack comes from, if it was met before.
    #[inline]
    pub fn get(&mut self, raw: Raw) -> Option<Origin> {
        if let Some(stack) = self.stacks.get(self.last).filter(|stack| stack.is(raw)) {
            return Some(stack.origin);
        }
        let index = *self.by_hash.get(&hash(raw))? as usize;
        let stack = self.stacks.get(index).filter(|stack| stack.is(raw))?;
        self.last = index;
        Some(stack.origin)
    }

    /// Remembers a stack.
    pub fn put(&mut self, raw: Raw, origin: Origin) {
        if self.stacks.len() >= MOST {
            self.clear();
        }
        self.last = self.stacks.len();
        self.by_hash.insert(hash(raw), self.last as u32);
        self.frames += raw.values.len();
        self.stacks.push(Remembered {
            values: raw.values.into(),
            lines: raw.lines.into(),
            paths: raw.paths.into(),
            keep: raw.keep,
            origin,
        });
    }

    /// Forgets all: a frame is gone or has moved.
    pub fn clear(&mut self) {
        self.stacks.clear();
        self.by_hash.clear();
        self.frames = 0;
    }

    /// Bytes that the stacks take.
    pub fn memsize(&self) -> usize {
        self.frames * (size_of::<VALUE>() + size_of::<c_int>())
            + self.stacks.capacity() * size_of::<Remembered>()
    }
}

/// A hash of frames and lines. In four lanes, since a processor multiplies several numbers in the time that one takes to
/// come out: fifty frames are hashed for each object.
#[inline]
fn hash(raw: Raw) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |lane: u64, value: VALUE, line: c_int| {
        (lane.rotate_left(26) ^ value ^ (line as u64) << 44).wrapping_mul(FACTOR)
    };
    let (mut a, mut b, mut c, mut d) = (1, 2, 3, 4);
    let (value_chunks, line_chunks) = (raw.values.chunks_exact(4), raw.lines.chunks_exact(4));
    let rest = value_chunks.remainder().iter().zip(line_chunks.remainder());
    for (value, line) in value_chunks.zip(line_chunks) {
        (a, b) = (mix(a, value[0], line[0]), mix(b, value[1], line[1]));
        (c, d) = (mix(c, value[2], line[2]), mix(d, value[3], line[3]));
    }
    a = rest.fold(a, |lane, (value, line)| mix(lane, *value, *line));
    // Rarely does more than these tell stacks apart, so this costs one step a frame.
    b = raw
        .paths
        .iter()
        .fold(b, |lane, path| lane.rotate_left(5) ^ path);
    let join = |hash: u64, lane: u64| (hash.rotate_left(23) ^ lane).wrapping_mul(FACTOR);
    join(join(join(a, b), c), d) ^ raw.keep as u64
}

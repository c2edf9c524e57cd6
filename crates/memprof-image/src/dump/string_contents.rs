//! Reads the bytes of strings from the image, one after another.

use crate::analysis::Analysis;
use crate::ruby_heap::{RubyHeap, StringFacts};

/// Maximum bytes read of one string.
const MOST: u64 = 64 << 20;
/// In damaged memory, many strings may claim the whole memory: the total is limited to this multiple of the image's bytes.
const SHARES: u64 = 4;
const SPARE: u64 = 1 << 26;

/// The bytes of the string read last.
pub struct Contents {
    bytes: Vec<u8>,
    left: u64,
}

/// How much of a string was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    All,
    Beginning,
    Nothing,
}

impl Contents {
    pub fn new(analysis: &Analysis) -> Contents {
        let stored: u64 = (analysis.image.segments.iter())
            .map(|segment| segment.readable().end - segment.start)
            .fold(0, u64::saturating_add);
        Contents { bytes: Vec::new(), left: stored.saturating_mul(SHARES).saturating_add(SPARE) }
    }

    /// The bytes read last.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Reads the bytes of a string.
    pub fn read(&mut self, heap: &RubyHeap<'_>, facts: &StringFacts) -> Read {
        let length = facts.length.min(MOST);
        self.bytes.clear();
        if length > self.left {
            return Read::Nothing;
        }
        if !heap.memory.bytes(facts.at, length as usize, &mut self.bytes) {
            self.bytes.clear();
            return Read::Nothing;
        }
        self.left -= length;
        if length == facts.length { Read::All } else { Read::Beginning }
    }
}

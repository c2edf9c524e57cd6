//! Strings and the place of their bytes. Embedded ones have their length in the flags (Ruby 3.1) or before their bytes.

use memprof_dump::record::{CodeRange, Kind};

use super::{HEADER, Object, RubyHeap, SAMPLE};
use crate::image::WORD;

const NOT_EMBEDDED: u32 = 1;
const LENGTH: u32 = 2;
const LENGTH_MASK: u64 = 0x1f;
const CODE_RANGE: u32 = 8;
const ENCODING: u32 = 10;
const ENCODING_MASK: u64 = 0x7f;
const FSTRING: u32 = 17;
/// Maximum length of names.
const NAME: u64 = 1024;

/// Encodings with a fixed number (encindex.h); others are numbered as they are loaded.
const ENCODINGS: [&str; 12] = [
    "ASCII-8BIT",
    "UTF-8",
    "US-ASCII",
    "UTF-16BE",
    "UTF-16LE",
    "UTF-32BE",
    "UTF-32LE",
    "UTF-16",
    "UTF-32",
    "UTF8-MAC",
    "EUC-JP",
    "Windows-31J",
];

/// The place of an embedded string's length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Layout {
    #[default]
    Unknown,
    InFlags,
    BeforeBytes,
}

/// A string without its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StringFacts {
    pub length: u64,
    /// The address of the bytes.
    pub at: u64,
    pub capacity: Option<u64>,
    /// The string that owns the bytes.
    pub shared: Option<u64>,
    pub embedded: bool,
}

impl Layout {
    /// The layout in which most embedded strings are followed by a zero byte.
    pub fn learn(heap: &RubyHeap<'_>) -> Layout {
        let strings = heap.of_kind(Kind::STRING);
        let embedded: Vec<Object> =
            strings.filter(|string| !string.user(NOT_EMBEDDED)).take(SAMPLE).collect();
        let fitting = |layout: Layout| {
            let fits = |string: &&Object| {
                let facts = layout.embedded(heap, string);
                let end = facts.and_then(|facts| heap.memory.word(facts.at + facts.length));
                end.is_some_and(|end| end & 0xff == 0)
            };
            embedded.iter().filter(fits).count()
        };
        let all = [Layout::InFlags, Layout::BeforeBytes];
        let best = all.into_iter().max_by_key(|layout| fitting(*layout));
        best.filter(|layout| fitting(*layout) * 20 > embedded.len() * 19).unwrap_or_default()
    }

    fn embedded(self, heap: &RubyHeap<'_>, string: &Object) -> Option<StringFacts> {
        let body = string.address + HEADER;
        let (length, at) = match self {
            Layout::Unknown => return None,
            Layout::InFlags => (string.flags >> (super::USER + LENGTH) & LENGTH_MASK, body),
            Layout::BeforeBytes => (heap.memory.word(body)?, body + WORD),
        };
        let end = at.checked_add(length)?;
        (end < string.address + string.slot_size).then_some(StringFacts {
            length,
            at,
            capacity: None,
            shared: None,
            embedded: true,
        })
    }
}

impl RubyHeap<'_> {
    /// The facts about a string.
    pub fn string(&self, string: &Object) -> Option<StringFacts> {
        if !string.user(NOT_EMBEDDED) {
            return self.strings.embedded(self, string);
        }
        let body = string.address + HEADER;
        let length = self.memory.word(body)?;
        let at = self.memory.word(body + WORD)?;
        let last = self.memory.word(body + 2 * WORD)?;
        let shared = self.is(last, Kind::STRING).then_some(last);
        at.checked_add(length)?;
        Some(StringFacts {
            length,
            at,
            // A capacity is not the address of a string.
            capacity: (shared.is_none() && last != length && last >> 48 == 0).then_some(last),
            shared,
            embedded: false,
        })
    }

    /// The bytes of a string used as a name.
    pub fn name(&self, address: u64) -> Option<String> {
        let string = self.object(address)?;
        if string.kind() != Kind::STRING {
            return None;
        }
        let facts = self.string(&string)?;
        let mut bytes = Vec::new();
        let whole =
            facts.length <= NAME && self.memory.bytes(facts.at, facts.length as usize, &mut bytes);
        whole.then(|| String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The name of a string's encoding; empty if unknown.
pub(crate) fn encoding(flags: u64) -> &'static str {
    let number = flags >> (super::USER + ENCODING) & ENCODING_MASK;
    ENCODINGS.get(number as usize).copied().unwrap_or_default()
}

/// The cached code range of a string.
pub(crate) fn code_range(flags: u64) -> CodeRange {
    match flags >> (super::USER + CODE_RANGE) & 3 {
        0 => CodeRange::Unknown,
        1 => CodeRange::SevenBit,
        2 => CodeRange::Valid,
        _ => CodeRange::Broken,
    }
}

/// Whether it is in the table of equal, frozen strings.
pub(crate) fn is_fstring(flags: u64) -> bool {
    flags >> (super::USER + FSTRING) & 1 == 1
}

//! Hashes: a table in the slot (Ruby 3.3 and later) or in separate memory, with up to eight pairs or as an `st_table`.

use std::ops::Range;

use memprof_dump::record::Kind;

use super::{HEADER, Object, RubyHeap, SAMPLE};
use crate::image::WORD;
use crate::st_table::StTable;

const DEFAULT_PROC: u32 = 2;
const ST_TABLE: u32 = 3;
const COUNT: u32 = 4;
const BOUND: u32 = 8;
const MOST: u64 = 8;
const PAIR: u64 = 2 * WORD;

/// The place of a hash's table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Layout {
    #[default]
    Unknown,
    /// A pointer, then the default.
    Pointer,
    /// The default, then the table.
    InSlot,
}

/// The pairs of a hash.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Entries {
    None,
    /// The address of the first pair, and the number of pairs, including deleted ones.
    Small {
        at: u64,
        bound: u64,
    },
    Table(StTable),
}

/// A hash without its pairs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HashFacts {
    pub count: u64,
    pub default: u64,
    pub default_proc: bool,
    pub entries: Entries,
    /// The addresses of its possible blocks: the table, its bins, its entries.
    pub blocks: [u64; 3],
}

impl Entries {
    /// The memory of the pairs.
    pub fn range(&self) -> Range<u64> {
        match self {
            Entries::None => 0..0,
            Entries::Small { at, bound } => *at..*at + bound * PAIR,
            Entries::Table(table) => table.range(),
        }
    }
}

impl Layout {
    /// The layout in which most large hashes have a table. The other one fits hardly any. Not all fit: garbage that was not swept
    /// may have lost its table.
    pub fn learn(heap: &RubyHeap<'_>) -> Layout {
        let large: Vec<Object> = heap
            .of_kind(Kind::HASH)
            .filter(|hash| hash.user(ST_TABLE) && !heap.lacks_table(hash))
            .take(SAMPLE)
            .collect();
        let fitting = |layout: Layout| {
            let table = |hash: &&Object| {
                layout.table(heap, hash).is_some_and(|at| heap.st_table(at).is_some())
            };
            large.iter().filter(table).count()
        };
        let all = [Layout::Pointer, Layout::InSlot];
        let best = all.into_iter().max_by_key(|layout| fitting(*layout));
        best.filter(|layout| fitting(*layout) * 2 > large.len()).unwrap_or_default()
    }

    fn table(self, heap: &RubyHeap<'_>, hash: &Object) -> Option<u64> {
        let body = hash.address + HEADER;
        match self {
            Layout::Unknown => None,
            Layout::Pointer => heap.memory.word(body),
            Layout::InSlot => Some(body + WORD),
        }
    }
}

impl RubyHeap<'_> {
    /// Whether a large hash has only a default of `nil` (8 before Ruby 3.2, 4 since): it is newly allocated, or lost its table.
    fn lacks_table(&self, hash: &Object) -> bool {
        let words = (hash.address + HEADER..hash.address + hash.slot_size).step_by(WORD as usize);
        words.map(|at| self.memory.word(at)).all(|word| matches!(word, Some(0 | 4 | 8)))
    }

    /// The facts about a hash; None if they are invalid.
    pub fn hash(&self, hash: &Object) -> Option<HashFacts> {
        let table = self.hashes.table(self, hash)?;
        let body = hash.address + HEADER;
        let default = match self.hashes {
            Layout::Pointer => body + WORD,
            _ => body,
        };
        let mut facts = HashFacts {
            count: 0,
            default: self.memory.word(default)?,
            default_proc: hash.user(DEFAULT_PROC),
            entries: Entries::None,
            blocks: [table, 0, 0],
        };
        if table == 0 || hash.user(ST_TABLE) && self.lacks_table(hash) {
            return Some(facts);
        }
        if hash.user(ST_TABLE) {
            let table = self.st_table(table)?;
            facts.count = table.count;
            facts.blocks[1..].copy_from_slice(&[table.bins, table.range().start]);
            facts.entries = Entries::Table(table);
        } else {
            let number = |shift: u32| hash.flags >> (super::USER + shift) & 0xf;
            let bound = number(BOUND);
            facts.count = number(COUNT);
            (bound <= MOST && facts.count <= bound).then_some(())?;
            // In a slot without a pointer, hash hints come first.
            let at = match self.hashes {
                Layout::Pointer => table,
                _ => table + WORD,
            };
            (at < 1 << 56).then_some(())?;
            facts.entries = Entries::Small { at, bound };
        }
        Some(facts)
    }

    /// Keys and values, in order.
    pub fn pairs(&self, entries: Entries) -> Box<dyn Iterator<Item = (u64, u64)> + '_> {
        match entries {
            Entries::None => Box::new(std::iter::empty()),
            Entries::Table(table) => Box::new(self.st_entries(table)),
            Entries::Small { at, bound } => Box::new((0..bound).filter_map(move |number| {
                let pair = at + number * PAIR;
                let key = self.memory.word(pair)?;
                // The key of a deleted pair.
                let deleted = matches!(key, 0x24 | 0x34);
                (!deleted).then_some((key, self.memory.word(pair + WORD)?))
            })),
        }
    }
}

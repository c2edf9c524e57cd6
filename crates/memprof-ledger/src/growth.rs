//! The changes between two ledgers, and their cause.

use serde::Serialize;

use super::Ledger;

/// By how much an item changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ItemGrowth {
    /// As in the ledger.
    pub key: &'static str,
    /// Name for display.
    pub name: &'static str,
    /// Bytes.
    pub change: i64,
}

/// Changes between two ledgers of a process. Bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Growth {
    /// RSS before.
    pub before: u64,
    /// RSS after.
    pub after: u64,
    /// Change of the RSS.
    pub change: i64,
    /// Change of Ruby objects: slots, memory outside of slots, instruction sequences.
    pub objects: i64,
    /// Change of instruction sequences alone.
    pub iseqs: i64,
    /// All items, largest growth first.
    pub items: Vec<ItemGrowth>,
    /// The item other than objects that grew most, if it matters.
    pub cause: Option<ItemGrowth>,
}

/// Items of Ruby objects in the ledger.
const OBJECTS: [&str; 3] = ["slots_used", "objects", "iseqs"];
/// Bytes by which a process normally grows and shrinks.
const NOISE: i64 = 4 << 20;

impl Growth {
    pub(super) fn between(before: &Ledger, after: &Ledger) -> Growth {
        let keys = before.items.iter().chain(&after.items);
        let mut items: Vec<ItemGrowth> = Vec::new();
        for item in keys {
            if items.iter().all(|known| known.key != item.key) {
                items.push(ItemGrowth {
                    key: item.key,
                    name: item.name,
                    change: change(before.bytes(item.key), after.bytes(item.key)),
                });
            }
        }
        items.sort_by_key(|item| std::cmp::Reverse(item.change));
        let of = |key| change(before.bytes(key), after.bytes(key));
        let change = change(before.facts.rss, after.facts.rss);
        let objects: i64 = OBJECTS.iter().map(|key| of(key)).sum();
        let others = items.iter().find(|item| !OBJECTS.contains(&item.key));
        // A quarter of the growth or more.
        let worth = |item: &&ItemGrowth| item.change > NOISE && item.change >= change / 4;
        Growth {
            before: before.facts.rss,
            after: after.facts.rss,
            change,
            objects,
            iseqs: of("iseqs"),
            cause: others.filter(worth).filter(|_| change > NOISE).cloned(),
            items,
        }
    }
}

fn change(before: u64, after: u64) -> i64 {
    i64::try_from(i128::from(after) - i128::from(before)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Allocator, Arena, Facts, HeapSizes, Kinds, RubyHeap};

    const MIB: u64 = 1 << 20;

    fn ledger(malloc: u64, in_use: u64, outside: u64) -> Ledger {
        let facts = Facts {
            rss: (malloc + 20) * MIB,
            mappings: Kinds { malloc: malloc * MIB, ..Kinds::default() },
            ruby_heap: Some(RubyHeap { size: 20 * MIB, resident: 20 * MIB }),
            allocator: Some(Allocator {
                name: "glibc".into(),
                arenas: vec![Arena { in_use: in_use * MIB, free: (malloc - in_use) * MIB }],
                ..Allocator::default()
            }),
            ..Facts::default()
        };
        let heap = HeapSizes { memprof: 0, slots: 10 * MIB, outside: outside * MIB, iseqs: MIB };
        Ledger::new(facts, Some(heap))
    }

    #[test]
    fn names_what_grew_besides_objects() {
        let leaked = ledger(10, 10, 2).until(&ledger(140, 140, 4));
        assert_eq!(leaked.change, 130 * MIB as i64);
        assert_eq!(leaked.objects, 2 * MIB as i64);
        let cause = leaked.cause.unwrap();
        assert_eq!((cause.key, cause.change), ("malloc", 128 * MIB as i64));
        assert_eq!(leaked.items[0], cause);

        let fragmented = ledger(10, 10, 2).until(&ledger(140, 20, 4));
        assert_eq!(fragmented.cause.unwrap().key, "malloc_free");
    }

    #[test]
    fn finds_no_cause_where_objects_grew_or_nothing() {
        assert_eq!(ledger(10, 10, 2).until(&ledger(110, 110, 102)).cause, None);
        assert_eq!(ledger(10, 10, 2).until(&ledger(10, 10, 2)).cause, None);
        let shrunk = ledger(110, 110, 2).until(&ledger(10, 10, 2));
        assert_eq!((shrunk.change, shrunk.cause), (-100 * MIB as i64, None));
    }
}

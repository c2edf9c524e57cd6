//! The ledger: the RSS, divided among its users.

use serde::Serialize;

use super::{Facts, Growth};

/// Sizes found by a heap walk. Bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HeapSizes {
    /// Slots of objects.
    pub slots: u64,
    /// Memory of objects outside of their slots, as Ruby counts it (memsize), without instruction sequences.
    pub outside: u64,
    /// The same for instruction sequences.
    pub iseqs: u64,
    /// memprof's own memory outside of slots in this process.
    pub memprof: u64,
}

/// Memory of a thread or fiber besides its stack.
const BESIDES_STACK: u64 = 1 << 10;

impl HeapSizes {
    /// Adds an object: its slot, its memsize, and the name of its data type or the like.
    ///
    /// The memsize of a thread or fiber includes its stack at its maximum size. That is not malloc'ed memory: the resident part
    /// counts as stacks.
    pub fn add(&mut self, slot: u64, memsize: u64, name: Option<&str>) {
        self.slots += slot;
        let outside = memsize.saturating_sub(slot);
        match name {
            Some("iseq") => self.iseqs += outside,
            Some("VM/thread" | "thread" | "fiber") => self.outside += outside.min(BESIDES_STACK),
            _ => self.outside += outside,
        }
    }
}

/// How exact an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Accuracy {
    /// Measured to the page.
    Exact,
    /// Counted by the allocator or by Ruby, which omit something.
    Estimate,
    /// The remainder after subtracting the others.
    Difference,
}

/// A part of the RSS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Item {
    /// Stable name.
    pub key: &'static str,
    /// Name for display.
    pub name: &'static str,
    /// Resident bytes.
    pub bytes: u64,
    /// Accuracy of `bytes`.
    pub accuracy: Accuracy,
}

/// The RSS as items that add up to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ledger {
    /// The measurements.
    #[serde(flatten)]
    pub facts: Facts,
    /// The parts, without empty ones.
    pub items: Vec<Item>,
}

/// Takes parts off a sum until nothing is left.
struct Rest(u64);

impl Rest {
    fn take(&mut self, bytes: u64) -> u64 {
        let taken = bytes.min(self.0);
        self.0 -= taken;
        taken
    }
}

/// Memory of malloc: in use, free, and other anonymous memory.
struct Malloc {
    in_use: u64,
    free: u64,
    other: u64,
}

impl Malloc {
    /// Blocks in use count as resident: most of what isn't resident is free, returned to the system or never used.
    fn of(facts: &Facts) -> Option<Malloc> {
        let allocator = facts.allocator.as_ref()?;
        let (in_arenas, elsewhere) = (facts.mappings.malloc, facts.mappings.anonymous);
        if allocator.name == "glibc" {
            let (mut arenas, mut mapped) = (Rest(in_arenas), Rest(elsewhere));
            let in_arenas = arenas.take(allocator.in_use());
            let in_blocks = mapped.take(allocator.mapped);
            // The kernel merges the mapping of a block with that of an adjacent arena.
            let beside = arenas.take(allocator.mapped - in_blocks);
            return Some(Malloc {
                in_use: in_arenas + in_blocks + beside,
                free: arenas.0,
                other: mapped.0,
            });
        }
        let mut rest = Rest(in_arenas + elsewhere);
        Some(Malloc {
            in_use: rest.take(allocator.in_use() + allocator.mapped),
            free: rest.take(allocator.free()),
            other: rest.0,
        })
    }
}

impl Ledger {
    /// Divides the RSS. Without `heap` there are no items for objects.
    pub fn new(facts: Facts, heap: Option<HeapSizes>) -> Ledger {
        use Accuracy::{Difference, Estimate, Exact};
        let mut items = Vec::new();
        let mut add = |key, name, bytes, accuracy| {
            if bytes > 0 {
                items.push(Item { key, name, bytes, accuracy });
            }
        };
        if let Some(pages) = facts.ruby_heap {
            let mut rest = Rest(pages.resident);
            if let Some(heap) = heap {
                add("slots_used", "Ruby objects, in slots", rest.take(heap.slots), Exact);
                add("slots_free", "free slots of Ruby's heap", rest.0, Exact);
            } else {
                add("slots", "slots of Ruby's heap", rest.0, Exact);
            }
        }
        match Malloc::of(&facts) {
            Some(malloc) => {
                let mut rest = Rest(malloc.in_use);
                if let Some(heap) = heap {
                    let (outside, iseqs) = (rest.take(heap.outside), rest.take(heap.iseqs));
                    add("objects", "Ruby objects, outside of slots", outside, Estimate);
                    add("iseqs", "instruction sequences", iseqs, Estimate);
                    let memprof = rest.take(heap.memprof);
                    add("memprof", "memprof itself", memprof, Estimate);
                    add("malloc", "native memory not owned by Ruby objects", rest.0, Difference);
                } else {
                    add("malloc", "malloc in use", rest.0, Estimate);
                }
                add("malloc_free", "freed, not returned to the system", malloc.free, Estimate);
                add("other", "other anonymous memory", malloc.other, Difference);
            }
            None if facts.ruby_heap.is_some() => {
                let bytes = facts.mappings.malloc + facts.mappings.anonymous;
                add("anonymous", "malloc and other anonymous memory", bytes, Exact);
            }
            None => {
                let arenas = "malloc's arenas, in use and free";
                add("malloc", arenas, facts.mappings.malloc, Exact);
                let rest = "anonymous memory: Ruby's heap, large blocks";
                add("anonymous", rest, facts.mappings.anonymous, Exact);
            }
        }
        let mappings = facts.mappings;
        add("code", "JIT code", mappings.code, Exact);
        add("stacks", "stacks of threads and fibers", mappings.stacks, Estimate);
        add("files", "mapped files", mappings.files, Exact);
        add("shared_memory", "shared memory", mappings.shared_memory, Exact);
        add("kernel", "the kernel's own mappings", mappings.kernel, Exact);
        Ledger { facts, items }
    }

    /// Bytes of an item.
    pub fn bytes(&self, key: &str) -> u64 {
        let item = self.items.iter().find(|item| item.key == key);
        item.map_or(0, |item| item.bytes)
    }

    /// Adds the ledger of another process.
    #[must_use]
    pub fn and(mut self, other: &Ledger) -> Ledger {
        self.facts.rss += other.facts.rss;
        self.facts.allocator = match (self.facts.allocator.take(), &other.facts.allocator) {
            (Some(mut known), Some(more)) => {
                known.arenas.extend(&more.arenas);
                known.mapped_blocks += more.mapped_blocks;
                known.mapped += more.mapped;
                Some(known)
            }
            _ => None,
        };
        for item in &other.items {
            match self.items.iter_mut().find(|known| known.key == item.key) {
                Some(known) => known.bytes += item.bytes,
                None => self.items.push(item.clone()),
            }
        }
        self
    }

    /// The changes up to a later ledger of the same process.
    pub fn until(&self, later: &Ledger) -> Growth {
        Growth::between(self, later)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Allocator, Arena, Kinds, RubyHeap};

    fn facts(allocator: Option<Allocator>) -> Facts {
        let mappings = Kinds {
            malloc: 1000,
            anonymous: 500,
            stacks: 30,
            code: 40,
            files: 50,
            shared_memory: 0,
            kernel: 4,
        };
        Facts {
            rss: 1000 + 500 + 30 + 40 + 50 + 4 + 300,
            mappings,
            ruby_heap: Some(RubyHeap { size: 400, resident: 300 }),
            allocator,
            ..Facts::default()
        }
    }

    fn allocator(name: &str, in_use: u64, free: u64, mapped: u64) -> Option<Allocator> {
        Some(Allocator {
            name: name.into(),
            arenas: vec![Arena { in_use, free }],
            mapped_blocks: 1,
            mapped,
        })
    }

    const HEAP: HeapSizes = HeapSizes { slots: 200, outside: 300, iseqs: 100, memprof: 50 };

    #[test]
    fn adds_up_to_the_rss_whatever_the_parts_say() {
        let cases = [
            allocator("glibc", 700, 900, 200),
            allocator("glibc", 7000, 9000, 20_000),
            allocator("jemalloc", 900, 100, 0),
            allocator("jemalloc", 0, 0, 0),
            None,
        ];
        let heaps = [
            None,
            Some(HEAP),
            Some(HeapSizes { slots: 1 << 40, outside: 1 << 40, iseqs: 1 << 40, memprof: 1 << 40 }),
        ];
        for allocator in cases {
            for heap in heaps {
                let ledger = Ledger::new(facts(allocator.clone()), heap);
                let sum: u64 = ledger.items.iter().map(|item| item.bytes).sum();
                assert_eq!(sum, ledger.facts.rss, "{ledger:?}");
            }
        }
    }

    #[test]
    fn divides_malloc_of_glibc() {
        let ledger = Ledger::new(facts(allocator("glibc", 700, 900, 200)), Some(HEAP));
        let bytes = |key| ledger.bytes(key);
        assert_eq!((bytes("slots_used"), bytes("slots_free")), (200, 100));
        assert_eq!((bytes("objects"), bytes("iseqs")), (300, 100));
        // 700 in arenas and 200 mapped, without objects and memprof.
        assert_eq!((bytes("memprof"), bytes("malloc")), (50, 450));
        // The resident remainder of 900, and of the anonymous memory without mapped blocks.
        assert_eq!((bytes("malloc_free"), bytes("other")), (300, 300));
    }

    #[test]
    fn a_mapped_block_beside_an_arena_is_in_use() {
        // Mapped blocks have 800: 500 elsewhere, the rest among the 1000 in arenas.
        let ledger = Ledger::new(facts(allocator("glibc", 100, 900, 800)), Some(HEAP));
        let bytes = |key| ledger.bytes(key);
        assert_eq!((bytes("objects"), bytes("iseqs")), (300, 100));
        assert_eq!(bytes("malloc"), 100 + 500 + 300 - 400 - 50);
        assert_eq!((bytes("malloc_free"), bytes("other")), (600, 0));
    }

    #[test]
    fn says_less_of_a_process_that_it_knows_only_from_outside() {
        let mut facts = facts(None);
        facts.ruby_heap = None;
        facts.rss -= 300;
        let ledger = Ledger::new(facts, None);
        assert_eq!((ledger.bytes("malloc"), ledger.bytes("anonymous")), (1000, 500));
        assert_eq!(ledger.items.iter().map(|item| item.bytes).sum::<u64>(), ledger.facts.rss);
    }

    #[test]
    fn adds_up_several_processes() {
        let one = Ledger::new(facts(allocator("glibc", 700, 900, 200)), Some(HEAP));
        let other = Ledger::new(facts(None), Some(HEAP));
        let both = one.clone().and(&other);
        assert_eq!(both.facts.rss, one.facts.rss * 2);
        let sum: u64 = both.items.iter().map(|item| item.bytes).sum();
        assert_eq!(sum, both.facts.rss);
        assert_eq!(both.bytes("slots_used"), 400);
        assert_eq!(both.bytes("malloc"), one.bytes("malloc"));
    }

    #[test]
    fn counts_no_stack_that_a_thread_may_get() {
        let mut sizes = HeapSizes::default();
        sizes.add(40, 1 << 20, Some("VM/thread"));
        sizes.add(40, 100, Some("iseq"));
        sizes.add(80, 90, None);
        assert_eq!((sizes.slots, sizes.iseqs), (160, 60));
        assert_eq!(sizes.outside, BESIDES_STACK + 10);
    }

    #[test]
    fn is_stored_and_read_back() {
        let facts = facts(allocator("glibc", 1, 2, 3));
        let json = serde_json::to_string(&facts).unwrap();
        assert_eq!(serde_json::from_str::<Facts>(&json).unwrap(), facts);
        // A later version may have more fields, an earlier one fewer.
        let other: Facts = serde_json::from_str(r#"{"rss":5,"new":1}"#).unwrap();
        assert_eq!(other.rss, 5);
        let ledger = serde_json::to_value(Ledger::new(facts, Some(HEAP))).unwrap();
        assert_eq!(ledger["items"][0]["accuracy"], "exact");
        assert_eq!(ledger["rss"], 1924);
    }
}

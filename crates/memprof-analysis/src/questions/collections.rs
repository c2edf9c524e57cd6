//! `collections`: arrays, hashes, structs and sets: the largest ones, the empty ones, and their unused capacity. Garbage
//! collections do not count as waste.

use serde::{Deserialize, Serialize};

use super::describe::{Described, Describer};
use super::duplicates::with_garbage;
use super::holders::{Holder, holders};
use super::list::sums::{Merge, merge};
use super::list::{List, Measure, Order, Page, Rows};
use super::tally::percent;
use super::{Error, Limit, Remark, Selection};
use memprof_dump::record::{Flags, Kind};
use memprof_heap::graph::{BitSet, Graph, PART, in_parts};
use memprof_heap::{Group, Heap, NONE, Sizes};

/// Bytes of a reference.
const WORD: u64 = 8;

/// Bytes of the small table of a hash with at most eight entries: hints and pairs.
const SMALL_TABLE: u64 = 8 + 8 * 16;

/// Bytes of the header of a large table (`struct st_table`).
const TABLE: u64 = 56;

/// Bytes of an entry of a large table: hash, key, value.
const ENTRY: u64 = 24;

/// Sort order of the collections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// Elements.
    #[default]
    Length,
    /// Retained size.
    Retained,
    /// Memsize.
    Size,
    /// Unused bytes.
    Unused,
}

impl Sort {
    fn order(self) -> Order {
        match self {
            Sort::Length => &[Measure::Length],
            Sort::Retained => &[Measure::Retained],
            Sort::Size => &[Measure::Size],
            Sort::Unused => &[Measure::Unused],
        }
    }
}

/// `collections`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// Sort order of the collections (default: length).
    pub sort: Sort,
    /// Filter for the objects (default: all).
    pub r#where: Option<String>,
    /// Maximum number of collections.
    pub limit: Limit<20>,
}

/// A collection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The object.
    #[serde(flatten)]
    pub object: Described,
    /// Elements.
    pub length: Option<u64>,
    /// Capacity in elements; null if unknown.
    pub capacity: Option<u64>,
    /// Bytes of unused capacity.
    pub unused: u64,
}

/// Collections of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OfKind {
    /// `array`, `hash`, `struct`, `set`.
    pub r#type: &'static str,
    /// Collections.
    pub count: u64,
    /// Sum of their memsizes.
    pub size: u64,
    /// Percentage of the whole heap's memsize.
    pub percent: f64,
    /// Sum of their elements.
    pub elements: u64,
    /// Collections without elements.
    pub empty_count: u64,
    /// Sum of their memsizes.
    pub empty_size: u64,
    /// Collections with one element.
    pub single_count: u64,
    /// Sum of their memsizes.
    pub single_size: u64,
    /// Elements as a percentage of the capacity, where it is known; null if it is known of none.
    pub fill: Option<f64>,
    /// Bytes of unused capacity.
    pub unused: u64,
    /// Referrers of the empty ones.
    pub empty_holders: Vec<Holder>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Sort order of the collections.
    pub sort: Sort,
    /// The largest.
    pub rows: Vec<Row>,
    /// Collections that are not shown.
    pub more: usize,
    /// Sums by kind.
    pub types: Vec<OfKind>,
    /// Whether garbage is excluded: not if the dump has no roots.
    pub without_garbage: bool,
    /// Missing information, with the reason.
    pub warnings: Vec<Remark>,
}

/// In the order of answers.
const KINDS: [&str; 4] = ["array", "hash", "struct", "set"];

const SET: usize = 3;

/// Maximum number of referrers of empty collections in the answer.
const HOLDERS: usize = 3;

/// Length and capacity of a collection.
struct Filling {
    /// Position in [`KINDS`].
    kind: usize,
    length: Option<u64>,
    room: Option<Room>,
}

impl Filling {
    fn unused(&self) -> u64 {
        self.room.map_or(0, |room| room.unused)
    }
}

/// Measures collections.
struct Collections<'h> {
    groups: &'h [u32],
    flags: &'h [u32],
    lengths: &'h [u32],
    memsizes: &'h Sizes,
    retained: &'h Sizes,
    slots: Vec<u16>,
    /// Position in [`KINDS`] by group.
    kinds: Vec<Option<usize>>,
    graph: Graph<'h>,
    is_hash: Vec<bool>,
}

impl<'h> Collections<'h> {
    fn new(heap: &'h Heap) -> Result<Collections<'h>, Error> {
        let class = |group: &Group| {
            let class = heap.classes().get(group.shown as usize);
            class.map_or("", |class| heap.name(class.name))
        };
        let kind = |group: &Group| match group.kind {
            Kind::ARRAY => Some(0),
            Kind::HASH => Some(1),
            Kind::STRUCT => Some(2),
            // Sets are VM objects since Ruby 4.0. Before, they are objects with a hash, which also counts as such.
            Kind::DATA if group.name.is_some_and(|name| heap.name(name) == "set") => Some(SET),
            Kind::OBJECT if class(group) == "Set" => Some(SET),
            _ => None,
        };
        Ok(Collections {
            groups: heap.group_numbers()?,
            flags: heap.flag_words()?,
            lengths: heap.lengths()?,
            memsizes: heap.memsizes()?,
            retained: heap.retained()?,
            slots: heap.slots(),
            kinds: heap.groups().iter().map(kind).collect(),
            graph: heap.graph(&[])?,
            is_hash: heap.groups().iter().map(|group| group.kind == Kind::HASH).collect(),
        })
    }

    fn length(&self, id: u32) -> Option<u64> {
        self.lengths.get(id as usize).copied().filter(|&length| length != NONE).map(u64::from)
    }

    /// The hash inside a set.
    fn hash_of(&self, id: u32) -> Option<u32> {
        let group = |id: u32| self.groups.get(id as usize).map_or(NONE, |&group| group) as usize;
        let mut targets = self.graph.row(id).iter().copied();
        targets.find(|&target| self.is_hash.get(group(target)) == Some(&true))
    }

    fn kind(&self, id: u32) -> Option<usize> {
        *self.kinds.get(*self.groups.get(id as usize)? as usize)?
    }

    fn elements(&self, id: u32, kind: usize) -> Option<u64> {
        match kind {
            // Its length in the dump is its number of instance variables.
            SET => self.hash_of(id).and_then(|hash| self.length(hash)),
            _ => self.length(id),
        }
    }

    fn filling(&self, id: u32) -> Option<Filling> {
        let index = id as usize;
        let kind = self.kind(id)?;
        let length = self.elements(id, kind);
        let slot = self.slots.get(index).copied().map_or(0, u64::from);
        let outside = self.memsizes.get(id).saturating_sub(slot);
        let shared = self.flags.get(index).is_some_and(|flags| flags & Flags::SHARED.0 != 0);
        let room = match (length, KINDS[kind]) {
            // The contents of a shared array belong to another one.
            _ if shared || slot == 0 => None,
            (Some(length), "array" | "struct") => Room::of_array(length, outside),
            (Some(length), "hash") => Room::of_hash(length, outside),
            _ => None,
        };
        Some(Filling { kind, length, room })
    }
}

impl Rows for Collections<'_> {
    fn measure(&self, id: u32, measure: Measure) -> Option<u64> {
        match measure {
            Measure::Length => self.elements(id, self.kind(id)?),
            Measure::Retained => Some(self.retained.get(id)),
            Measure::Size => Some(self.memsizes.get(id)),
            _ => self.filling(id).map(|filling| filling.unused()),
        }
    }
}

impl Collections<'_> {
    /// Scans all chosen collections: their sums, and those that come first.
    fn look(&self, selection: &Selection<'_>, question: &Question) -> (Sums, Page) {
        let list = List::new(self, question.sort.order());
        let start = || (Sums::default(), list.first(question.limit.0));
        let parts = in_parts(self.groups.len(), PART, start, |(sums, first), part| {
            for id in (part.start as u32..part.end as u32).filter(|&id| selection.contains(id)) {
                if let Some(filling) = self.filling(id) {
                    sums.add(id, self.memsizes.get(id), &filling);
                    first.extend([id]);
                }
            }
        });
        let (mut sums, mut all) = start();
        for (part, first) in parts {
            sums.merge(&part);
            all.join(first);
        }
        (sums, all.page(0))
    }
}

impl Question {
    /// The answer.
    ///
    /// # Errors
    /// If the filter is invalid, or the index cannot be read.
    pub fn answer(&self, heap: &Heap) -> Result<Answer, Error> {
        let selection = Selection::live(heap, self.r#where.as_deref())?;
        let all = Collections::new(heap)?;
        let describer = Describer::new(heap)?;
        let (sums, Page { shown, more }) = all.look(&selection, self);
        let row = |&id: &u32| {
            let filling = all.filling(id)?;
            Some(Row {
                object: describer.describe(id),
                length: filling.length,
                capacity: filling.room.map(|room| room.capacity),
                unused: filling.unused(),
            })
        };
        let rows: Vec<Row> = shown.iter().filter_map(row).collect();
        // The set is small enough for the CPU cache.
        let empties = BitSet::of(heap.len() as usize, sums.empties.iter().copied());
        let empty = |id: u32| match empties.contains(id) {
            true => all.kind(id).map_or(NONE, |kind| kind as u32),
            false => NONE,
        };
        let mut types = sums.into_rows(heap.size()?);
        let holders = holders(heap, &describer.words, KINDS.len(), empty, HOLDERS)?;
        for (of, holders) in types.iter_mut().zip(holders) {
            of.empty_holders = holders;
        }
        types.retain(|of| of.count > 0);
        Ok(Answer {
            sort: self.sort,
            rows,
            more,
            types,
            without_garbage: !heap.categories().is_empty(),
            warnings: with_garbage(heap).into_iter().collect(),
        })
    }
}

/// Sums by kind.
#[derive(Clone, Default)]
struct Sums {
    kinds: [OfKind; KINDS.len()],
    /// Elements and capacity of those whose capacity is known.
    rooms: [(u64, u64); KINDS.len()],
    /// Collections without elements.
    empties: Vec<u32>,
}

impl Sums {
    fn add(&mut self, id: u32, size: u64, filling: &Filling) {
        let of = &mut self.kinds[filling.kind];
        let mut sum = OfKind {
            count: 1,
            size,
            elements: filling.length.unwrap_or(0),
            unused: filling.unused(),
            ..OfKind::default()
        };
        match filling.length {
            Some(0) => {
                (sum.empty_count, sum.empty_size) = (1, size);
                self.empties.push(id);
            }
            Some(1) => (sum.single_count, sum.single_size) = (1, size),
            _ => {}
        }
        of.merge(&sum);
        if let (Some(length), Some(room)) = (filling.length, filling.room) {
            let (filled, capacity) = &mut self.rooms[filling.kind];
            *filled = filled.saturating_add(length.min(room.capacity));
            *capacity = capacity.saturating_add(room.capacity);
        }
    }

    fn into_rows(self, whole: u64) -> Vec<OfKind> {
        let kinds = self.kinds.into_iter().zip(KINDS).zip(self.rooms);
        let rows = kinds.map(|((of, name), (filled, capacity))| OfKind {
            r#type: name,
            percent: percent(of.size, whole),
            fill: (capacity > 0).then(|| percent(filled, capacity)),
            ..of
        });
        rows.collect()
    }
}

impl Merge for Sums {
    fn merge(&mut self, other: &Sums) {
        merge(&mut self.kinds, &other.kinds);
        for (room, other) in self.rooms.iter_mut().zip(other.rooms) {
            *room = (room.0.saturating_add(other.0), room.1.saturating_add(other.1));
        }
        self.empties.extend(&other.empties);
    }
}

impl Merge for OfKind {
    fn merge(&mut self, other: &OfKind) {
        self.count += other.count;
        self.empty_count += other.empty_count;
        self.single_count += other.single_count;
        let sizes = [
            (&mut self.size, other.size),
            (&mut self.elements, other.elements),
            (&mut self.empty_size, other.empty_size),
            (&mut self.single_size, other.single_size),
            (&mut self.unused, other.unused),
        ];
        for (sum, other) in sizes {
            *sum = sum.saturating_add(other);
        }
    }
}

/// Capacity of a collection, inferred from its memsize.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Room {
    /// Capacity in elements.
    capacity: u64,
    /// Bytes of unused capacity.
    unused: u64,
}

impl Room {
    /// The capacity of an array or struct with so many bytes outside its slot. Embedded ones have hardly any spare
    /// capacity.
    fn of_array(length: u64, outside: u64) -> Option<Room> {
        let capacity = outside / WORD;
        (capacity >= length && capacity > 0)
            .then(|| Room { capacity, unused: (capacity - length) * WORD })
    }

    /// The capacity of a hash. A large table has a power of two of entries, and twice as many bins, of one to eight bytes
    /// each.
    fn of_hash(length: u64, outside: u64) -> Option<Room> {
        if outside == 0 {
            return None;
        }
        if length <= 8 && outside <= SMALL_TABLE {
            return Some(Room { capacity: 8, unused: (8 - length) * 16 });
        }
        // The header is in the slot since Ruby 3.3.
        let fits = |capacity: u64| {
            table_bytes(capacity) == outside || table_bytes(capacity) + TABLE == outside
        };
        let capacity = (2..48).map(|power| 1_u64 << power).find(|&capacity| fits(capacity))?;
        (capacity >= length).then(|| Room { capacity, unused: (capacity - length) * ENTRY })
    }
}

/// Bytes of the entries and bins of a large table (st.c: `features`).
fn table_bytes(capacity: u64) -> u64 {
    let power = capacity.trailing_zeros();
    // Tables of at most sixteen entries are searched linearly.
    let bins = match power {
        ..=4 => 0,
        5..=7 => 2 * capacity,
        8..=15 => 4 * capacity,
        16..=31 => 8 * capacity,
        _ => 16 * capacity,
    };
    capacity * ENTRY + bins
}

#[cfg(test)]
mod tests {
    use super::{Answer, Question, Room, Sort};
    use crate::questions::Selection;
    use crate::tests::ask;
    use memprof_dump::record::{Flags, Kind};
    use memprof_heap::Heap;
    use memprof_heap::testing::{Thing, class, heap, random, thing};

    fn answer(heap: &Heap, sort: Sort) -> Answer {
        Question { sort, ..Question::default() }.answer(heap).expect("an answer")
    }

    #[test]
    fn knows_room_by_the_memsize() {
        assert_eq!(Room::of_array(3, 0), None);
        assert_eq!(Room::of_array(5, 160), Some(Room { capacity: 20, unused: 120 }));
        assert_eq!(Room::of_array(9, 40), None);
        assert_eq!(Room::of_hash(0, 0), None);
        assert_eq!(Room::of_hash(2, 136), Some(Room { capacity: 8, unused: 96 }));
        // 16 entries without bins; 32 with 64 one-byte bins.
        assert_eq!(Room::of_hash(10, 16 * 24 + 56), Some(Room { capacity: 16, unused: 144 }));
        assert_eq!(Room::of_hash(20, 32 * 24 + 64), Some(Room { capacity: 32, unused: 288 }));
        assert_eq!(Room::of_hash(20, 777), None);
        assert_eq!(Room::of_hash(u64::MAX, u64::MAX), None);
    }

    #[test]
    fn lists_the_largest_the_empty_and_the_unused() {
        let things = [
            class(0x1000, "Session", 0),
            class(0x1028, "Set", 0),
            thing(0x1050, Kind::ARRAY, "Array").length(5).size(200),
            thing(0x1078, Kind::ARRAY, "Array").length(0),
            thing(0x10a0, Kind::ARRAY, "Array").length(0),
            thing(0x10c8, Kind::HASH, "Hash").length(2).size(176),
            thing(0x10f0, Kind::OBJECT, "Set").length(1).to("@hash", 0x10c8),
            thing(0x1118, Kind::OBJECT, "Session")
                .to("@tags", 0x1078)
                .to("@notes", 0x10a0)
                .to("@all", 0x1050),
            thing(0x1140, Kind::ARRAY, "Array").length(9).size(400).flags(Flags::SHARED),
            thing(0x1168, Kind::STRUCT, "Point").length(1),
        ];
        let heap = heap(&[("vm", &[0x1118, 0x10f0, 0x1140, 0x1168])], &things);
        let by_length = answer(&heap, Sort::Length);
        let lengths: Vec<Option<u64>> = by_length.rows.iter().map(|row| row.length).collect();
        assert_eq!(lengths, [Some(9), Some(5), Some(2), Some(2), Some(1), Some(0), Some(0)]);
        assert_eq!((by_length.rows[0].capacity, by_length.rows[1].capacity), (None, Some(20)));
        let unused = answer(&heap, Sort::Unused);
        assert_eq!((unused.rows[0].unused, unused.rows[1].unused), (120, 96));
        let array = &unused.types[0];
        assert_eq!((array.r#type, array.count, array.elements), ("array", 4, 14));
        assert_eq!((array.empty_count, array.empty_size, array.fill), (2, 80, Some(25.0)));
        assert_eq!(array.empty_holders.len(), 2);
        assert_eq!(array.empty_holders[0].class, "Session");
        let types: Vec<&str> = unused.types.iter().map(|of| of.r#type).collect();
        assert_eq!(types, ["array", "hash", "struct", "set"]);
    }

    #[test]
    fn adds_up() {
        for seed in 0..10 {
            let (things, heap) = random(seed, 80);
            let answer = answer(&heap, Sort::Size);
            let live = Selection::new(&heap, Some("reachable")).expect("a query");
            let is_live =
                |thing: &Thing| heap.at(thing.address).is_some_and(|id| live.contains(id));
            let arrays: Vec<_> =
                things.iter().filter(|thing| thing.kind == Kind::ARRAY && is_live(thing)).collect();
            let empty = arrays.iter().filter(|thing| thing.length == Some(0));
            let of = &answer.types[0];
            assert_eq!(of.count, arrays.len() as u64);
            assert_eq!(of.size, arrays.iter().map(|thing| thing.size).sum::<u64>());
            assert_eq!(of.elements, arrays.iter().filter_map(|thing| thing.length).sum::<u64>());
            assert_eq!(of.empty_size, empty.map(|thing| thing.size).sum::<u64>());
            assert_eq!(answer.rows.len() + answer.more, arrays.len());
        }
        let (_, heap) = random(1, 50);
        let json = ask(&heap, "collections", serde_json::json!({ "sort": "retained", "limit": 1 }))
            .expect("an answer");
        assert!(json["rows"][0]["length"].is_number() && json["rows"][0]["retained"].is_number());
    }
}

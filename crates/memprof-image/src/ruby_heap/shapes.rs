//! Shapes (Ruby 3.2 and later): the layout of objects' instance variables. They are a table in a separate mapping; its place and
//! the layout of a shape are learned from the shapes of objects.

use memprof_dump::record::Kind;
use rustc_hash::FxHashSet;

use super::{Cells, HEADER, Object, RubyHeap, Values, VariableName};
use crate::image::WORD;

const SHIFT: u32 = 32;
/// Ruby 4.0 has other facts above these bits.
const ID_BITS: u64 = (1 << 19) - 1;
const SIZES: [u64; 5] = [32, 40, 48, 56, 64];
const PAGE: u64 = 4096;
const SAMPLE: usize = 50_000;
/// The minimum number of shapes that must fit.
const PROOF: usize = 6;
const MOST: usize = 1024;
/// No process has memory above this address.
const HIGHEST: u64 = 1 << 56;

/// The place and layout of shapes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shapes {
    table: u64,
    size: u64,
    /// The offset of the added variable's ID.
    name: u64,
    /// The offset of the parent shape's number, of four bytes.
    parent: u64,
    /// The offset of the number of values, and its size in bytes.
    count: (u64, u32),
}

impl Shapes {
    /// Finds the table in which the shapes of objects are consistent.
    pub fn learn(heap: &RubyHeap<'_>) -> Option<Shapes> {
        heap.ids.as_ref()?;
        let objects = heap.of_kind(Kind::OBJECT).take(SAMPLE);
        let numbers: FxHashSet<u64> = objects.map(|object| id_of(&object)).collect();
        let mut numbers: Vec<u64> = numbers.into_iter().filter(|number| *number > 0).collect();
        numbers.sort_unstable();
        if numbers.len() < PROOF {
            return None;
        }
        let runs = heap
            .analysis
            .image
            .writable_runs(|segment| segment.is_anonymous() && segment.end < HIGHEST);
        let pages = runs
            .iter()
            .flat_map(|run| (run.start.next_multiple_of(PAGE)..run.end).step_by(PAGE as usize));
        pages
            .flat_map(|page| SIZES.map(|size| (page, size)))
            .find_map(|(page, size)| Shapes::at(heap, page, size, &numbers))
    }

    fn at(heap: &RubyHeap<'_>, table: u64, size: u64, numbers: &[u64]) -> Option<Shapes> {
        let named = |name: u64| {
            let fitting = numbers.iter().filter(|number| {
                let id = heap.memory.word(table + **number * size + name);
                id.and_then(|id| heap.id_name(id)).is_some_and(|name| name.starts_with('@'))
            });
            fitting.count() * 10 >= numbers.len() * 8
        };
        // A few shapes rule out most places: the last ones, as the first ones are VM-internal, without a variable.
        let likely = |name: u64| {
            let few = numbers.iter().rev().take(6).filter(|number| {
                let id = heap.memory.word(table + **number * size + name);
                id.is_some_and(|id| id > 0 && id < 1 << 32 && heap.id_name(id).is_some())
            });
            few.count() >= 3
        };
        let name = [WORD, 0, 2 * WORD].into_iter().find(|name| likely(*name) && named(*name))?;
        let rest = name + WORD..size;
        let parents = rest.clone().step_by(4);
        let counts = rest.clone().flat_map(|at| [(at, 2), (at, 4), (at, 1)]);
        parents
            .flat_map(|parent| counts.clone().map(move |count| (parent, count)))
            .map(|(parent, count)| Shapes { table, size, name, parent, count })
            .find(|shapes| numbers.iter().all(|number| shapes.adds_up(heap, *number)))
    }

    /// Whether each variable of a shape's ancestors has a place, and the places are in order.
    fn adds_up(&self, heap: &RubyHeap<'_>, number: u64) -> bool {
        self.chain(heap, number).is_some_and(|chain| {
            chain.windows(2).all(|pair| {
                let (later, earlier) = (&pair[0], &pair[1]);
                let added = later.1.checked_sub(earlier.1);
                match &later.0 {
                    Some(name) if name.starts_with('@') => added == Some(1),
                    _ => matches!(added, Some(0 | 1)),
                }
            }) && chain.last().is_some_and(|first| first.1 == 0)
        })
    }

    /// Names and counts from a shape to the root shape.
    fn chain(&self, heap: &RubyHeap<'_>, number: u64) -> Option<Vec<(VariableName, u64)>> {
        let mut chain = Vec::new();
        let mut number = number;
        loop {
            let shape = self.table.checked_add(number.checked_mul(self.size)?)?;
            let id = heap.memory.word(shape + self.name)?;
            chain.push((heap.id_name(id), self.count_of(heap, shape)?));
            let parent = u64::from(heap.memory.half(shape + self.parent)?);
            if parent == u64::from(u32::MAX) || parent & ID_BITS == ID_BITS {
                return Some(chain);
            }
            // Shapes come after their parents.
            if parent & ID_BITS >= number || chain.len() > MOST {
                return None;
            }
            number = parent & ID_BITS;
        }
    }

    /// The number of values of objects with the shape at an address.
    fn count_of(&self, heap: &RubyHeap<'_>, shape: u64) -> Option<u64> {
        let (at, bytes) = self.count;
        Some(heap.memory.word(shape + at)? & ((1 << (bytes * 8)) - 1))
    }

    /// The number of an object's shape.
    pub fn id(&self, object: &Object) -> u64 {
        id_of(object)
    }

    /// The place of an object's values.
    pub fn values(&self, heap: &RubyHeap<'_>, object: &Object) -> Option<Values> {
        let cells = self.cells(heap, object).map(Values::Cells);
        cells.or_else(|| self.table(heap, object))
    }

    /// Values in its slot, or in a block that its first word points to.
    fn cells(&self, heap: &RubyHeap<'_>, object: &Object) -> Option<Cells> {
        let count = self.count_of(heap, self.table + id_of(object) * self.size)?;
        let body = object.address + HEADER;
        let first = heap.memory.word(body)?;
        let embedded = heap.body(object);
        let block = heap.room(first);
        if count == 0 && block.is_some() {
            return None;
        }
        let cells = Cells { at: if block.is_some() { first } else { body }, count };
        let room = block.map_or(embedded.count, |size| size / WORD);
        (count <= room).then_some(cells)
    }

    /// Values in a table by name, used by objects whose class has too many shapes. Their shape has no values.
    fn table(&self, heap: &RubyHeap<'_>, object: &Object) -> Option<Values> {
        let count = self.count_of(heap, self.table + id_of(object) * self.size)?;
        let at = heap.memory.word(object.address + HEADER)?;
        (count == 0 && heap.room(at).is_some()).then_some(())?;
        let table = heap.st_table(at)?;
        let mut names = heap.st_entries(table).map(|(id, _)| heap.id_name(id));
        let named = names.all(|name| name.is_some());
        named.then_some(Values::Table { at, table })
    }

    /// Names by place.
    pub fn names(&self, heap: &RubyHeap<'_>, object: &Object) -> Option<Vec<VariableName>> {
        let chain = self.chain(heap, id_of(object))?;
        let mut names = vec![None; usize::try_from(chain.first()?.1).ok()?.min(MOST)];
        for (name, count) in chain {
            let place = usize::try_from(count).ok()?.checked_sub(1);
            let place = place.and_then(|place| names.get_mut(place));
            if let (Some(place), Some(name)) = (place, name.filter(|name| name.starts_with('@'))) {
                *place = Some(name);
            }
        }
        Some(names)
    }
}

fn id_of(object: &Object) -> u64 {
    object.flags >> SHIFT & ID_BITS
}

//! Instance variables of plain objects. Until Ruby 3.1 each class has a table from names to places; since then objects have
//! shapes. Values of objects without a known layout cannot be distinguished from other words.

use std::ops::Range;

use memprof_dump::record::Kind;
use rustc_hash::{FxHashMap, FxHashSet};

use super::classes::{Place, word_at};
use super::shapes::Shapes;
use super::{Cells, HEADER, Object, RubyHeap};
use crate::image::WORD;
use crate::st_table::StTable;

const EMBEDDED: u32 = 1;
const EMBEDDED_COUNT: u64 = 3;
const BLOCK: u64 = 24;
const MOST: u64 = 1 << 16;
/// Objects that are looked at.
const SAMPLE: usize = 50_000;
/// As many classes have to have such a table.
const PROOF: usize = 3;

/// The name of a variable, if it has one that a program can write.
pub(crate) type VariableName = Option<String>;

/// How variables are found.
#[derive(Debug, Default)]
pub(crate) enum Variables {
    #[default]
    Unknown,
    /// By the table that a class has at this place.
    Tables(Place),
    /// By shapes.
    Shapes(Shapes),
}

/// Where a plain object has its values.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Values {
    /// Side by side.
    Cells(Cells),
    /// By name, in a table at an address.
    Table { at: u64, table: StTable },
}

impl Values {
    pub fn count(&self) -> u64 {
        match self {
            Values::Cells(cells) => cells.count,
            Values::Table { table, .. } => table.count,
        }
    }

    /// The memory of the values.
    pub fn range(&self) -> Range<u64> {
        match self {
            Values::Cells(cells) => cells.range(),
            Values::Table { table, .. } => table.range(),
        }
    }

    /// What may be blocks of the object: there its values begin, unless they lie in its slot.
    pub fn blocks(&self) -> Vec<u64> {
        match self {
            Values::Cells(cells) => vec![cells.at],
            Values::Table { at, table } => vec![*at, table.bins, table.range().start],
        }
    }
}

impl Variables {
    /// Learns what this Ruby has.
    pub fn learn(heap: &RubyHeap<'_>) -> Variables {
        if let Some(shapes) = Shapes::learn(heap) {
            return Variables::Shapes(shapes);
        }
        let mut votes: FxHashMap<Place, usize> = FxHashMap::default();
        let objects = heap.of_kind(Kind::OBJECT).take(SAMPLE);
        let classes: FxHashSet<u64> = objects.map(|object| object.class).collect();
        for class in classes.iter().filter_map(|class| heap.object(*class)) {
            for (offset, block) in heap.blocks_of_slot(&class) {
                let words = (heap.room(block).unwrap_or(0) / WORD).min(BLOCK);
                for place in (0..words).map(|word| Place::Block(offset, word * WORD)) {
                    let names = names_at(heap, &class, place).unwrap_or_default();
                    if is_likely(&names) {
                        *votes.entry(place).or_default() += 1;
                    }
                }
            }
        }
        let best = votes
            .into_iter()
            .max_by_key(|(place, count)| (*count, std::cmp::Reverse(*place)));
        best.filter(|(_, count)| *count >= PROOF)
            .map_or(Variables::Unknown, |(place, _)| Variables::Tables(place))
    }
}

impl RubyHeap<'_> {
    /// Where a plain object has its values; None if that is not known.
    pub fn values(&self, object: &Object) -> Option<Values> {
        match &self.variables {
            Variables::Unknown => None,
            Variables::Shapes(shapes) => shapes.values(self, object),
            Variables::Tables(_) if object.user(EMBEDDED) => Some(Values::Cells(Cells {
                at: object.address + HEADER,
                count: EMBEDDED_COUNT,
            })),
            Variables::Tables(_) => {
                let cells = Cells {
                    count: u64::from(self.memory.half(object.address + HEADER)?),
                    at: self.memory.word(object.address + HEADER + WORD)?,
                };
                (cells.count < MOST && self.is_there(cells)).then_some(Values::Cells(cells))
            }
        }
    }

    /// What objects have in common that have the same names at the same places: the class, or the shape.
    pub fn variables_key(&self, object: &Object) -> u64 {
        match &self.variables {
            Variables::Shapes(shapes) => shapes.id(object),
            _ => object.class,
        }
    }

    /// Names of the values of an object by their places.
    pub fn variable_names(&self, object: &Object) -> Vec<VariableName> {
        let names = match &self.variables {
            Variables::Unknown => None,
            Variables::Shapes(shapes) => shapes.names(self, object),
            Variables::Tables(place) => {
                // The class of a singleton has the table of its superclass, as a pointer or not at all.
                let real = self.classes.real(self, object.class);
                [Some(object.class), real]
                    .into_iter()
                    .flatten()
                    .filter_map(|class| self.object(class))
                    .find_map(|class| names_at(self, &class, *place))
            }
        };
        names.unwrap_or_default()
    }
}

/// The names in the table at a place, if it looks like one of instance variables.
fn names_at(heap: &RubyHeap<'_>, class: &Object, place: Place) -> Option<Vec<VariableName>> {
    let table = word_at(heap, class, place)?;
    heap.room(table)?;
    let table = heap.st_table(table)?;
    let mut names = vec![None; usize::try_from(table.count).ok()?.min(MOST as usize)];
    let mut places = FxHashSet::default();
    for (id, entry) in heap.st_entries(table) {
        heap.room(entry)?;
        let place = heap.memory.half(entry)? as usize;
        // The VM has variables of its own, without @.
        let name = heap.id_name(id);
        if place >= names.len() || !places.insert(place) {
            return None;
        }
        names[place] = name;
    }
    Some(names)
}

/// Whether most names are such as programs give.
fn is_likely(names: &[VariableName]) -> bool {
    let given = |name: &&VariableName| name.as_ref().is_some_and(|name| name.starts_with('@'));
    let count = names.iter().filter(given).count();
    count > 0 && count * 2 > names.len()
}

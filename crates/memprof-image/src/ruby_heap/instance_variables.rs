//! Instance variables of plain objects. Until Ruby 3.1 each class has a table from names to places; since then objects have
//! shapes. Without a known layout, values of objects cannot be distinguished from other words.

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
/// Objects to check.
const SAMPLE: usize = 50_000;
/// The minimum number of classes with such a table.
const PROOF: usize = 3;

/// The name of a variable, if a program can write it.
pub(crate) type VariableName = Option<String>;

/// The method of finding variables.
#[derive(Debug, Default)]
pub(crate) enum Variables {
    #[default]
    Unknown,
    /// By the table at this place of a class.
    Tables(Place),
    /// By shapes.
    Shapes(Shapes),
}

/// The place of a plain object's values.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Values {
    /// Contiguous.
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

    /// Addresses of possible blocks of the object: its values begin there, unless they are in its slot.
    pub fn blocks(&self) -> Vec<u64> {
        match self {
            Values::Cells(cells) => vec![cells.at],
            Values::Table { at, table } => vec![*at, table.bins, table.range().start],
        }
    }
}

impl Variables {
    /// Learns the layout of this Ruby.
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
        let best =
            votes.into_iter().max_by_key(|(place, count)| (*count, std::cmp::Reverse(*place)));
        best.filter(|(_, count)| *count >= PROOF)
            .map_or(Variables::Unknown, |(place, _)| Variables::Tables(place))
    }
}

impl RubyHeap<'_> {
    /// The place of a plain object's values; None if unknown.
    pub fn values(&self, object: &Object) -> Option<Values> {
        match &self.variables {
            Variables::Unknown => None,
            Variables::Shapes(shapes) => shapes.values(self, object),
            Variables::Tables(_) if object.user(EMBEDDED) => {
                Some(Values::Cells(Cells { at: object.address + HEADER, count: EMBEDDED_COUNT }))
            }
            Variables::Tables(_) => {
                let cells = Cells {
                    count: u64::from(self.memory.half(object.address + HEADER)?),
                    at: self.memory.word(object.address + HEADER + WORD)?,
                };
                (cells.count < MOST && self.is_there(cells)).then_some(Values::Cells(cells))
            }
        }
    }

    /// The class or shape: objects with the same key have the same names at the same places.
    pub fn variables_key(&self, object: &Object) -> u64 {
        match &self.variables {
            Variables::Shapes(shapes) => shapes.id(object),
            _ => object.class,
        }
    }

    /// Names of an object's values, by place.
    pub fn variable_names(&self, object: &Object) -> Vec<VariableName> {
        let names = match &self.variables {
            Variables::Unknown => None,
            Variables::Shapes(shapes) => shapes.names(self, object),
            Variables::Tables(place) => {
                // A singleton class references its superclass's table, or has none.
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

/// The names in the table at a place, if it looks like a table of instance variables.
fn names_at(heap: &RubyHeap<'_>, class: &Object, place: Place) -> Option<Vec<VariableName>> {
    let table = word_at(heap, class, place)?;
    heap.room(table)?;
    let table = heap.st_table(table)?;
    let mut names = vec![None; usize::try_from(table.count).ok()?.min(MOST as usize)];
    let mut places = FxHashSet::default();
    for (id, entry) in heap.st_entries(table) {
        heap.room(entry)?;
        let place = heap.memory.half(entry)? as usize;
        // VM-internal variables have no @.
        let name = heap.id_name(id);
        if place >= names.len() || !places.insert(place) {
            return None;
        }
        names[place] = name;
    }
    Some(names)
}

/// Whether most names are names of program variables.
fn is_likely(names: &[VariableName]) -> bool {
    let given = |name: &&VariableName| name.as_ref().is_some_and(|name| name.starts_with('@'));
    let count = names.iter().filter(given).count();
    count > 0 && count * 2 > names.len()
}

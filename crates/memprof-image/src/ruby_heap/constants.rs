//! Constants of classes and modules: a table from names to entries with the value. The place of the table is learned.

use memprof_dump::record::Kind;
use rustc_hash::FxHashMap;

use super::classes::{Place, offsets, word_at};
use super::{Object, RubyHeap};
use crate::image::WORD;

const BLOCK: u64 = 48;
const SAMPLE: usize = 1000;
/// An entry: flags and line, the value, the file.
const VALUE: u64 = WORD;
const ENTRY: u64 = 3 * WORD;
/// The minimum number of classes with such a table.
const PROOF: usize = 20;

/// The place of the constants of a class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Constants(Place);

impl Constants {
    /// The place at which most classes have a table of constants.
    pub fn learn(heap: &RubyHeap<'_>) -> Option<Constants> {
        heap.ids.as_ref()?;
        let mut votes: FxHashMap<Place, usize> = FxHashMap::default();
        let classes =
            heap.objects().filter(|object| matches!(object.kind(), Kind::CLASS | Kind::MODULE));
        for class in classes.take(SAMPLE) {
            for place in places(heap, &class) {
                if constants_at(heap, &class, place).is_some() {
                    *votes.entry(place).or_default() += 1;
                }
            }
        }
        let best =
            votes.into_iter().max_by_key(|(place, count)| (*count, std::cmp::Reverse(*place)));
        best.filter(|(_, count)| *count >= PROOF).map(|(place, _)| Constants(place))
    }

    /// Names and values.
    pub fn of(&self, heap: &RubyHeap<'_>, class: &Object) -> Vec<(String, u64)> {
        constants_at(heap, class, self.0).unwrap_or_default()
    }
}

fn places(heap: &RubyHeap<'_>, class: &Object) -> Vec<Place> {
    let blocks = heap.blocks_of_slot(class).flat_map(|(offset, block)| {
        let words = (heap.room(block).unwrap_or(0) / WORD).min(BLOCK);
        (0..words).map(move |word| Place::Block(offset, word * WORD))
    });
    offsets(class).map(Place::Slot).chain(blocks).collect()
}

/// Names and values of the table at a place, if nearly all of it looks like constants.
fn constants_at(heap: &RubyHeap<'_>, class: &Object, place: Place) -> Option<Vec<(String, u64)>> {
    let table = word_at(heap, class, place)?;
    heap.room(table)?;
    let pairs = heap.id_table(table)?;
    let count = pairs.len();
    let constant = |(number, entry)| {
        let name = heap.ids.as_ref()?.of_number(heap, number)?;
        let first = name.chars().next()?;
        (first.is_uppercase() && heap.room(entry)? >= ENTRY).then_some(())?;
        let value = heap.memory.word(entry + VALUE)?;
        heap.is_value(value).then_some((name, value))
    };
    let constants: Vec<_> = pairs.into_iter().filter_map(constant).collect();
    // Some constants are VM-internal.
    (constants.len() * 10 >= count * 9).then_some(constants)
}

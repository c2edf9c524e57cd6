//! Names of IDs: the VM has an array of arrays, with the string of each ID at the place of its number, and its Symbol beside it.
//! A Symbol that is not an object has the same number, which identifies the array.

use memprof_dump::record::Kind;

use super::values::symbol_id;
use super::{Cells, Object, RubyHeap};
use crate::image::WORD;

/// IDs in one array, with two places each.
const UNIT: u64 = 512;
const PLACES: u64 = 2;
/// The bits below the number of an ID, unless it is an operator.
const SCOPE_BITS: u32 = 4;
/// The number of Symbols that must match to accept the array.
const PROOF: usize = 100;

/// The place of the names.
#[derive(Debug)]
pub(crate) struct IdNames {
    units: Vec<Cells>,
    /// The last ID that is its own number: operators and other single tokens.
    last_token: u64,
}

impl IdNames {
    /// Finds the array.
    pub fn find(heap: &RubyHeap<'_>) -> Option<IdNames> {
        let hidden = heap.of_kind(Kind::ARRAY).filter(|array| array.class == 0);
        hidden.filter_map(|array| IdNames::of(heap, &array)).max_by_key(|names| names.units.len())
    }

    fn of(heap: &RubyHeap<'_>, array: &Object) -> Option<IdNames> {
        let outer = heap.array(array)?.elements;
        if outer.count == 0 || outer.count > 1 << 24 {
            return None;
        }
        let mut units = Vec::new();
        for at in outer.addresses() {
            let inner = heap.memory.word(at)?;
            let cells = heap
                .object(inner)
                .filter(|inner| inner.kind() == Kind::ARRAY && inner.class == 0)
                .and_then(|inner| heap.array(&inner))
                .map(|facts| facts.elements);
            match cells {
                Some(cells) if cells.count <= UNIT * PLACES => units.push(cells),
                // A unit without used IDs, or spare room.
                None if heap.slot(inner).is_none() => units.push(Cells::default()),
                _ => return None,
            }
        }
        let mut names = IdNames { units, last_token: 0 };
        names.prove(heap).then_some(names)
    }

    /// Whether Symbols have the numbers of their places.
    fn prove(&mut self, heap: &RubyHeap<'_>) -> bool {
        let (mut right, mut wrong) = (0, 0);
        let mut number = 0;
        for unit in self.units.iter().take(8) {
            for place in 0..UNIT {
                let symbol = (place * PLACES + 1 < unit.count)
                    .then(|| heap.memory.word(unit.at + (place * PLACES + 1) * WORD))
                    .flatten();
                if let Some(id) = symbol.and_then(symbol_id) {
                    if id == number {
                        self.last_token = self.last_token.max(id);
                        right += 1;
                    } else if id >> SCOPE_BITS == number {
                        right += 1;
                    } else {
                        wrong += 1;
                    }
                }
                number += 1;
            }
        }
        right >= PROOF && wrong * 100 < right
    }

    /// The name of an ID.
    pub fn of_id(&self, heap: &RubyHeap<'_>, id: u64) -> Option<String> {
        let number = if id > self.last_token { id >> SCOPE_BITS } else { id };
        self.of_number(heap, number)
    }

    /// The name of an ID by its number, as stored in tables.
    pub fn of_number(&self, heap: &RubyHeap<'_>, number: u64) -> Option<String> {
        let unit = self.units.get(usize::try_from(number / UNIT).ok()?)?;
        let place = number % UNIT * PLACES;
        if place >= unit.count {
            return None;
        }
        heap.name(heap.memory.word(unit.at + place * WORD)?)
    }
}

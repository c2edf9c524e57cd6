//! Arrays and the place of their elements.

use memprof_dump::record::Kind;

use super::{Cells, HEADER, Object, RubyHeap};
use crate::image::WORD;

const EMBEDDED: u32 = 1;
const LENGTH: u32 = 3;
const LENGTH_MASK: u64 = 0x7f;

/// An array without its elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArrayFacts {
    pub elements: Cells,
    /// The array that owns the elements.
    pub shared: Option<u64>,
    pub embedded: bool,
}

impl RubyHeap<'_> {
    /// The facts about an array; None if they are invalid.
    pub fn array(&self, array: &Object) -> Option<ArrayFacts> {
        let body = array.address + HEADER;
        if array.user(EMBEDDED) {
            let count = array.flags >> (super::USER + LENGTH) & LENGTH_MASK;
            let elements = Cells { at: body, count };
            let fits = elements.range().end <= array.address + array.slot_size;
            return fits.then_some(ArrayFacts { elements, shared: None, embedded: true });
        }
        let count = self.memory.word(body)?;
        let last = self.memory.word(body + WORD)?;
        let at = self.memory.word(body + 2 * WORD)?;
        let elements = Cells { at, count };
        self.is_there(elements).then_some(ArrayFacts {
            elements,
            shared: self.is(last, Kind::ARRAY).then_some(last),
            embedded: false,
        })
    }

    /// Whether the image has these words, all in one mapping.
    pub(super) fn is_there(&self, cells: Cells) -> bool {
        if cells.count == 0 {
            return true;
        }
        let image = &self.analysis.image;
        cells.at % WORD == 0
            && cells.count < 1 << 48
            && image
                .segment(cells.at)
                .is_some_and(|segment| cells.range().end <= segment.readable().end)
    }
}

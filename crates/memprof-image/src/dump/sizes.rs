//! Bytes of an object's blocks: those that its type determines, if known, else those that it owns.

use std::ops::Range;

use memprof_dump::record::Kind;

use crate::ruby_heap::{Object, RubyHeap, Values};
use crate::slot_content::{self, Buffer};

/// Bytes of the blocks that each slot owns.
pub struct Sizes(Vec<u64>);

impl Sizes {
    pub fn new(heap: &RubyHeap<'_>) -> Sizes {
        let analysis = heap.analysis;
        let slots = analysis.references().slots();
        let mut sizes = vec![0; slots.len()];
        for (number, block) in analysis.heap.blocks.iter().enumerate() {
            let owner = analysis.owner_node(number as u32);
            let place = owner.and_then(|owner| sizes.get_mut((owner - slots.start) as usize));
            if let Some(size) = place {
                *size += block.size;
            }
        }
        Sizes(sizes)
    }

    /// Bytes of an object outside of its slot.
    pub fn of(&self, heap: &RubyHeap<'_>, object: &Object) -> u64 {
        if !heap.knows_blocks {
            let contents = contents(heap, object).filter(|range| heap.room(range.start).is_some());
            return contents.map_or(0, |range| range.end - range.start);
        }
        let owned = object.node - heap.analysis.references().slots().start;
        let owned = self.0.get(owned as usize).copied().unwrap_or(0);
        // A slot may have remains of an earlier object, which look like references.
        let exact = exact(heap, object);
        exact.map_or(owned, |blocks| blocks.filter_map(|block| heap.block(block)).sum())
    }
}

/// The memory of an object's contents, where blocks are not known. Small contents are in the slot.
fn contents(heap: &RubyHeap<'_>, object: &Object) -> Option<Range<u64>> {
    Some(match object.kind() {
        Kind::STRING => {
            let string = heap.string(object)?;
            let bytes = string.capacity.unwrap_or(string.length);
            let own = string.shared.is_none().then_some(string.at)?;
            own..own.saturating_add(bytes).saturating_add(1)
        }
        Kind::BIGNUM => {
            let digits = digits(heap, object)?;
            digits.at..digits.at.saturating_add(digits.length)
        }
        Kind::ARRAY => {
            let array = heap.array(object)?;
            array.shared.is_none().then_some(array.elements.range())?
        }
        Kind::STRUCT => heap.structure(object)?.range(),
        Kind::OBJECT => match heap.values(object)? {
            Values::Cells(cells) => cells.range(),
            Values::Table { table, .. } => table.range(),
        },
        Kind::HASH => heap.hash(object)?.entries.range(),
        _ => return None,
    })
}

/// The digits of an Integer, if they are not in its slot.
fn digits(heap: &RubyHeap<'_>, object: &Object) -> Option<Buffer> {
    slot_content::buffer(object.address, object.flags, |at| heap.memory.word(at))
}

/// The addresses of the blocks with an object's contents, if its type determines them. Contents in the slot begin no block.
pub fn exact<'h>(
    heap: &'h RubyHeap<'_>,
    object: &Object,
) -> Option<impl Iterator<Item = u64> + use<'h>> {
    let blocks = match object.kind() {
        Kind::FLOAT => Vec::new(),
        Kind::STRING => {
            let string = heap.string(object)?;
            Vec::from_iter(string.shared.is_none().then_some(string.at))
        }
        Kind::BIGNUM => digits(heap, object).map(|digits| digits.at).into_iter().collect(),
        Kind::ARRAY => {
            let array = heap.array(object)?;
            Vec::from_iter(array.shared.is_none().then_some(array.elements.at))
        }
        Kind::STRUCT => vec![heap.structure(object)?.at],
        Kind::OBJECT => heap.values(object)?.blocks(),
        Kind::HASH => heap.hash(object)?.blocks.to_vec(),
        _ => return None,
    };
    Some(blocks.into_iter())
}

//! Bytes of blocks that belong to an object: those that its type says where that is known, else those that it owns.

use memprof_dump::record::Kind;

use crate::ruby_heap::{Object, RubyHeap};

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

    /// Bytes that an object has outside of its slot.
    pub fn of(&self, heap: &RubyHeap<'_>, object: &Object) -> u64 {
        let owned = object.node - heap.analysis.references().slots().start;
        let owned = self.0.get(owned as usize).copied().unwrap_or(0);
        // A slot may have rests of what was there before, which look like references.
        exact(heap, object).unwrap_or(owned)
    }
}

fn exact(heap: &RubyHeap<'_>, object: &Object) -> Option<u64> {
    let blocks = match object.kind() {
        Kind::FLOAT => Vec::new(),
        Kind::STRING => {
            let string = heap.string(object)?;
            Vec::from_iter(string.shared.is_none().then_some(string.at))
        }
        Kind::ARRAY => {
            let array = heap.array(object)?;
            Vec::from_iter(array.shared.is_none().then_some(array.elements.at))
        }
        Kind::STRUCT => vec![heap.structure(object)?.at],
        Kind::OBJECT => heap.values(object)?.blocks(),
        Kind::HASH => heap.hash(object)?.blocks.to_vec(),
        _ => return None,
    };
    // What lies in the slot begins no block.
    Some(
        blocks
            .into_iter()
            .filter_map(|block| heap.block(block))
            .sum(),
    )
}

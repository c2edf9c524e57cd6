//! Malloc blocks that C code leaked, in heaps that have blocks.

use std::io;

use super::overview::process_facts;
use memprof_dump::record::Kind;
use memprof_heap::graph::{BitSet, reachable};
use memprof_heap::{FREE, Heap};

/// Whether the heap was dumped with its blocks.
pub(crate) fn has_blocks(heap: &Heap) -> bool {
    let header = process_facts::header(heap);
    header.get("blocks").and_then(serde_json::Value::as_bool) == Some(true)
}

/// Whether an object is a block of malloc.
pub(super) fn is_block(heap: &Heap) -> io::Result<impl Fn(u32) -> bool + '_> {
    let kinds: Vec<bool> = heap.groups().iter().map(|group| group.kind == Kind::BLOCK).collect();
    let groups = if kinds.contains(&true) { heap.group_numbers()? } else { &[] };
    Ok(move |id: u32| {
        let group = groups.get(id as usize);
        group.is_some_and(|&group| kinds.get(group as usize) == Some(&true))
    })
}

/// Sizes of the slots of all objects: a block has none, also beside Ruby's pages.
pub(super) fn slots(heap: &Heap) -> io::Result<Vec<u16>> {
    let is_block = is_block(heap)?;
    let slots = (0..).zip(heap.slots());
    Ok(slots.map(|(id, slot)| if is_block(id) { 0 } else { slot }).collect())
}

/// Used blocks that nothing reachable references, and no Ruby garbage either: the GC would free those. `None` if the heap has no
/// blocks.
pub(super) fn leaked(
    heap: &Heap,
    is_reachable: impl Fn(u32) -> bool,
) -> io::Result<Option<BitSet>> {
    if !has_blocks(heap) {
        return Ok(None);
    }
    let is_block = is_block(heap)?;
    let (blocks, garbage): (Vec<u32>, Vec<u32>) =
        (0..heap.len()).filter(|&id| !is_reachable(id)).partition(|id| is_block(*id));
    let theirs = reachable(&heap.graph(&[])?, &garbage);
    let flags = heap.flag_words()?;
    let is_used = |id: u32| flags.get(id as usize).is_some_and(|flags| flags & FREE.0 == 0);
    let leaked = blocks.into_iter().filter(|&id| is_used(id) && !theirs.contains(id));
    Ok(Some(BitSet::of(heap.len() as usize, leaked)))
}

//! Blocks of malloc that nothing refers to, in heaps that have blocks.

use std::cmp::Reverse;
use std::io;

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::process_facts;
use memprof_dump::record::Kind;
use memprof_heap::graph::reachable;
use memprof_heap::{Heap, NONE};

/// What C code has lost, in the last heap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lost {
    /// Blocks that neither a root nor an object leads to.
    pub count: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Of one size, those that have most bytes.
    pub largest: Option<Alike>,
    /// Bytes in each heap.
    pub series: Vec<u64>,
}

/// Blocks of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Alike {
    /// Bytes of each.
    pub size: u64,
    /// Blocks.
    pub count: u64,
}

/// Blocks of a heap by size that are lost; `None` if the heap has no blocks. `of` are the nodes of the merged tree, `NONE` for
/// what no root reaches. What garbage of Ruby leads to is not lost: the collector frees it.
pub(super) fn by_size(heap: &Heap, of: &[u32]) -> io::Result<Option<FxHashMap<u64, u64>>> {
    let header = process_facts::header(heap);
    if header.get("blocks").and_then(serde_json::Value::as_bool) != Some(true) {
        return Ok(None);
    }
    let is_block: Vec<bool> = (heap.groups().iter())
        .map(|group| group.kind == Kind::BLOCK)
        .collect();
    let groups = heap.group_numbers()?;
    let unreached = || (0..heap.len()).filter(|&id| of.get(id as usize) == Some(&NONE));
    let block = |id: &u32| {
        let group = groups.get(*id as usize);
        group.is_some_and(|&group| is_block.get(group as usize) == Some(&true))
    };
    let garbage: Vec<u32> = unreached().filter(|id| !block(id)).collect();
    let theirs = reachable(&heap.graph(&[])?, &garbage);
    let sizes = heap.memsizes()?;
    let mut lost = FxHashMap::default();
    for id in unreached().filter(|id| block(id) && !theirs.contains(*id)) {
        *lost.entry(sizes.get(id)).or_default() += 1;
    }
    Ok(Some(lost))
}

impl Lost {
    /// Of the last of several heaps.
    pub(super) fn of(heaps: &[Option<FxHashMap<u64, u64>>]) -> Option<Lost> {
        let bytes =
            |sizes: &FxHashMap<u64, u64>| sizes.iter().map(|(size, count)| size * count).sum();
        let all: Option<Vec<_>> = heaps.iter().map(Option::as_ref).collect();
        let all = all?;
        let last = all.last()?;
        let most = last
            .iter()
            .max_by_key(|&(size, count)| (size * count, Reverse(*size)));
        Some(Lost {
            count: last.values().sum(),
            bytes: bytes(last),
            largest: most.map(|(&size, &count)| Alike { size, count }),
            series: all.iter().map(|sizes| bytes(sizes)).collect(),
        })
    }
}

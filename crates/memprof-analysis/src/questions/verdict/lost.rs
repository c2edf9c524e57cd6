//! Malloc blocks that nothing references, in heaps that have blocks.

use std::cmp::Reverse;
use std::io;

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::questions::leaked::leaked;
use memprof_heap::{Heap, NONE};

/// Memory leaked by C code, in the last heap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lost {
    /// Number of blocks that neither a root nor an object reaches.
    pub count: u64,
    /// Bytes of these blocks.
    pub bytes: u64,
    /// The blocks of the size that takes most bytes.
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

/// Leaked blocks of a heap by size; `None` if the heap has no blocks. `of` has the node of each object in the merged tree,
/// `NONE` if unreachable.
pub(super) fn by_size(heap: &Heap, of: &[u32]) -> io::Result<Option<FxHashMap<u64, u64>>> {
    let Some(leaked) = leaked(heap, |id| of.get(id as usize) != Some(&NONE))? else {
        return Ok(None);
    };
    let sizes = heap.memsizes()?;
    let mut lost = FxHashMap::default();
    leaked.iter().for_each(|id| *lost.entry(sizes.get(id)).or_default() += 1);
    Ok(Some(lost))
}

impl Lost {
    /// The blocks of the last of several heaps.
    pub(super) fn of(heaps: &[Option<FxHashMap<u64, u64>>]) -> Option<Lost> {
        let bytes =
            |sizes: &FxHashMap<u64, u64>| sizes.iter().map(|(size, count)| size * count).sum();
        let all: Option<Vec<_>> = heaps.iter().map(Option::as_ref).collect();
        let all = all?;
        let last = all.last()?;
        let most = last.iter().max_by_key(|&(size, count)| (size * count, Reverse(*size)));
        Some(Lost {
            count: last.values().sum(),
            bytes: bytes(last),
            largest: most.map(|(&size, &count)| Alike { size, count }),
            series: all.iter().map(|sizes| bytes(sizes)).collect(),
        })
    }
}

//! Arenas and their blocks.

use serde::{Deserialize, Serialize};

use super::{Address, Total};
use crate::analysis::Analysis;
use crate::blocks::Kind;

/// Has no parameters.
#[derive(Deserialize)]
pub struct Question {}

/// Arenas, the main one first.
#[derive(Serialize)]
pub struct Arenas {
    /// The arenas.
    pub arenas: Vec<Row>,
    /// Blocks with a mapping of their own.
    pub mapped: Total,
}

/// An arena.
#[derive(Serialize)]
pub struct Row {
    address: Address,
    main: bool,
    /// Bytes obtained from the system.
    pub size: u64,
    /// The free chunk at its end.
    top: Address,
    /// Its size.
    pub top_size: u64,
    used: Total,
    /// Free blocks, also those in caches of threads.
    pub free: Total,
    /// The largest free block.
    largest_free: u64,
}

impl Question {
    /// Sums up the blocks of each arena.
    pub fn answer(&self, analysis: &Analysis) -> Result<Arenas, String> {
        Ok(Arenas::of(analysis))
    }
}

impl Arenas {
    /// Sums up the blocks of each arena.
    #[must_use]
    pub fn of(analysis: &Analysis) -> Arenas {
        let heap = &analysis.heap;
        let mut heaps: Vec<_> = (heap.arenas.iter().enumerate())
            .flat_map(|(number, arena)| {
                arena.heaps.iter().map(move |heap| (heap.start, heap.end, number))
            })
            .collect();
        heaps.sort_unstable();
        let mut rows: Vec<Row> = (heap.arenas.iter().zip(&heap.tops))
            .map(|(arena, top)| Row {
                address: Address(arena.address),
                main: arena.main,
                size: arena.system_memory,
                top: Address(arena.top),
                top_size: *top,
                used: Total::default(),
                free: Total::default(),
                largest_free: 0,
            })
            .collect();
        let mut mapped = Total::default();
        for block in heap.blocks.iter() {
            let after = heaps.partition_point(|(start, ..)| *start <= block.address);
            let own = after.checked_sub(1).map(|number| heaps[number]);
            match own.filter(|(_, end, _)| block.address < *end) {
                Some((.., number)) if block.kind == Kind::Used => rows[number].used.add(block.size),
                Some((.., number)) => {
                    let row = &mut rows[number];
                    row.free.add(block.size);
                    row.largest_free = row.largest_free.max(block.size);
                }
                None => mapped.add(block.size),
            }
        }
        Arenas { arenas: rows, mapped }
    }
}

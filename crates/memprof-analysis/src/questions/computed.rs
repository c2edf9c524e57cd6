//! Columns that are computed when a question needs them.

use std::io;

use memprof_dump::record::NoteKind;
use memprof_heap::{Heap, NONE};

/// Number of referrers of each object, without references to classes.
pub(super) fn referrers(heap: &Heap) -> io::Result<Vec<u32>> {
    let graph = heap.graph(&[])?;
    let end = graph.offsets.get(heap.len() as usize).map_or(0, |&end| end as usize);
    let mut counts = vec![0_u32; heap.len() as usize];
    for &target in graph.targets.get(..end).unwrap_or_default() {
        if let Some(count) = counts.get_mut(target as usize) {
            *count = count.saturating_add(1);
        }
    }
    Ok(counts)
}

/// Length of the shortest path from the roots, which are at 0; [`NONE`] for unreachable objects.
pub(super) fn depths(heap: &Heap, steps: &[u32]) -> Vec<u32> {
    let mut depths = vec![NONE; steps.len()];
    for node in heap.len()..heap.root().min(steps.len() as u32) {
        depths[node as usize] = 0;
    }
    let mut way = Vec::new();
    for start in 0..heap.len().min(steps.len() as u32) {
        let mut at = start;
        // Nodes on the path are marked, so that a broken index cannot cause an endless loop.
        while let Some(&next) = steps.get(at as usize) {
            if depths[at as usize] != NONE || next == NONE {
                break;
            }
            depths[at as usize] = NONE - 1;
            way.push(at);
            at = next;
        }
        let mut depth = depths.get(at as usize).copied().unwrap_or(NONE);
        for node in way.drain(..).rev() {
            depth = if depth >= NONE - 1 { NONE } else { depth + 1 };
            depths[node as usize] = depth;
        }
    }
    depths
}

/// The generation in which the dump was written, or else the last generation of an object.
pub(super) fn last_generation(heap: &Heap) -> io::Result<u32> {
    let header = heap.notes().iter().find(|(kind, _)| *kind == NoteKind::Header);
    let header = header.and_then(|(_, json)| serde_json::from_str::<serde_json::Value>(json).ok());
    let generation =
        header.and_then(|header| u32::try_from(header.get("generation")?.as_u64()?).ok());
    if let Some(generation) = generation {
        return Ok(generation);
    }
    let generations = heap.generations()?.iter();
    Ok(generations.copied().filter(|&generation| generation != NONE).max().unwrap_or(0))
}

/// The root category in which the shortest path to each object begins.
pub(super) fn categories(heap: &Heap, steps: &[u32]) -> Vec<u32> {
    const SEEN: u32 = NONE - 1;
    let mut categories = vec![NONE; steps.len()];
    let nodes = heap.len()..heap.root().min(steps.len() as u32);
    nodes.zip(0..).for_each(|(node, category)| categories[node as usize] = category);
    let mut way = Vec::new();
    for start in 0..heap.len().min(steps.len() as u32) {
        let mut at = start;
        while let Some(&next) = steps.get(at as usize) {
            if categories[at as usize] != NONE || next == NONE {
                break;
            }
            // The mark prevents an endless loop in a broken index.
            categories[at as usize] = SEEN;
            way.push(at);
            at = next;
        }
        let category = categories.get(at as usize).copied().filter(|&category| category != SEEN);
        way.drain(..).for_each(|node| categories[node as usize] = category.unwrap_or(NONE));
    }
    categories
}

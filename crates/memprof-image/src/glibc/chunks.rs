//! Walks the chunks of a heap.
//!
//! A chunk consists of a word that belongs to the previous chunk if that is used, its size with three flags, and the block. A
//! flag of the next chunk shows whether it is free.

use std::ops::Range;

use crate::image::{Image, WINDOW, WORD, Words};

/// Flags of a size: the previous chunk is used, the chunk is mapped on its own, it is not in the main arena.
const PREVIOUS_USED: u64 = 1;
const MAPPED: u64 = 2;
const FLAGS: u64 = 7;
/// Bytes before a block.
pub(crate) const HEADER: u64 = 2 * WORD;
const MIN_CHUNK: u64 = 4 * WORD;
const PAGE: u64 = 4096;
/// So many consecutive valid chunks are not a coincidence.
const CONVINCING: usize = 24;
/// A flag of the word before the size of a mapped chunk.
const HUGE: u64 = 1;
/// Alignments of mapped blocks, as powers of two: from the default up to a huge page of 1 GiB.
const ALIGNMENTS: std::ops::RangeInclusive<u32> = 5..=30;

/// The result of a step of a walk.
pub(crate) enum Found {
    /// A block: its address, its size, whether it is used.
    Block(u64, u64, bool),
    /// The end of the heap at which the arena grows, with its bytes.
    Top(u64),
    /// An invalid size, at this chunk.
    Corrupt(u64),
    /// Bytes skipped after an invalid size.
    Skipped(u64),
}

/// Walks a heap. `top` is the last chunk of its arena, which may be in another heap.
pub(crate) fn walk(image: &Image, heap: &Range<u64>, top: u64, mut found: impl FnMut(Found)) {
    let mut words = image.words(WINDOW);
    let mut chunk = heap.start;
    while chunk + HEADER <= heap.end {
        if chunk == top {
            let size = words.at(chunk + WORD).unwrap_or(0) & !FLAGS;
            found(Found::Top(size.min(heap.end - chunk)));
            return;
        }
        let Some(size) = words.at(chunk + WORD) else {
            found(Found::Skipped(heap.end - chunk));
            return;
        };
        // Two small chunks mark the end of a heap and places where something else moved the break.
        let is_fence =
            size & !FLAGS == HEADER || size & !FLAGS == 0 && chunk + MIN_CHUNK >= heap.end;
        let next = if is_fence { None } else { sound(&mut words, chunk, size, heap) };
        if let Some((size, used)) = next {
            found(Found::Block(chunk + HEADER, size - WORD, used));
            chunk += size;
            continue;
        }
        if is_fence && heap.end - chunk <= 2 * MIN_CHUNK {
            return;
        }
        if !is_fence {
            found(Found::Corrupt(chunk));
        }
        let Some(next) = resume(&mut words, chunk + HEADER, heap, top) else {
            found(Found::Skipped(heap.end - chunk));
            return;
        };
        found(Found::Skipped(next - chunk));
        chunk = next;
    }
}

/// Size of a chunk, and whether it is used, if both are valid.
fn sound(words: &mut Words<'_>, chunk: u64, size: u64, heap: &Range<u64>) -> Option<(u64, bool)> {
    let bytes = size & !FLAGS;
    let next = chunk.checked_add(bytes)?;
    if bytes < MIN_CHUNK || bytes % HEADER != 0 || next + HEADER > heap.end || size & MAPPED != 0 {
        return None;
    }
    Some((bytes, words.at(next + WORD)? & PREVIOUS_USED != 0))
}

/// The next valid chunk after an invalid one.
fn resume(words: &mut Words<'_>, from: u64, heap: &Range<u64>, top: u64) -> Option<u64> {
    let mut candidate = from;
    while candidate + MIN_CHUNK <= heap.end {
        let mut chunk = candidate;
        let mut count = 0;
        while count < CONVINCING && chunk != top {
            let size = words.at(chunk + WORD)?;
            let Some((size, _)) = sound(words, chunk, size, heap) else {
                break;
            };
            chunk += size;
            count += 1;
        }
        if count == CONVINCING || (chunk == top && count > 0) {
            return Some(candidate);
        }
        candidate += HEADER;
    }
    None
}

/// Blocks with a mapping of their own, outside of arenas: their address and size, and their mapping.
pub(crate) fn mapped(
    image: &Image,
    range: Range<u64>,
    mut found: impl FnMut(u64, u64, Range<u64>),
) {
    let mut words = image.words(1 << 16);
    let mut page = range.start.next_multiple_of(PAGE);
    while page < range.end {
        let block = mapped_at(&mut words, page, page, range.end).map(|first| {
            // An aligned block begins later, but the header of the whole mapping is still present.
            let leads = ALIGNMENTS.map(|bit| (1 << bit) - HEADER);
            let aligned =
                leads.filter_map(|lead| mapped_at(&mut words, page + lead, page, range.end));
            aligned.filter(|(.., end)| *end == first.2).last().unwrap_or(first)
        });
        match block {
            Some((address, size, end)) => {
                found(address, size, page..end);
                page = end;
            }
            None => page += PAGE,
        }
    }
}

/// The address, size and end of a mapped block, if its chunk is here and its mapping begins at `start`.
///
/// Up to glibc 2.42 the chunk extends to the end of the mapping. Since then it is like other chunks, followed by room for a
/// header, and a flag beside its distance from `start` marks mappings with huge pages.
fn mapped_at(words: &mut Words<'_>, chunk: u64, start: u64, limit: u64) -> Option<(u64, u64, u64)> {
    if chunk >= limit {
        return None;
    }
    let before = words.at(chunk)?;
    if before & !HUGE != chunk - start {
        return None;
    }
    let size = words.at(chunk + WORD)?;
    let bytes = size & !FLAGS;
    let end = chunk.checked_add(bytes)?;
    if size & FLAGS != MAPPED || bytes <= HEADER {
        return None;
    }
    let (usable, end) = match end % PAGE {
        0 if before & HUGE == 0 => (bytes - HEADER, end),
        _ => (bytes - WORD, end.checked_add(HEADER)?),
    };
    (end % PAGE == 0 && end <= limit).then_some((chunk + HEADER, usable, end))
}

//! Finds glibc's arenas by their structure, without symbols or version tables.
//!
//! An arena (`malloc_state`) has 127 bins, each a list whose head is part of the arena. An empty bin points to itself, as the
//! last one always does; other lists lead back to their heads. The heaps of all arenas but the first begin at multiples of 64
//! MiB, with a `heap_info` that points to their arena. Arenas form a ring. Since glibc 2.43 the arena has no fastbins before the
//! bins; the distance from its start to the bins shows whether it has them.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::image::{GLIMPSE, Image, WORD, Words};

/// The alignment of arenas' heaps, without huge pages.
const HEAP_ALIGNMENT: u64 = 64 << 20;
/// `NBINS - 1`: there is no bin 0.
const BINS: u64 = 127;
/// Two words for each bin.
const BIN: u64 = 2 * WORD;
/// Behind the bins: a map of them in 16 bytes, `next`, `next_free`, `attached_threads`, `system_mem`.
const NEXT: u64 = BINS * BIN + 16;
const SYSTEM_MEMORY: u64 = NEXT + 3 * WORD;
/// `top` and `last_remainder` precede the bins.
const TOP: u64 = 2 * WORD;
/// Size of the mutex, flags and fastbins: bins do not begin later.
const MAX_BINS_OFFSET: u64 = 0x80;
const MIN_BINS_OFFSET: u64 = 0x18;
/// Sizes of `heap_info` before and since glibc 2.35.
const HEAP_INFOS: [u64; 2] = [0x20, 0x30];
const MAX_ARENAS: usize = 1 << 16;
/// The minimum number of bins whose lists lead back to their heads, even if most of a heap is missing or damaged. They need not
/// be empty: in a fragmented heap, almost no bin is.
const CLOSED_BINS: u64 = 8;

/// An arena.
#[derive(Clone, Debug)]
pub struct Arena {
    /// The address.
    pub address: u64,
    /// Whether it is the main arena, which grows with brk.
    pub main: bool,
    /// The address of its bins.
    pub bins: u64,
    /// The free chunk at the end.
    pub top: u64,
    /// Bytes obtained from the system.
    pub system_memory: u64,
    /// The next arena.
    pub next: u64,
    /// Its heaps: memory ranges that consist of chunks.
    pub heaps: Vec<Range<u64>>,
}

impl Arena {
    /// The addresses of its fastbins, one word each; empty if it has none.
    #[must_use]
    pub fn fastbins(&self) -> Range<u64> {
        let end = self.bins - TOP;
        let words = (end - self.address) / WORD;
        // A mutex, flags and a word that is set if any fastbin is used: two words and ten fastbins.
        if words >= 12 { end - 10 * WORD..end } else { end..end }
    }

    /// The memory of the arena itself. Its bins have addresses of chunks, which are inside of the preceding blocks.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.address..self.bins.saturating_add(SYSTEM_MEMORY + 2 * WORD)
    }

    /// The head of each bin.
    pub fn each_bin(&self) -> impl Iterator<Item = u64> + use<> {
        (self.bins..).step_by(BIN as usize).take(BINS as usize)
    }

    fn read(words: &mut Words<'_>, address: u64, bins: u64, main: bool) -> Option<Arena> {
        Some(Arena {
            address,
            main,
            bins,
            top: words.at(bins - TOP)?,
            system_memory: words.at(bins + SYSTEM_MEMORY)?,
            next: words.at(bins + NEXT)?,
            heaps: Vec::new(),
        })
    }
}

/// All arenas, the main one first.
#[must_use]
pub fn arenas(image: &Image) -> Vec<Arena> {
    let mut words = image.words(GLIMPSE);
    let mut found = arenas_with_heaps(image, &mut words);
    let others: BTreeSet<u64> = found.iter().map(|arena| arena.address).collect();
    if let Some(mut main) = main_arena(image, &mut words, &others) {
        main.heaps = main_heap(image, &main).into_iter().collect();
        found.insert(0, main);
    }
    found
}

/// The threads' arenas, with their heaps.
fn arenas_with_heaps(image: &Image, words: &mut Words<'_>) -> Vec<Arena> {
    let mut heaps: Vec<(u64, Range<u64>)> = Vec::new();
    for run in image.writable_runs(|segment| segment.file.is_none()) {
        let mut heap = run.start.next_multiple_of(HEAP_ALIGNMENT);
        while heap < run.end && heaps.len() < MAX_ARENAS {
            heaps.extend(heap_at(words, heap, run.end));
            heap = heap.saturating_add(HEAP_ALIGNMENT);
        }
    }
    let mut arenas: Vec<Arena> = Vec::new();
    for &(address, ref heap) in &heaps {
        // The first heap of an arena contains it.
        let Some(info) = (HEAP_INFOS.iter()).find(|size| heap.start + **size == address) else {
            continue;
        };
        let Some(arena) =
            bins_of(words, address).and_then(|bins| Arena::read(words, address, bins, false))
        else {
            continue;
        };
        let own = heaps.iter().filter(|(owner, _)| *owner == address);
        let heaps = own.map(|(_, other)| {
            let head =
                if other.start == heap.start { arena.range().end } else { other.start + info };
            head.next_multiple_of(2 * WORD)..other.end
        });
        let heaps = heaps.collect();
        arenas.push(Arena { heaps, ..arena });
    }
    arenas
}

/// The arena of the heap that begins at an address, and the heap's range.
fn heap_at(words: &mut Words<'_>, heap: u64, limit: u64) -> Option<(u64, Range<u64>)> {
    let (arena, previous) = (words.at(heap)?, words.at(heap + WORD)?);
    let (size, accessible) = (words.at(heap + 2 * WORD)?, words.at(heap + 3 * WORD)?);
    let home = arena & !(HEAP_ALIGNMENT - 1);
    let is_heap = HEAP_INFOS.contains(&(arena - home))
        && previous % HEAP_ALIGNMENT == 0
        && (1..=HEAP_ALIGNMENT).contains(&size)
        && size <= accessible
        && accessible <= HEAP_ALIGNMENT
        && size % 4096 == 0
        && words.at(home)? == arena;
    is_heap.then(|| (arena, heap..heap.saturating_add(size).min(limit)))
}

/// The address of the bins of an arena.
fn bins_of(words: &mut Words<'_>, arena: u64) -> Option<u64> {
    let candidates = (MIN_BINS_OFFSET..=MAX_BINS_OFFSET).step_by(WORD as usize);
    candidates.map(|offset| arena + offset).find(|bins| are_bins(words, *bins))
}

/// Whether bins begin here: all of them point somewhere, and enough lead back. Words before and behind them must fit, too: `top`
/// and `last_remainder` would look like another bin.
fn are_bins(words: &mut Words<'_>, bins: u64) -> bool {
    let leads_somewhere = |words: &mut Words<'_>, at| {
        let address = words.at(at).filter(|address| *address % WORD == 0);
        address.is_some_and(|address| words.at(address).is_some())
    };
    if !leads_somewhere(words, bins - TOP) || !leads_somewhere(words, bins + NEXT) {
        return false;
    }
    let mut closed = 0;
    for head in (bins..).step_by(BIN as usize).take(BINS as usize) {
        match (words.at(head), words.at(head + WORD)) {
            // Chunks are aligned; the head that an empty list points to is not since glibc 2.43.
            (Some(first), Some(last)) if first == head - BIN && last == head - BIN => closed += 1,
            (Some(first), Some(last))
                if first != 0 && last != 0 && first % BIN == 0 && last % BIN == 0 =>
            {
                closed += u64::from(is_closed(words, head - BIN, first, last));
            }
            _ => return false,
        }
    }
    closed >= CLOSED_BINS
}

/// Whether a list leads back to its head, which looks like a chunk: the first chunk points back to it, and the last one forward.
fn is_closed(words: &mut Words<'_>, head: u64, first: u64, last: u64) -> bool {
    let (next, previous) = (2 * WORD, 3 * WORD);
    let word = |words: &mut Words<'_>, chunk: u64, offset| words.at(chunk.checked_add(offset)?);
    word(words, first, previous) == Some(head) && word(words, last, next) == Some(head)
}

/// The main arena is a variable of libc.
fn main_arena(image: &Image, words: &mut Words<'_>, others: &BTreeSet<u64>) -> Option<Arena> {
    static_ranges(image).into_iter().find_map(|range| main_arena_in(image, words, others, range))
}

fn main_arena_in(
    image: &Image,
    words: &mut Words<'_>,
    others: &BTreeSet<u64>,
    range: Range<u64>,
) -> Option<Arena> {
    let mut empty = Vec::new();
    let mut before = None;
    image.each_word(range.clone(), |address, word| {
        if before == Some((address - WORD, word)) && word == address - WORD - BIN {
            empty.push(address - WORD);
        }
        before = Some((address, word));
    });
    // The empty bin found first may be any but the last ones.
    for head in empty {
        let bases = (0..BINS).map(|number| head - number * BIN);
        for bins in bases.take_while(|bins| *bins >= range.start + MIN_BINS_OFFSET) {
            let Some(next) = words.at(bins + NEXT) else {
                continue;
            };
            let alone = bins
                .checked_sub(next)
                .is_some_and(|offset| (MIN_BINS_OFFSET..=MAX_BINS_OFFSET).contains(&offset));
            if !(alone || others.contains(&next)) || !are_bins(words, bins) {
                continue;
            }
            let address = if alone { next } else { address_by_ring(words, next, bins)? };
            return Arena::read(words, address, bins, true);
        }
    }
    None
}

/// The ring of arenas leads back to the main one.
fn address_by_ring(words: &mut Words<'_>, mut arena: u64, bins: u64) -> Option<u64> {
    for _ in 0..MAX_ARENAS {
        let offset = bins_of(words, arena)? - arena;
        if arena + offset == bins {
            return Some(arena);
        }
        let next = words.at(arena + offset + NEXT)?;
        if next + offset == bins {
            return Some(next);
        }
        arena = next;
    }
    None
}

/// Writable memory of libraries and the program, libc's first.
fn static_ranges(image: &Image) -> Vec<Range<u64>> {
    let is_libc = |name: &str| {
        let name = name.rsplit('/').next().unwrap_or_default();
        name.starts_with("libc.so") || name.starts_with("libc-2.")
    };
    let of = |wanted: bool| {
        image.writable_runs(|segment| {
            let name = segment.file.and_then(|file| image.files.get(file as usize));
            name.is_some_and(|name| is_libc(name) == wanted)
        })
    };
    let mut ranges = of(true);
    ranges.extend(of(false));
    ranges
}

/// The heap that grows with brk: the whole mapping that contains its last chunk.
fn main_heap(image: &Image, arena: &Arena) -> Option<Range<u64>> {
    let runs = image.writable_runs(|segment| segment.file.is_none());
    runs.into_iter().find(|run| run.contains(&arena.top))
}

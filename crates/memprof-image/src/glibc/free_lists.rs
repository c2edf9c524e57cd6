//! Blocks that are free although the next chunk marks them as used: blocks in fastbins and in the threads' caches (tcache).
//!
//! Both are singly linked lists. Since glibc 2.32 a link is mangled with its own address. The list heads of a thread are in a
//! separate block, which is recognized by its structure.

use crate::blocks::{Block, Blocks, Kind};
use crate::glibc::Corruption;
use crate::glibc::arenas::Arena;
use crate::glibc::chunks::HEADER;
use crate::image::{GLIMPSE, Image, WORD, Words};

/// `tcache_perthread_struct`: a count of two bytes and a list head for each bin; glibc 2.30, and 2.42 which has more bins.
const CACHES: [Cache; 2] = [Cache { bins: 64, counted: true }, Cache { bins: 76, counted: false }];
/// Bins of one size each; the others have a range of sizes.
const SMALL_BINS: u64 = 64;
const MIN_BLOCK: u64 = 3 * WORD;

struct Cache {
    bins: u64,
    /// Whether counts are list lengths: later versions count downwards.
    counted: bool,
}

impl Cache {
    fn size(&self) -> u64 {
        (self.bins * (2 + WORD) + WORD).next_multiple_of(2 * WORD) - WORD
    }

    fn heads(&self, cache: u64) -> u64 {
        cache + self.bins * 2
    }
}

/// Marks blocks in fastbins as free and blocks in tcaches as thread-cached.
pub(crate) fn mark(
    image: &Image,
    arenas: &[Arena],
    blocks: &mut Blocks,
    corruptions: &mut Vec<Corruption>,
) {
    let mut words = image.words(GLIMPSE);
    let mut free = Vec::new();
    for arena in arenas {
        for head in arena.fastbins().step_by(WORD as usize) {
            let Some(first) = words.at(head).filter(|first| *first != 0) else {
                continue;
            };
            let (list, damage) =
                chain(&mut words, blocks, first.wrapping_add(HEADER), HEADER, None);
            corruptions.extend(damage.map(|at| Corruption::new("fastbin", at)));
            free.extend(list);
        }
    }
    for number in free.drain(..) {
        blocks.set_kind(number, Kind::Free);
    }
    let candidates: Vec<(Block, &Cache)> = blocks
        .iter()
        .filter(|block| block.kind == Kind::Used)
        .filter_map(|block| Some((block, CACHES.iter().find(|cache| cache.size() == block.size)?)))
        .collect();
    for (block, cache) in candidates {
        // A block that a thread is just freeing may not be linked yet; everything else must match.
        if let Some(cached) = cached(&mut words, blocks, block.address, cache) {
            for number in cached {
                blocks.set_kind(number, Kind::ThreadCached);
            }
        }
    }
}

/// The blocks cached by a thread, if this is its cache.
fn cached(words: &mut Words<'_>, blocks: &Blocks, at: u64, cache: &Cache) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for bin in 0..cache.bins {
        let first = words.at(cache.heads(at) + bin * WORD)?;
        let count = words.at((at + bin * 2) & !(WORD - 1))? >> ((bin % 4) * 16) & 0xffff;
        if first == 0 {
            if cache.counted && count > 0 {
                return None;
            }
            continue;
        }
        let size = (bin < SMALL_BINS).then_some(MIN_BLOCK + bin * 2 * WORD);
        let (list, damage) = chain(words, blocks, first, 0, size);
        if damage.is_some() || cache.counted && list.len() as u64 != count {
            return None;
        }
        all.extend(list);
    }
    Some(all)
}

/// The blocks of a list, and the place where it is damaged. Links point `before` bytes before the block.
fn chain(
    words: &mut Words<'_>,
    blocks: &Blocks,
    first: u64,
    before: u64,
    size: Option<u64>,
) -> (Vec<u32>, Option<u64>) {
    let mangled = chain_of(words, blocks, first, before, size, true);
    if mangled.1.is_none() {
        return mangled;
    }
    let plain = chain_of(words, blocks, first, before, size, false);
    if plain.1.is_none() { plain } else { mangled }
}

fn chain_of(
    words: &mut Words<'_>,
    blocks: &Blocks,
    first: u64,
    before: u64,
    size: Option<u64>,
    mangled: bool,
) -> (Vec<u32>, Option<u64>) {
    let mut list = Vec::new();
    let mut address = first;
    loop {
        let number = blocks.at(address);
        let block = number.and_then(|number| blocks.get(number));
        let (Some(number), Some(block)) = (number, block) else {
            return (list, Some(address));
        };
        let fits = block.kind == Kind::Used && size.is_none_or(|size| size == block.size);
        // A list longer than the number of blocks is cyclic.
        if !fits || list.len() > blocks.len() {
            return (list, Some(address));
        }
        list.push(number);
        let Some(link) = words.at(address) else {
            return (list, Some(address));
        };
        let next = if mangled { link ^ (address >> 12) } else { link };
        if next == 0 {
            return (list, None);
        }
        address = next.wrapping_add(before);
    }
}

//! The GC's mark stack: blocks with the objects that it marked last. It does not retain them.

use memprof_heap::graph::{BitSet, Graph};
use rustc_hash::FxHashSet;

use crate::blocks::{Block, Blocks, Kind};
use crate::image::{Image, WORD};
use crate::ruby_pages::RubyPages;

/// Objects in a piece, before the address of the next piece (`struct stack_chunk` of CRuby's gc.c).
const OBJECTS: u64 = 500;
const SIZE: u64 = (OBJECTS + 1) * WORD;

/// The struct of the collector that leads to the pieces (`rb_objspace_t`) is smaller than this.
const LARGEST_OWNER: u64 = 64 << 10;

/// The pieces of the mark stack, by number. Nodes from `slots` on are objects.
pub(crate) fn pieces(
    image: &Image,
    blocks: &Blocks,
    ruby: &RubyPages,
    graph: &Graph<'_>,
    slots: u32,
) -> FxHashSet<u32> {
    if ruby.pages.is_empty() {
        return FxHashSet::default();
    }
    recorded(image, blocks, graph, slots)
        .unwrap_or_else(|| likely(image, blocks, ruby, graph, slots))
}

/// The pieces that the collector's record of them leads to.
fn recorded(
    image: &Image,
    blocks: &Blocks,
    graph: &Graph<'_>,
    slots: u32,
) -> Option<FxHashSet<u32>> {
    let mut fitting = BitSet::new(graph.len());
    for (number, _) in (0..).zip(blocks.iter()).filter(|(_, block)| fits(block)) {
        fitting.insert(number);
    }
    (0..slots)
        .filter(|&number| graph.row(number).iter().any(|&target| fitting.contains(target)))
        .filter_map(|number| blocks.get(number))
        .filter(|block| block.size <= LARGEST_OWNER)
        .flat_map(|block| (block.address..block.end()).step_by(WORD as usize))
        .find_map(|at| stack_at(image, blocks, at))
}

/// The pieces of a mark stack whose record is at an address: the piece in use, unused ones, the number of objects in the
/// piece in use, the number that fits, and the number of unused pieces (`mark_stack_t` of CRuby's gc.c).
fn stack_at(image: &Image, blocks: &Blocks, at: u64) -> Option<FxHashSet<u32>> {
    let word = |number: u64| image.word(at.checked_add(number * WORD)?);
    let numbers = word(2)?;
    if numbers >> 32 != OBJECTS || numbers & 0xffff_ffff > OBJECTS {
        return None;
    }
    let mut found = FxHashSet::default();
    let mut follow = |mut address| {
        let mut count = 0;
        while address != 0 {
            let number = piece_at(blocks, address).filter(|number| found.insert(*number))?;
            address = image.word(blocks.get(number)?.address + OBJECTS * WORD)?;
            count += 1;
        }
        Some(count)
    };
    let (used, unused) = (follow(word(0)?)?, follow(word(1)?)?);
    (used + unused > 0 && unused == word(3)?).then_some(found)
}

fn fits(block: &Block) -> bool {
    block.kind == Kind::Used && block.size == SIZE
}

fn piece_at(blocks: &Blocks, address: u64) -> Option<u32> {
    blocks.at(address).filter(|&number| blocks.get(number).is_some_and(|block| fits(&block)))
}

/// The pieces by their contents, for a collector without such a record. Except for a few stale words they contain addresses of
/// objects, their next piece is another one or null, and no object references them, unlike the buffer of an Array of 500
/// elements.
fn likely(
    image: &Image,
    blocks: &Blocks,
    ruby: &RubyPages,
    graph: &Graph<'_>,
    slots: u32,
) -> FxHashSet<u32> {
    let numbered = (0..).zip(blocks.iter());
    let mut found: FxHashSet<u32> = numbered
        .filter(|(_, block)| is_like_one(image, blocks, ruby, *block))
        .map(|(number, _)| number)
        .collect();
    if !found.is_empty() {
        for object in slots..graph.len() as u32 {
            for target in graph.row(object) {
                found.remove(target);
            }
        }
    }
    found
}

fn is_like_one(image: &Image, blocks: &Blocks, ruby: &RubyPages, block: Block) -> bool {
    if !fits(&block) {
        return false;
    }
    let next = image.word(block.address + OBJECTS * WORD);
    if !next.is_some_and(|next| next == 0 || piece_at(blocks, next).is_some()) {
        return false;
    }
    let words = (0..OBJECTS).filter_map(|place| image.word(block.address + place * WORD));
    let (mut set, mut objects) = (0_u64, 0_u64);
    for word in words.filter(|word| *word != 0) {
        set += 1;
        objects += u64::from(ruby.containing(word).is_some());
    }
    objects * 10 >= set * 9
}

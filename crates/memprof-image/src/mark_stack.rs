//! The GC's mark stack: blocks with the objects that it marked last. It does not retain them.

use memprof_heap::graph::Graph;
use rustc_hash::FxHashSet;

use crate::blocks::{Block, Blocks, Kind};
use crate::image::{Image, WORD};
use crate::ruby_pages::RubyPages;

/// Objects in a piece, before the address of the next piece (`struct stack_chunk` of CRuby's gc.c).
const OBJECTS: u64 = 500;
const SIZE: u64 = (OBJECTS + 1) * WORD;

/// The pieces of the mark stack, by number. Except for a few stale words they contain addresses of objects, their next piece is
/// another one or null, and no object references them, unlike the buffer of an Array of 500 elements. Nodes from `slots` on are
/// objects.
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
    if block.kind != Kind::Used || block.size != SIZE {
        return false;
    }
    let is_piece = |address| {
        let other = blocks.at(address).and_then(|number| blocks.get(number));
        other.is_some_and(|other| other.kind == Kind::Used && other.size == SIZE)
    };
    let next = image.word(block.address + OBJECTS * WORD);
    if !next.is_some_and(|next| next == 0 || is_piece(next)) {
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

//! Bins of free chunks: doubly linked lists, which show whether the heap is damaged.

use crate::blocks::{Blocks, Kind};
use crate::glibc::Corruption;
use crate::glibc::arenas::Arena;
use crate::glibc::chunks::HEADER;
use crate::image::{GLIMPSE, Image, WORD};

/// Checks whether the chunks of all bins are free, and point to each other.
pub(crate) fn check(
    image: &Image,
    arenas: &[Arena],
    blocks: &Blocks,
    corruptions: &mut Vec<Corruption>,
) {
    let mut words = image.words(GLIMPSE);
    let mut visited = 0;
    for head in arenas.iter().flat_map(Arena::each_bin) {
        // The head is at the position of a chunk's links.
        let end = head - HEADER;
        let (mut before, mut chunk) = (end, words.at(head).unwrap_or(end));
        while chunk != end {
            let block = blocks.at(chunk.wrapping_add(HEADER));
            let block = block.and_then(|number| blocks.get(number));
            let (next, back) =
                (words.at(chunk.wrapping_add(HEADER)), words.at(chunk.wrapping_add(HEADER + WORD)));
            let is_free = block.is_some_and(|block| block.kind == Kind::Free);
            visited += 1;
            match next {
                Some(next) if is_free && back == Some(before) && visited <= blocks.len() => {
                    (before, chunk) = (chunk, next);
                }
                _ => {
                    corruptions.push(Corruption::new("bin", chunk));
                    break;
                }
            }
        }
    }
}

//! Reads the binary format: blocks that the read-ahead thread has decompressed.

use super::super::binary::{Pieces, replay};
use super::feed::{Feed, Piece};
use super::{Fallible, Skipped, Stop, Target};

/// The end of the blocks.
pub(super) struct End {
    /// Whether there was a last block: the dump is complete.
    pub footer: bool,
}

/// Passes all valid blocks to `target`. A text may have `most` bytes.
pub(super) fn read(
    feed: &mut Feed<'_>,
    target: &mut Target<'_>,
    skipped: &mut Skipped,
    most: u64,
) -> Fallible<End> {
    let mut pieces = Pieces::new(most);
    let mut number = 0;
    let mut footer = false;
    loop {
        let piece = feed.next().map_err(Stop::Input)?;
        number += 1;
        match piece {
            Piece::Records(block) => {
                match replay(&block, &mut pieces, target) {
                    Ok(()) => {}
                    Err(Stop::Broken) => skipped.note(number),
                    Err(stop) => return Err(stop),
                }
                feed.recycle(block);
            }
            Piece::Broken => skipped.note(number),
            Piece::Footer => footer = true,
            Piece::End { .. } => return Ok(End { footer }),
            Piece::Text { .. } | Piece::Binary => {}
        }
    }
}

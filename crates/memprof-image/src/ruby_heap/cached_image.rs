//! An image with a cache for scattered reads.

use std::cell::RefCell;

use crate::image::{Image, WORD};

const PIECE: u64 = 4096;
const PIECES: usize = 1024;

/// An image with the recently read pieces.
pub(crate) struct CachedImage<'i> {
    image: &'i Image,
    pieces: RefCell<Vec<Piece>>,
}

#[derive(Clone, Default)]
struct Piece {
    /// 0 for an empty entry: nothing is mapped there.
    address: u64,
    bytes: Vec<u8>,
}

impl<'i> CachedImage<'i> {
    pub fn new(image: &'i Image) -> CachedImage<'i> {
        CachedImage { image, pieces: RefCell::new(vec![Piece::default(); PIECES]) }
    }

    /// The word at an address, if the image has it.
    pub fn word(&self, address: u64) -> Option<u64> {
        let start = address & !(PIECE - 1);
        let mut pieces = self.pieces.borrow_mut();
        let piece = &mut pieces[(start / PIECE) as usize % PIECES];
        if piece.address != start {
            piece.bytes.resize(PIECE as usize, 0);
            let count = self.image.read(start, &mut piece.bytes);
            piece.bytes.truncate(count);
            piece.address = start;
        }
        let offset = (address - start) as usize;
        match piece.bytes.get(offset..offset + WORD as usize) {
            Some(bytes) => Some(u64::from_le_bytes(bytes.try_into().ok()?)),
            // The word crosses the end of a piece, or the segment begins within the piece.
            None => self.image.word(address),
        }
    }

    /// Four bytes at an address.
    pub fn half(&self, address: u64) -> Option<u32> {
        Some(self.word(address)? as u32)
    }

    /// Fills the buffer with bytes from an address on. Returns false if the image lacks some of them.
    pub fn bytes(&self, address: u64, length: usize, buffer: &mut Vec<u8>) -> bool {
        buffer.clear();
        // Prevents an absurd length from exhausting memory.
        let there = self.image.segment(address).map(|segment| {
            let end = segment.readable().end;
            usize::try_from(end.saturating_sub(address)).unwrap_or(usize::MAX)
        });
        if length > 0 && there.is_none_or(|there| there < length) {
            return false;
        }
        buffer.resize(length, 0);
        let count = self.image.read(address, buffer);
        buffer.truncate(count);
        count == length
    }

    /// A zero-terminated text up to a maximum length.
    pub fn c_string(&self, address: u64, most: usize) -> Option<String> {
        let mut bytes = Vec::new();
        for at in (address..).take(most + 1) {
            match self.word(at)? as u8 {
                0 => return String::from_utf8(bytes).ok(),
                byte => bytes.push(byte),
            }
        }
        None
    }
}

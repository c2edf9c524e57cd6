//! The parts of an image that were read last: each read of a file costs more than a search among them.

use crate::image::{Image, WORD};

const PIECE: u64 = 4096;
const PIECES: usize = 1024;
/// Bytes read at once where one read is near the one before it, as one object is to the next.
const GROUP: u64 = 1 << 16;

/// Pieces of an image, each at its place in a table.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    /// None of them until something is read.
    pieces: Vec<Piece>,
    /// The address of the piece that was missing last.
    last: u64,
    group: Vec<u8>,
}

#[derive(Clone, Debug, Default)]
struct Piece {
    /// 0 for an empty entry: nothing is mapped there.
    address: u64,
    bytes: Vec<u8>,
}

impl Recent {
    /// The word at an address, if the image has it.
    #[inline]
    pub fn word(&mut self, image: &Image, address: u64) -> Option<u64> {
        let start = address & !(PIECE - 1);
        let offset = (address - start) as usize;
        match self.piece(image, start).get(offset..offset + WORD as usize) {
            Some(bytes) => Some(u64::from_le_bytes(bytes.try_into().ok()?)),
            // The word crosses the end of a piece, or the segment begins within the piece.
            None => {
                let mut bytes = [0; WORD as usize];
                (image.read(address, &mut bytes) == bytes.len()).then(|| u64::from_le_bytes(bytes))
            }
        }
    }

    /// Fills the buffer with bytes from an address on, as far as the image has them.
    pub fn bytes(&mut self, image: &Image, address: u64, length: usize, buffer: &mut Vec<u8>) {
        buffer.clear();
        while buffer.len() < length && length < GROUP as usize {
            let at = address.saturating_add(buffer.len() as u64);
            let start = at & !(PIECE - 1);
            let bytes = self.piece(image, start).get((at - start) as usize..).unwrap_or_default();
            if bytes.is_empty() {
                break;
            }
            buffer.extend_from_slice(&bytes[..bytes.len().min(length - buffer.len())]);
        }
        let done = buffer.len();
        if done < length {
            buffer.resize(length, 0);
            let count = image.read(address.saturating_add(done as u64), &mut buffer[done..]);
            buffer.truncate(done + count);
        }
    }

    fn piece(&mut self, image: &Image, start: u64) -> &[u8] {
        if self.pieces.is_empty() {
            self.pieces.resize(PIECES, Piece::default());
        }
        if self.pieces[place(start)].address != start {
            if start.abs_diff(self.last) <= GROUP {
                self.read_group(image, start & !(GROUP - 1));
            }
            self.last = start;
        }
        let piece = &mut self.pieces[place(start)];
        if piece.address != start {
            piece.bytes.resize(PIECE as usize, 0);
            let count = image.read(start, &mut piece.bytes);
            piece.bytes.truncate(count);
            piece.address = start;
        }
        &piece.bytes
    }

    /// Reads the pieces of a group, as far as they are there from its beginning on.
    fn read_group(&mut self, image: &Image, first: u64) {
        self.group.resize(GROUP as usize, 0);
        let count = image.read(first, &mut self.group);
        let whole = self.group[..count].chunks_exact(PIECE as usize);
        for (bytes, address) in whole.zip((first..).step_by(PIECE as usize)) {
            let piece = &mut self.pieces[place(address)];
            piece.address = address;
            piece.bytes.clear();
            piece.bytes.extend_from_slice(bytes);
        }
    }
}

fn place(address: u64) -> usize {
    (address / PIECE) as usize % PIECES
}

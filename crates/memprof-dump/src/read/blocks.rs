//! Reads the blocks of the binary format one by one, on the read-ahead thread.

use std::io::{self, Read};

use super::super::binary::{FOOTER, HEADER, Header, RECORDS, VERSION};
use super::feed::{Line, Piece};
use super::invalid;
use super::limits::{Limits, too_large};
use super::unpack::Unpacked;

/// Bytes read at once.
const STEP: usize = 256 * 1024;

/// A block that claims to be larger is decompressed incrementally, so that it only takes memory for actual data.
const LARGE: u64 = 16 * 1024 * 1024;

/// Sends all blocks after the magic. A broken one is skipped, and the search for the next starts after its beginning. False
/// if the receiver is gone.
pub(super) fn read(input: &mut Unpacked, line: &Line, limits: Limits) -> io::Result<bool> {
    let mut window = Window { input, bytes: Vec::new(), at: 0 };
    version(&mut window)?;
    let mut unpacker = zstd::bulk::Decompressor::new()?;
    let mut total = 0;
    loop {
        let mut plain = line.buffer();
        let sound = match window.block()? {
            Some(block) if block.footer => return Ok(line.send(Piece::Footer)),
            Some(block) => {
                total = block.length.saturating_add(total);
                limits.check(total)?;
                // A block's claimed content is one record, or many small ones.
                if block.length > limits.record {
                    return Err(too_large("one of its blocks", limits.record));
                }
                Some(unpack(&block, &mut unpacker, &mut plain))
            }
            None => None,
        };
        let piece = match sound {
            Some(true) => Piece::Records(plain),
            Some(false) => Piece::Broken,
            None if window.seek()? => Piece::Broken,
            None => return Ok(true),
        };
        if !line.send(piece) {
            return Ok(false);
        }
    }
}

fn version(window: &mut Window<'_>) -> io::Result<()> {
    if !window.fill(2)? {
        return Ok(());
    }
    let version = u16::from_le_bytes([window.bytes[0], window.bytes[1]]);
    if version != VERSION {
        return Err(invalid(format!(
            "version {version} of the binary format; this memprof reads version {VERSION}"
        )));
    }
    window.at = 2;
    Ok(())
}

/// Whether the block has the claimed content.
fn unpack(
    block: &Block<'_>,
    unpacker: &mut zstd::bulk::Decompressor<'_>,
    plain: &mut Vec<u8>,
) -> bool {
    plain.clear();
    let result = if block.length <= LARGE {
        plain.reserve(block.length as usize);
        unpacker.decompress_to_buffer(block.packed, plain)
    } else {
        let decoder = zstd::Decoder::with_buffer(block.packed);
        decoder.and_then(|decoder| decoder.take(block.length + 1).read_to_end(plain))
    };
    result.is_ok_and(|length| length as u64 == block.length)
}

/// A block with a valid checksum.
struct Block<'a> {
    footer: bool,
    length: u64,
    packed: &'a [u8],
}

/// The current part of the input.
struct Window<'i> {
    input: &'i mut Unpacked,
    bytes: Vec<u8>,
    /// Bytes already consumed.
    at: usize,
}

impl Window<'_> {
    /// Reads until `count` bytes are available; false if the input has no more. The claims of a header take no memory before
    /// the data has arrived.
    fn fill(&mut self, count: usize) -> io::Result<bool> {
        if self.bytes.len() - self.at >= count {
            return Ok(true);
        }
        self.bytes.drain(..self.at);
        self.at = 0;
        while self.bytes.len() < count {
            let have = self.bytes.len();
            self.bytes.resize(have + STEP, 0);
            let more = self.input.fill(&mut self.bytes[have..])?;
            self.bytes.truncate(have + more);
            if more < STEP {
                break;
            }
        }
        Ok(self.bytes.len() >= count)
    }

    /// The block at this position; `None` if it is incomplete or damaged.
    fn block(&mut self) -> io::Result<Option<Block<'_>>> {
        if !self.fill(HEADER)? {
            return Ok(None);
        }
        let mut header = Header([0; HEADER]);
        header.0.copy_from_slice(&self.bytes[self.at..self.at + HEADER]);
        let footer = header.magic() == FOOTER;
        if !footer && header.magic() != RECORDS {
            return Ok(None);
        }
        let Ok(length) = usize::try_from(header.packed_length()) else {
            return Ok(None);
        };
        if !self.fill(HEADER + length)? {
            return Ok(None);
        }
        let begin = self.at + HEADER;
        let sound = header.is_sound(&self.bytes[begin..begin + length]);
        if !sound {
            return Ok(None);
        }
        self.at = begin + length;
        Ok(Some(Block {
            footer,
            length: header.plain_length(),
            packed: &self.bytes[begin..begin + length],
        }))
    }

    /// Moves to the next possible start of a block; false if there is none.
    fn seek(&mut self) -> io::Result<bool> {
        let mut from = 1;
        loop {
            let bytes = &self.bytes[self.at..];
            let begins = |at: &[u8]| at == RECORDS || at == FOOTER;
            let found = bytes.get(from..).and_then(|rest| rest.windows(4).position(begins));
            if let Some(place) = found {
                self.at += from + place;
                return Ok(true);
            }
            // The start of a block may be truncated at the end of the data read so far.
            from = bytes.len().saturating_sub(3).max(1);
            let have = bytes.len();
            self.fill(have + 1)?;
            if self.bytes.len() - self.at == have {
                return Ok(false);
            }
        }
    }
}

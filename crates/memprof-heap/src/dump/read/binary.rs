//! Reading the binary format: blocks, one by one.

use super::super::binary::{FOOTER, HEADER, Header, MAGIC, RECORDS, VERSION, replay};
use super::input::Input;
use super::{Fallible, Skipped, Stop, Target, invalid};

/// Reads all blocks. A broken one is left out, and the next is looked for behind its beginning. Returns whether there was
/// a last one.
pub(super) fn read(
    input: &mut Input,
    target: &mut Target<'_>,
    skipped: &mut Skipped,
) -> Fallible<bool> {
    let mut window = Window {
        input,
        bytes: Vec::new(),
        at: 0,
    };
    version(&mut window)?;
    let mut number = 0;
    let mut plain = Vec::new();
    loop {
        let Some(block) = window.block()? else {
            if !window.seek()? {
                return Ok(false);
            }
            number += 1;
            skipped.note(number);
            continue;
        };
        number += 1;
        if block.footer {
            return Ok(true);
        }
        let unpacked = unpack(&block, &mut plain);
        match unpacked.and_then(|()| replay(&plain, target)) {
            Ok(()) => {}
            Err(Stop::Broken) => skipped.note(number),
            Err(stop) => return Err(stop),
        }
    }
}

fn version(window: &mut Window<'_>) -> Fallible<()> {
    let length = MAGIC.len() + 2;
    if !window.fill(length)? {
        return Ok(());
    }
    let version = &window.bytes[MAGIC.len()..length];
    let version = u16::from_le_bytes([version[0], version[1]]);
    if version != VERSION {
        let text =
            format!("version {version} of the binary format; this memprof reads version {VERSION}");
        return Err(Stop::Input(invalid(text)));
    }
    window.at = length;
    Ok(())
}

fn unpack(block: &Block<'_>, plain: &mut Vec<u8>) -> Fallible<()> {
    use std::io::Read;
    plain.clear();
    let decoder = zstd::Decoder::with_buffer(block.packed).map_err(|_| Stop::Broken)?;
    // What is told of the length may be wrong, so the memory grows with what really comes.
    let result = decoder.take(block.length + 1).read_to_end(plain);
    match result {
        Ok(length) if length as u64 == block.length => Ok(()),
        _ => Err(Stop::Broken),
    }
}

/// A block whose checksum is right.
struct Block<'a> {
    footer: bool,
    length: u64,
    packed: &'a [u8],
}

/// The part of the input that is being looked at.
struct Window<'i> {
    input: &'i mut Input,
    bytes: Vec<u8>,
    /// Bytes that are done with.
    at: usize,
}

impl Window<'_> {
    /// Sees to it that there are `count` bytes; false if the input has no more.
    fn fill(&mut self, count: usize) -> Fallible<bool> {
        let have = self.bytes.len() - self.at;
        if have >= count {
            return Ok(true);
        }
        self.bytes.drain(..self.at);
        self.at = 0;
        let missing = (count - have) as u64;
        let more = self.input.bytes(&mut self.bytes, missing);
        Ok(more.map_err(Stop::Input)? == missing)
    }

    /// The block at this place; `None` if there is no whole and sound one.
    fn block(&mut self) -> Fallible<Option<Block<'_>>> {
        if !self.fill(HEADER)? {
            return Ok(None);
        }
        let mut header = Header([0; HEADER]);
        header
            .0
            .copy_from_slice(&self.bytes[self.at..self.at + HEADER]);
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

    /// Goes to the next place that looks like the beginning of a block; false if there is none.
    fn seek(&mut self) -> Fallible<bool> {
        let mut from = 1;
        loop {
            let bytes = &self.bytes[self.at..];
            let begins = |at: &[u8]| at == RECORDS || at == FOOTER;
            let found = bytes
                .get(from..)
                .and_then(|rest| rest.windows(4).position(begins));
            if let Some(place) = found {
                self.at += from + place;
                return Ok(true);
            }
            // A beginning may be cut at the end of what was read.
            from = bytes.len().saturating_sub(3).max(1);
            let have = bytes.len();
            self.fill(have + HEADER)?;
            if self.bytes.len() - self.at == have {
                return Ok(false);
            }
        }
    }
}

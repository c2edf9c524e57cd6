//! Reads a recording from its beginning up to the last complete block.

use std::fmt;
use std::io::{self, Read};

use crate::block::{MAGIC, MOST_PACKED, MOST_UNPACKED};
use crate::record::{Addresses, Record, Records};

/// The reason why nothing could be read.
#[derive(Debug)]
pub enum Error {
    /// Not a recording.
    NoRecording,
    /// Reading failed.
    Io(io::Error),
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::Io(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoRecording => out.write_str("it is not a recording of malloc"),
            Error::Io(error) => error.fmt(out),
        }
    }
}

/// State of the end of a file. Everything read before it is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The recording was stopped.
    Complete,
    /// It is still being written, or its process was killed.
    Open,
    /// The block at this byte is damaged: neither it nor the rest was read.
    Damaged(u64),
}

/// Calls `visit` with each record. It returns false for an impossible record: then the rest counts as damaged, too.
///
/// # Errors
///
/// If it is not a recording, or can't be read.
pub fn read(input: &mut dyn Read, visit: &mut dyn FnMut(Record<'_>) -> bool) -> Result<End, Error> {
    let mut magic = [0; MAGIC.len()];
    if fill(input, &mut magic)? < MAGIC.len() || magic != MAGIC {
        return Err(Error::NoRecording);
    }
    let mut at = MAGIC.len() as u64;
    let mut packed = Vec::new();
    let mut unpacked = vec![0; MOST_UNPACKED];
    let mut unpacker = zstd::bulk::Decompressor::new()?;
    let mut addresses = Addresses::default();
    let mut is_complete = false;
    loop {
        let mut length = [0; 4];
        if fill(input, &mut length)? < length.len() {
            return Ok(if is_complete { End::Complete } else { End::Open });
        }
        let length = u32::from_le_bytes(length) as usize;
        if is_complete || length > MOST_PACKED {
            return Ok(End::Damaged(at));
        }
        packed.resize(length, 0);
        if fill(input, &mut packed)? < length {
            return Ok(End::Open);
        }
        let Ok(size) = unpacker.decompress_to_buffer(&packed, &mut unpacked) else {
            return Ok(End::Damaged(at));
        };
        let mut records = Records::new(&unpacked[..size], &mut addresses);
        while let Some(record) = records.next() {
            is_complete |= matches!(record, Record::End { .. });
            if !visit(record) {
                return Ok(End::Damaged(at));
            }
        }
        if !records.is_at_end() {
            return Ok(End::Damaged(at));
        }
        at += 4 + length as u64;
    }
}

/// Fills as much of the buffer as there is input.
fn fill(input: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

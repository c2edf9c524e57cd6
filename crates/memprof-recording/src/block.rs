//! Blocks: the length in four bytes, little endian, and a frame of zstd with a checksum. No record crosses a block, so that
//! a file can be read up to its last whole block.

use std::io::{self, Write};

use zstd::zstd_safe::CParameter;

use crate::record::{Addresses, Record};

/// The first bytes of a file.
pub(crate) const MAGIC: &[u8] = b"memprof malloc 1\n";
/// A block is written when it has this many bytes.
const FULL: usize = 1 << 18;
/// A block never has more, unpacked.
pub(crate) const MOST_UNPACKED: usize = 1 << 20;
/// A block never has more, packed: what does not compress grows a little.
pub(crate) const MOST_PACKED: usize = MOST_UNPACKED + (MOST_UNPACKED >> 4);
/// Fast: the program runs meanwhile.
const LEVEL: i32 = 1;

/// Writes records in blocks. After an error nothing more is to be written.
pub struct BlockWriter<W: Write> {
    out: W,
    records: Vec<u8>,
    addresses: Addresses,
    packer: zstd::bulk::Compressor<'static>,
    packed: Vec<u8>,
    /// Bytes of the file up to the last whole block.
    written: u64,
}

impl<W: Write> BlockWriter<W> {
    /// Begins a file.
    ///
    /// # Errors
    ///
    /// When it can't be written.
    pub fn new(mut out: W) -> io::Result<BlockWriter<W>> {
        let mut packer = zstd::bulk::Compressor::new(LEVEL)?;
        packer.set_parameter(CParameter::ChecksumFlag(true))?;
        out.write_all(MAGIC)?;
        Ok(BlockWriter {
            out,
            records: Vec::with_capacity(FULL + 1024),
            addresses: Addresses::default(),
            packer,
            packed: Vec::new(),
            written: MAGIC.len() as u64,
        })
    }

    /// Adds a record.
    ///
    /// # Errors
    ///
    /// When the block that it completes can't be written.
    pub fn add(&mut self, record: Record<'_>) -> io::Result<()> {
        record.write(&mut self.records, &mut self.addresses);
        if self.records.len() < FULL {
            return Ok(());
        }
        self.flush()
    }

    /// Writes what was added as a block.
    ///
    /// # Errors
    ///
    /// When it can't be written.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.records.is_empty() {
            return Ok(());
        }
        self.packed.clear();
        self.packed.extend_from_slice(&[0; 4]);
        let block = self.packer.compress(&self.records)?;
        self.packed.extend_from_slice(&block);
        self.packed[..4].copy_from_slice(&(block.len() as u32).to_le_bytes());
        self.out.write_all(&self.packed)?;
        self.written += self.packed.len() as u64;
        self.records.clear();
        self.addresses.begin_block();
        Ok(())
    }

    /// Bytes of the file up to its last whole block, and what it is written to.
    pub fn into_parts(self) -> (u64, W) {
        (self.written, self.out)
    }
}

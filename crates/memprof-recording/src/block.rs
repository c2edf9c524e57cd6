//! Blocks: the length in four bytes, little endian, and a zstd frame with a checksum. No record spans blocks, so that a file
//! can be read up to its last complete block.

use std::io::{self, Write};

use zstd::zstd_safe::CParameter;

use crate::record::{Addresses, Record};

/// The file signature.
pub(crate) const MAGIC: &[u8] = b"memprof malloc 1\n";
/// A block is written when it reaches this many bytes.
const FULL: usize = 1 << 18;
/// Maximum uncompressed size of a block.
pub(crate) const MOST_UNPACKED: usize = 1 << 20;
/// Maximum compressed size of a block: incompressible data grows a little.
pub(crate) const MOST_PACKED: usize = MOST_UNPACKED + (MOST_UNPACKED >> 4);
/// Fast, as the program runs meanwhile.
const LEVEL: i32 = 1;

/// Writes records in blocks. Don't write anything after an error.
pub struct BlockWriter<W: Write> {
    out: W,
    records: Vec<u8>,
    addresses: Addresses,
    packer: zstd::bulk::Compressor<'static>,
    packed: Vec<u8>,
    /// Bytes of the file up to the last complete block.
    written: u64,
}

impl<W: Write> BlockWriter<W> {
    /// Starts a file.
    ///
    /// # Errors
    ///
    /// If it can't be written.
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
    /// If the block completed by it can't be written.
    pub fn add(&mut self, record: Record<'_>) -> io::Result<()> {
        record.write(&mut self.records, &mut self.addresses);
        if self.records.len() < FULL {
            return Ok(());
        }
        self.flush()
    }

    /// Writes the added records as a block.
    ///
    /// # Errors
    ///
    /// If it can't be written.
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

    /// Bytes of the file up to its last complete block, and the output.
    pub fn into_parts(self) -> (u64, W) {
        (self.written, self.out)
    }
}

//! Text that is written behind what comes after it.

use std::io;

use super::sink::Sink;

/// Bytes that are kept as they are; what is more is compressed in memory. An array of millions would else make a dump
/// need more memory than the array.
const PLAIN: usize = 1024 * 1024;

/// A part of a line that is kept back.
#[derive(Default)]
pub(super) struct Side {
    plain: Vec<u8>,
    packed: Vec<Vec<u8>>,
}

impl Side {
    /// To append to. Call [`Side::passed`] now and then.
    #[inline]
    pub fn text(&mut self) -> &mut Vec<u8> {
        &mut self.plain
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.packed.is_empty()
    }

    /// Compresses what has become too much.
    #[inline]
    pub fn passed(&mut self) -> io::Result<()> {
        if self.plain.len() < PLAIN {
            return Ok(());
        }
        self.packed.push(zstd::bulk::compress(&self.plain, 1)?);
        self.plain.clear();
        Ok(())
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.plain.clear();
        self.packed.clear();
    }

    /// Moves everything to `sink`, without the first byte: each item brings a comma.
    pub fn drain_list(&mut self, sink: &mut Sink) -> io::Result<()> {
        let mut skip = 1;
        for packed in self.packed.drain(..) {
            let plain = zstd::decode_all(&packed[..])?;
            sink.buffer().extend_from_slice(&plain[skip..]);
            sink.passed()?;
            skip = 0;
        }
        sink.buffer()
            .extend_from_slice(self.plain.get(skip..).unwrap_or(&[]));
        self.plain.clear();
        Ok(())
    }
}

//! Text that is buffered to be written after later text.

use std::io;

use super::sink::Sink;

/// Bytes buffered as they are; the rest is compressed in memory. Otherwise, dumping an array of millions would need more
/// memory than the array.
const PLAIN: usize = 1024 * 1024;

/// A buffered part of a line.
#[derive(Default)]
pub(super) struct Side {
    plain: Vec<u8>,
    packed: Vec<Vec<u8>>,
}

impl Side {
    /// The buffer to append to. Call [`Side::passed`] now and then.
    #[inline]
    pub fn text(&mut self) -> &mut Vec<u8> {
        &mut self.plain
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.packed.is_empty()
    }

    /// Compresses the text if it has grown too large.
    #[inline]
    pub fn passed(&mut self) -> io::Result<()> {
        if self.plain.len() < PLAIN {
            return Ok(());
        }
        self.packed.push(zstd::bulk::compress(&self.plain, 1)?);
        self.plain.clear();
        Ok(())
    }

    /// Clears everything.
    pub fn clear(&mut self) {
        self.plain.clear();
        self.packed.clear();
    }

    /// Moves everything to `sink`, without the first byte: each item starts with a comma.
    pub fn drain_list(&mut self, sink: &mut Sink) -> io::Result<()> {
        let mut skip = 1;
        for packed in self.packed.drain(..) {
            let plain = zstd::decode_all(&packed[..])?;
            sink.buffer().extend_from_slice(&plain[skip..]);
            sink.passed()?;
            skip = 0;
        }
        sink.buffer().extend_from_slice(self.plain.get(skip..).unwrap_or(&[]));
        self.plain.clear();
        Ok(())
    }
}

//! Decompresses the input.

use std::io::{self, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

use super::invalid;

/// Bytes of compressed data read at once.
const CAPACITY: usize = 256 * 1024;

/// A decompressed dump.
pub(super) struct Unpacked {
    reader: Box<dyn Read>,
    compressed: bool,
    /// Whether the compressed data is truncated or damaged from here on.
    cut: bool,
}

/// Counts bytes taken from the input.
struct Counted {
    input: Box<dyn Read + Send>,
    count: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(bytes)?;
        self.count.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// An unsupported compression: its name, and the command to decompress it.
fn unknown(start: &[u8]) -> Option<(&'static str, &'static str)> {
    [
        (&b"\xfd7zXZ\x00"[..], "xz", "xz -d"),
        (b"BZh", "bzip2", "bzip2 -d"),
        (b"\x04\x22\x4d\x18", "lz4", "lz4 -d"),
        (b"PK\x03\x04", "zip", "unzip"),
    ]
    .into_iter()
    .find_map(|(head, name, command)| start.starts_with(head).then_some((name, command)))
}

impl Unpacked {
    /// Detects a compression by the first bytes. `count` becomes the number of bytes taken from the input.
    pub fn new(input: Box<dyn Read + Send>, count: Arc<AtomicU64>) -> io::Result<Unpacked> {
        let mut source = Counted { input, count };
        let mut start = Vec::new();
        (&mut source).take(6).read_to_end(&mut start)?;
        let gzip = start.starts_with(&[0x1f, 0x8b]);
        let zstd = start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
        if let Some((name, command)) = unknown(&start) {
            return Err(invalid(format!("it is compressed with {name}: run `{command}`")));
        }
        let source = io::Cursor::new(start).chain(source);
        let reader: Box<dyn Read> = if gzip {
            let source = BufReader::with_capacity(CAPACITY, source);
            Box::new(MultiGzDecoder::new(source))
        } else if zstd {
            let source = BufReader::with_capacity(CAPACITY, source);
            Box::new(zstd::Decoder::with_buffer(source)?)
        } else {
            Box::new(source)
        };
        Ok(Unpacked { reader, compressed: gzip || zstd, cut: false })
    }

    /// Whether the input was truncated.
    pub fn cut(&self) -> bool {
        self.cut
    }

    /// Fills `bytes` and returns the number of bytes read, which is smaller only at the end.
    pub fn fill(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut have = 0;
        while have < bytes.len() && !self.cut {
            match self.reader.read(&mut bytes[have..]) {
                Ok(0) => break,
                Ok(more) => have += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The data decompressed so far is valid.
                Err(error) if self.compressed && error.raw_os_error().is_none() => self.cut = true,
                Err(error) => return Err(error),
            }
        }
        Ok(have)
    }
}

//! Where the text formats write: a buffer that a [`Worker`] compresses and writes to the file.

use std::fs::File;
use std::io::{self, Write};

use flate2::write::GzEncoder;

use super::format::Compression;
use super::pipe::{Output, Pipe, Stage};
use super::worker::Worker;

/// Bytes that are handed over at once.
const CAPACITY: usize = 256 * 1024;

/// Room behind that, so that a line that ends there rarely makes the buffer grow.
const SLACK: usize = 32 * 1024;

/// Level of gzip and zstd: the dump should not have to wait for its compression.
const LEVEL: u8 = 1;

/// A file that is written by a [`Worker`].
///
/// Dropped without [`Sink::finish`], it leaves the file as it is, and waits for nothing.
pub struct Sink {
    buffer: Vec<u8>,
    pipe: Pipe<Compressor>,
}

impl Sink {
    /// Writes to `file` from where it stands, by a second thread.
    ///
    /// # Errors
    /// If the compression could not be set up.
    pub fn new(file: File, compression: Compression) -> io::Result<Sink> {
        Sink::by(file, compression, Worker::Thread)
    }

    /// The same, by a chosen worker.
    ///
    /// # Errors
    /// As [`Sink::new`].
    pub fn by(file: File, compression: Compression, worker: Worker) -> io::Result<Sink> {
        Ok(Sink {
            buffer: Vec::with_capacity(CAPACITY + SLACK),
            pipe: Pipe::new(file, worker, |output| Compressor::new(output, compression))?,
        })
    }

    /// To append to. Call [`Sink::passed`] now and then.
    #[inline]
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Sends the buffer if it is full.
    #[inline]
    pub(super) fn passed(&mut self) -> io::Result<()> {
        if self.buffer.len() < CAPACITY {
            return Ok(());
        }
        self.send_buffer()
    }

    #[cold]
    fn send_buffer(&mut self) -> io::Result<()> {
        self.pipe.send(&mut self.buffer, ())?;
        self.buffer.clear();
        self.buffer.reserve(CAPACITY + SLACK);
        Ok(())
    }

    /// Writes the rest, and waits until all is written; the bytes that the file got.
    ///
    /// # Errors
    /// Those of the file, also earlier ones.
    pub fn finish(mut self) -> io::Result<u64> {
        self.close()
    }

    pub(super) fn close(&mut self) -> io::Result<u64> {
        if !self.buffer.is_empty() {
            self.pipe.send(&mut self.buffer, ())?;
        }
        self.pipe.finish()
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        self.passed()?;
        Ok(bytes.len())
    }

    /// Does nothing: what is not handed over yet is written by [`Sink::finish`].
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What the second thread does.
enum Compressor {
    None(Output),
    Gzip(GzEncoder<Output>),
    Zstd(zstd::Encoder<'static, Output>),
}

impl Compressor {
    fn new(output: Output, compression: Compression) -> io::Result<Compressor> {
        Ok(match compression {
            Compression::None => Compressor::None(output),
            Compression::Gzip => {
                let level = flate2::Compression::new(LEVEL.into());
                Compressor::Gzip(GzEncoder::new(output, level))
            }
            Compression::Zstd => {
                let mut encoder = zstd::Encoder::new(output, LEVEL.into())?;
                encoder.include_checksum(true)?;
                Compressor::Zstd(encoder)
            }
        })
    }
}

impl Stage for Compressor {
    type Tag = ();

    fn take(&mut self, bytes: &[u8], (): ()) -> io::Result<()> {
        match self {
            Compressor::None(output) => output.write_all(bytes),
            Compressor::Gzip(encoder) => encoder.write_all(bytes),
            Compressor::Zstd(encoder) => encoder.write_all(bytes),
        }
    }

    fn finish(self) -> io::Result<u64> {
        let mut output = match self {
            Compressor::None(output) => output,
            Compressor::Gzip(encoder) => encoder.finish()?,
            Compressor::Zstd(encoder) => encoder.finish()?,
        };
        output.flush()?;
        Ok(output.written())
    }
}

//! The output of text formats: a buffer that a [`Worker`] compresses and writes to the file.

use std::fs::File;
use std::io::{self, Write};

use flate2::write::GzEncoder;

use super::format::Compression;
use super::pipe::{Output, Pipe, Stage};
use super::worker::Worker;

/// Bytes handed over at once.
const CAPACITY: usize = 256 * 1024;

/// Extra room, so that a line at the end rarely makes the buffer grow.
const SLACK: usize = 32 * 1024;

/// Level of gzip and zstd: the dump should not wait for its compression.
const LEVEL: u8 = 1;

/// A file written by a [`Worker`].
///
/// If dropped without [`Sink::finish`], it leaves the file as it is, and does not wait.
pub struct Sink {
    buffer: Vec<u8>,
    pipe: Pipe<Compressor>,
}

impl Sink {
    /// Writes to the current position of `file`, on a second thread.
    ///
    /// # Errors
    /// If the compression could not be set up.
    pub fn new(file: File, compression: Compression) -> io::Result<Sink> {
        Sink::by(file, compression, Worker::Thread)
    }

    /// Like [`Sink::new`], with a chosen worker.
    ///
    /// # Errors
    /// As for [`Sink::new`].
    pub fn by(file: File, compression: Compression, worker: Worker) -> io::Result<Sink> {
        Ok(Sink {
            buffer: Vec::with_capacity(CAPACITY + SLACK),
            pipe: Pipe::new(file, worker, |output| Compressor::new(output, compression))?,
        })
    }

    /// The buffer to append to. Call [`Sink::passed`] now and then.
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

    /// Writes the rest and waits until everything is written; returns the bytes written to the file.
    ///
    /// # Errors
    /// Errors of the file, including earlier ones.
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

    /// Does nothing: [`Sink::finish`] writes the rest.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The work of the second thread.
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

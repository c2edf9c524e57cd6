//! The read-ahead thread: it decompresses, and sends text in chunks, or blocks of the binary format.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use super::super::binary::MAGIC;
use super::blocks;
use super::unpack::Unpacked;
use super::{Limits, Options};

/// Bytes of text in a chunk.
const CHUNK: usize = 256 * 1024;

/// Room before a chunk's text, for the rest of the previous chunk.
pub(super) const HEAD: usize = 1024;

/// Zeros after the text, so that several bytes can be read at once.
pub(super) const PAD: usize = 64;

/// Most chunks or blocks that wait.
const WAITING: usize = 4;

/// Bytes between notifications of the caller.
const STEP: u64 = 1024 * 1024;

/// Interval for checking whether to stop reading.
const PATIENCE: Duration = Duration::from_millis(100);

/// Messages of the thread.
pub(super) enum Piece {
    /// Text, from [`HEAD`] to `end`, followed by [`PAD`] zeros.
    Text { bytes: Vec<u8>, end: usize },
    /// Blocks will follow.
    Binary,
    /// The records of a block.
    Records(Vec<u8>),
    /// A broken block.
    Broken,
    /// The last block.
    Footer,
    /// The end of the dump. `cut` if the compressed data is truncated.
    End { cut: bool },
}

/// The receiving end of the thread's messages.
pub(super) struct Feed<'o> {
    pieces: Receiver<io::Result<Piece>>,
    spare: Sender<Vec<u8>>,
    count: Arc<AtomicU64>,
    reported: u64,
    progress: Option<&'o dyn Fn(u64)>,
    stop: Option<&'o AtomicBool>,
}

impl<'o> Feed<'o> {
    /// Starts the thread. It ends when everything is read, or when it finds the other end gone.
    pub fn new(input: Box<dyn Read + Send>, options: &Options<'o>) -> io::Result<Feed<'o>> {
        let count = Arc::new(AtomicU64::new(0));
        let (filled, pieces) = bounded(WAITING);
        let (spare, emptied) = bounded(WAITING + 2);
        let line = Line { filled, emptied };
        let counted = Arc::clone(&count);
        let limits = options.limits;
        let run = move || {
            if let Err(error) = read(input, counted, &line, limits) {
                // If the other end is gone, no one needs the error.
                let _ = line.filled.send(Err(error));
            }
        };
        let builder = thread::Builder::new().name("memprof-read".to_owned());
        builder.spawn(run)?;
        Ok(Feed {
            pieces,
            spare,
            count,
            reported: 0,
            progress: options.progress,
            stop: options.stop,
        })
    }

    /// Bytes taken from the input so far.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Waits for the next piece.
    pub fn next(&mut self) -> io::Result<Piece> {
        let piece = loop {
            if self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                let text = "reading was stopped";
                return Err(io::Error::new(io::ErrorKind::Interrupted, text));
            }
            match self.pieces.recv_timeout(PATIENCE) {
                Ok(piece) => break piece,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    break Err(io::Error::other("the reading thread ended unexpectedly"));
                }
            }
        };
        if let Some(progress) = self.progress {
            let count = self.count();
            if count >= self.reported + STEP || matches!(piece, Ok(Piece::End { .. })) {
                self.reported = count;
                progress(count);
            }
        }
        piece
    }

    /// Returns a buffer for reuse.
    pub fn recycle(&self, bytes: Vec<u8>) {
        // If there are enough, this one is not needed.
        let _ = self.spare.try_send(bytes);
    }
}

/// The thread's ends of both channels.
pub(super) struct Line {
    filled: Sender<io::Result<Piece>>,
    emptied: Receiver<Vec<u8>>,
}

impl Line {
    /// Sends a piece; false if the receiver is gone.
    pub fn send(&self, piece: Piece) -> bool {
        self.filled.send(Ok(piece)).is_ok()
    }

    /// A buffer to fill.
    pub fn buffer(&self) -> Vec<u8> {
        self.emptied.try_recv().unwrap_or_default()
    }
}

fn read(
    input: Box<dyn Read + Send>,
    count: Arc<AtomicU64>,
    line: &Line,
    limits: Limits,
) -> io::Result<()> {
    let mut unpacked = Unpacked::new(input, count)?;
    let mut start = [0; MAGIC.len()];
    let have = unpacked.fill(&mut start)?;
    if start == MAGIC {
        if !line.send(Piece::Binary) || !blocks::read(&mut unpacked, line, limits)? {
            return Ok(());
        }
    } else if !text(&start[..have], &mut unpacked, line, limits)? {
        return Ok(());
    }
    line.send(Piece::End { cut: unpacked.cut() });
    Ok(())
}

/// Sends all text; false if the receiver is gone.
fn text(start: &[u8], unpacked: &mut Unpacked, line: &Line, limits: Limits) -> io::Result<bool> {
    let mut begun = start.len();
    let mut total = 0;
    loop {
        let mut bytes = line.buffer();
        bytes.resize(HEAD + CHUNK + PAD, 0);
        bytes[HEAD..HEAD + begun].copy_from_slice(&start[..begun]);
        let end = HEAD + begun + unpacked.fill(&mut bytes[HEAD + begun..HEAD + CHUNK])?;
        begun = 0;
        if end == HEAD {
            return Ok(true);
        }
        total += (end - HEAD) as u64;
        limits.check(total)?;
        bytes[end..].fill(0);
        bytes.truncate(end + PAD);
        if !line.send(Piece::Text { bytes, end }) {
            return Ok(false);
        }
    }
}

//! The thread that reads ahead: it unpacks, and hands over text in chunks, or blocks of the binary format.

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

/// Room before the text of a chunk, for what is left of the chunk before.
pub(super) const HEAD: usize = 1024;

/// Zeros behind the text, so that several bytes can be looked at at once.
pub(super) const PAD: usize = 64;

/// Chunks or blocks that may wait.
const WAITING: usize = 4;

/// After so many bytes the caller is notified.
const STEP: u64 = 1024 * 1024;

/// Pause after which it is looked whether reading is to stop.
const PATIENCE: Duration = Duration::from_millis(100);

/// What the thread hands over.
pub(super) enum Piece {
    /// Text, from [`HEAD`] to `end`; [`PAD`] zeros are behind it.
    Text { bytes: Vec<u8>, end: usize },
    /// What follows are blocks.
    Binary,
    /// The records of a block.
    Records(Vec<u8>),
    /// A block that is broken.
    Broken,
    /// The last block.
    Footer,
    /// The end of the dump. `cut` if the compressed data end early.
    End { cut: bool },
}

/// The other end of the thread.
pub(super) struct Feed<'o> {
    pieces: Receiver<io::Result<Piece>>,
    spare: Sender<Vec<u8>>,
    count: Arc<AtomicU64>,
    reported: u64,
    progress: Option<&'o dyn Fn(u64)>,
    stop: Option<&'o AtomicBool>,
}

impl<'o> Feed<'o> {
    /// Starts the thread. It ends when all is read, or when it finds that the other end is gone.
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

    /// Gives a buffer back.
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
    /// Hands over; false if the receiver is gone.
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
    line.send(Piece::End {
        cut: unpacked.cut(),
    });
    Ok(())
}

/// Hands over all text; false if the receiver is gone.
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

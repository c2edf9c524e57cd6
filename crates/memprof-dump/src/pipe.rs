//! A second thread that takes filled buffers from the dumping thread, compresses them and writes them. Without it, the
//! dumping thread does that itself.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::worker::Worker;

/// Most filled buffers that wait. More would only cost memory: the slower thread sets the pace.
const WAITING: usize = 3;

/// Processes each buffer.
pub(super) trait Stage: Send + 'static {
    /// Passed along with a buffer.
    type Tag: Send + 'static;

    /// Processes a filled buffer.
    fn take(&mut self, bytes: &[u8], tag: Self::Tag) -> io::Result<()>;

    /// Ends the input. Returns the bytes written to the file.
    fn finish(self) -> io::Result<u64>;
}

/// The path to the file.
pub(super) struct Pipe<S: Stage> {
    way: Way<S>,
    failure: Option<Failure>,
    abandoned: Arc<AtomicBool>,
}

enum Way<S: Stage> {
    Thread(Helper<S>),
    Inline(S),
    Closed,
}

/// The channel to the second thread, and buffers back from it.
struct Helper<S: Stage> {
    filled: Sender<(Vec<u8>, S::Tag)>,
    spare: Receiver<Vec<u8>>,
    thread: JoinHandle<io::Result<u64>>,
}

impl<S: Stage> Pipe<S> {
    /// Starts the thread, if there is to be one. `stage` gets the file to write to.
    pub fn new(
        file: File,
        worker: Worker,
        stage: impl FnOnce(Output) -> io::Result<S>,
    ) -> io::Result<Pipe<S>> {
        let abandoned = Arc::new(AtomicBool::new(false));
        let stage = stage(Output::new(file, Arc::clone(&abandoned)))?;
        Ok(Pipe { way: Way::new(worker, stage), failure: None, abandoned })
    }

    /// Hands over the content of `buffer`, and replaces it by another buffer: one handed over earlier, unchanged, or a new
    /// one without capacity.
    ///
    /// # Errors
    /// Errors of the other thread, now or earlier.
    pub fn send(&mut self, buffer: &mut Vec<u8>, tag: S::Tag) -> io::Result<()> {
        match &mut self.way {
            Way::Thread(helper) => {
                let spare = helper.spare.try_recv().unwrap_or_default();
                let bytes = std::mem::replace(buffer, spare);
                if helper.filled.send((bytes, tag)).is_ok() {
                    return Ok(());
                }
            }
            Way::Inline(stage) => match stage.take(buffer, tag) {
                Ok(()) => return Ok(()),
                Err(error) => {
                    self.failure = Some(Failure::of(&error));
                    self.way = Way::Closed;
                }
            },
            Way::Closed => {}
        }
        self.finish().and(Err(closed()))
    }

    /// Waits until everything is written; returns the bytes written to the file.
    ///
    /// # Errors
    /// Errors of the other thread, now or earlier.
    pub fn finish(&mut self) -> io::Result<u64> {
        let way = std::mem::replace(&mut self.way, Way::Closed);
        if let Some(failure) = &self.failure {
            return Err(failure.error());
        }
        let result = match way {
            Way::Thread(Helper { filled, thread, .. }) => {
                drop(filled);
                let joined = thread.join();
                joined.unwrap_or_else(|_| {
                    Err(io::Error::other("the writing thread ended unexpectedly"))
                })
            }
            Way::Inline(stage) => stage.finish(),
            Way::Closed => return Err(closed()),
        };
        if let Err(error) = &result {
            self.failure = Some(Failure::of(error));
        }
        result
    }
}

impl<S: Stage> Way<S> {
    fn new(worker: Worker, stage: S) -> Way<S> {
        let Some(builder) = worker.builder() else {
            return Way::Inline(stage);
        };
        let (filled, work) = bounded::<(Vec<u8>, S::Tag)>(WAITING);
        let (back, spare) = bounded(WAITING + 1);
        // Sent to the running thread, since a failed spawn would drop values moved into it.
        let (hand, stages) = bounded::<S>(1);
        let run = move || {
            let mut stage = stages.recv().map_err(|_| closed())?;
            for (bytes, tag) in work {
                stage.take(&bytes, tag)?;
                // If the other side is gone, no thread waits for the buffer.
                let _ = back.try_send(bytes);
            }
            stage.finish()
        };
        match builder.spawn(run) {
            Ok(thread) => match hand.send(stage) {
                Ok(()) => Way::Thread(Helper { filled, spare, thread }),
                Err(unsent) => Way::Inline(unsent.into_inner()),
            },
            // Process limits or lack of memory: works without the thread, but slower.
            Err(_) => Way::Inline(stage),
        }
    }
}

/// For an abandoned dump: the other thread stops by itself, and is not joined, since it may be stuck in a write.
impl<S: Stage> Drop for Pipe<S> {
    fn drop(&mut self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }
}

fn closed() -> io::Error {
    io::Error::other("the dump is closed already")
}

/// An error that can be reported repeatedly.
struct Failure {
    kind: io::ErrorKind,
    code: Option<i32>,
    text: String,
}

impl Failure {
    fn of(error: &io::Error) -> Failure {
        Failure { kind: error.kind(), code: error.raw_os_error(), text: error.to_string() }
    }

    fn error(&self) -> io::Error {
        match self.code {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(self.kind, self.text.clone()),
        }
    }
}

/// The file. Writes everything it gets, even if that takes several writes, signals interrupt them, or the file is a
/// non-blocking pipe.
pub(super) struct Output {
    file: File,
    written: u64,
    abandoned: Arc<AtomicBool>,
}

/// Pause before retrying when a pipe is full.
const RETRY: Duration = Duration::from_millis(1);

impl Output {
    fn new(file: File, abandoned: Arc<AtomicBool>) -> Output {
        Output { file, written: 0, abandoned }
    }

    /// Bytes written so far.
    pub fn written(&self) -> u64 {
        self.written
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        while !self.abandoned.load(Ordering::Relaxed) {
            match self.file.write(bytes) {
                Ok(count) => {
                    self.written += count as u64;
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::sleep(RETRY),
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("the dump was aborted"))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

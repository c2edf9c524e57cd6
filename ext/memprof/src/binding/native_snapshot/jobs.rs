//! Work of the tracer process for this one ([`Tracer`]), and the messages in between. It runs no Ruby code.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use memprof_native::process::descriptors::{self, receive_now};
use memprof_native::process::tracer::{Line, Tracer, wait};
use memprof_native::process::{
    Answer, Argument, Attachment, Channel, Outcome, Snapshot, SnapshotError, Symbols,
};
use serde::{Deserialize, Serialize};

/// Timeout for a function that takes microseconds, or for loading a library: one that takes longer waits for a lock held by
/// another thread.
const SHORT: Duration = Duration::from_secs(3);
/// Polling interval for a busy copy.
const GLANCE: Duration = Duration::from_millis(2);
/// Timeout for a message, after which the wait starts again.
const WHILE: Duration = Duration::from_secs(60);
/// Bytes read from a copy at once.
const PIECE: usize = 1 << 18;
/// Number of reads before the copy is checked again.
const PIECES: usize = 64;
const RTLD_NOW: u64 = libc::RTLD_NOW as u64;
const NONE: Argument<'_> = Argument::Number(0);

/// A message of the tracer.
#[derive(Serialize, Deserialize)]
pub enum Message {
    /// Why there is no copy or no answer: a keyword for the caller, and a text.
    Failed(String, String),
    /// The pause in seconds, and the copy's process id.
    Copied(f64, i32),
    /// The same, registers of the copied thread, and those of others.
    Memory(f64, i32, Vec<u64>, Vec<(i32, Vec<u64>)>),
    /// The copy's answer.
    Answer(String),
    /// The longest pause in seconds.
    Asked(f64),
}

/// The next step of an attachment.
#[derive(Serialize, Deserialize)]
pub enum Step {
    /// Ask the VM, and wake the main thread if it waits.
    Ask { wake: bool },
    /// The line must have no effect any more.
    Withdraw,
    /// The process's end of the connection is no longer needed.
    Close,
}

type Failure = (&'static str, String);

pub fn failure(error: &SnapshotError) -> Failure {
    let kind = match error {
        SnapshotError::Gone => "gone",
        SnapshotError::Forbidden => "forbidden",
        SnapshotError::Traced => "traced",
        SnapshotError::Foreign => "foreign",
        SnapshotError::Missing(_) => "missing",
        SnapshotError::Refused(..) => "refused",
        SnapshotError::Filtered => "filtered",
        SnapshotError::NoMemory => "no_memory",
        SnapshotError::Busy => "busy",
        SnapshotError::Died(_) => "died",
        _ => "system",
    };
    (kind, error.to_string())
}

fn system(error: SnapshotError) -> Failure {
    failure(&error)
}

fn of_io(error: &io::Error) -> Failure {
    ("system", error.to_string())
}

pub fn symbols(pid: i32) -> Result<Symbols, SnapshotError> {
    Symbols::of(pid, &["libruby", "libc.so", "libc-2", "libdl", "ld-musl"])
}

fn say(line: &Line, message: &Message, with: Option<BorrowedFd<'_>>) {
    // If this process has ended, there is no recipient, as the next check of the line shows.
    let text = serde_json::to_vec(message).unwrap_or_default();
    let _ = line.send(&text, with);
}

fn say_failed(line: &Line, (kind, text): Failure) {
    say(line, &Message::Failed(kind.into(), text), None);
}

/// The next message of the tracer; `None` on timeout.
pub fn next(
    tracer: &mut Tracer,
    limit: Duration,
) -> io::Result<Option<(Message, Option<OwnedFd>)>> {
    let Some((text, with)) = tracer.line.receive(limit)? else {
        return Ok(None);
    };
    Ok(Some((serde_json::from_slice(&text)?, with)))
}

/// A question for a copy.
pub struct Question {
    pub pid: i32,
    /// A descriptor of the process.
    pub held: OwnedFd,
    pub thread: i32,
    /// The path of this library.
    pub library: String,
    /// JSON.
    pub request: String,
    /// The file for the copy's output, and its maximum size in bytes.
    pub output: Option<(File, u64)>,
}

/// Starts a tracer that copies the process of a thread, and asks the copy.
pub fn ask(question: Question) -> io::Result<Tracer> {
    let keep = question.output.as_ref().map(|(file, _)| file.as_fd());
    let keep: Vec<_> = keep.into_iter().chain([question.held.as_fd()]).collect();
    Tracer::start(&keep, |line| match begin(&question) {
        Err(why) => say_failed(line, why),
        Ok((mut copy, channel)) => {
            say(line, &Message::Copied(copy.pause.as_secs_f64(), copy.pid()), None);
            let pump = channel.zip(question.output.as_ref());
            let pump = pump.map(|(channel, (file, left))| Pump { channel, file, left: *left });
            let answer = answer(&mut copy, pump, line);
            // First restore the process's own memory.
            drop(copy);
            match answer {
                Ok(text) => say(line, &Message::Answer(text), None),
                Err(why) => say_failed(line, why),
            }
        }
    })
}

fn begin(question: &Question) -> Result<(Snapshot, Option<Channel>), Failure> {
    let symbols = symbols(question.pid).map_err(system)?;
    let find = |name| symbols.find(name).map_err(system);
    let (is_ruby, during_gc) = (find("ruby_native_thread_p")?, find("rb_during_gc")?);
    let mut copy = Snapshot::take(question.thread).map_err(system)?;
    // The thread id may have been reused: don't copy anything if the process is gone.
    if descriptors::ended(question.held.as_fd()) {
        return Err(system(SnapshotError::Gone));
    }
    let ask = |copy: &mut Snapshot, function: u64, arguments: [Argument<'_>; 2]| {
        copy.ask(function, arguments, SHORT).map_err(system)
    };
    // C functions that return an int.
    if ask(&mut copy, is_ruby, [NONE, NONE])? as u32 == 0 {
        return Err(("no_ruby", "the thread runs no Ruby".into()));
    }
    if ask(&mut copy, during_gc, [NONE, NONE])? as u32 != 0 {
        return Err(("collecting", "a garbage collection was running".into()));
    }
    let handle = load(&mut copy, &symbols, &question.library)?;
    let name = Argument::Text(b"memprof_answer_in_copy");
    let function = ask(&mut copy, find("dlsym")?, [Argument::Number(handle), name])?;
    if function == 0 {
        let text = format!("{} is another memprof", question.library);
        return Err(("library", text));
    }
    let mut request: serde_json::Value =
        serde_json::from_str(&question.request).map_err(|error| ("system", error.to_string()))?;
    let mut channel = None;
    if question.output.is_some() {
        let made = copy.channel().map_err(system)?;
        request["output"] = made.there.into();
        channel = Some(made);
    }
    let request = request.to_string();
    let text = Argument::Text(request.as_bytes());
    copy.call(function, [text, NONE]).map_err(system)?;
    Ok((copy, channel))
}

/// Loads the library from its path as seen by the copy, or else from memory. Returns a handle of `dlopen`.
fn load(copy: &mut Snapshot, symbols: &Symbols, library: &str) -> Result<u64, Failure> {
    let dlopen = symbols.find("dlopen").map_err(system)?;
    let open = |copy: &mut Snapshot, path: &str| {
        let arguments = [Argument::Text(path.as_bytes()), Argument::Number(RTLD_NOW)];
        copy.ask(dlopen, arguments, SHORT).map_err(system)
    };
    let mut handle = open(copy, library)?;
    if handle == 0 {
        // The loader finds the first by its name when it loads the second.
        for path in shared_by(Path::new(library)).into_iter().chain([library.into()]) {
            let contents = std::fs::read(path).map_err(|error| of_io(&error))?;
            let number = copy.file(&contents).map_err(system)?;
            handle = open(copy, &format!("/proc/self/fd/{number}"))?;
        }
    }
    if handle == 0 {
        let dlerror = symbols.find("dlerror").map_err(system)?;
        let why = copy.ask(dlerror, [NONE, NONE], SHORT).map_err(system)?;
        let why = copy.text(why).unwrap_or_default();
        let why = format!("it cannot load memprof: {}", String::from_utf8_lossy(&why));
        return Err(("library", why));
    }
    Ok(handle)
}

/// The library that those of a platform gem share: beside the one that needs it, or in the directory above.
fn shared_by(library: &Path) -> Option<PathBuf> {
    let directories = library.ancestors().skip(1).take(2);
    let mut paths = directories.map(|directory| directory.join("libmemprof_core.so"));
    paths.find(|path| cfg!(feature = "shared") && path.is_file())
}

/// Waits for the answer, and forwards the copy's output meanwhile.
fn answer(copy: &mut Snapshot, mut pump: Option<Pump<'_>>, line: &Line) -> Result<String, Failure> {
    loop {
        let busy = pump.as_mut().map_or(Ok(false), Pump::some)?;
        match copy.pending().wait(Duration::ZERO).map_err(system)? {
            Answer::Returned(0) => return Err(("died", "out of memory".into())),
            Answer::Returned(address) => {
                let text = copy.text(address).map_err(system)?;
                while pump.as_mut().map_or(Ok(false), Pump::some)? {}
                return Ok(String::from_utf8_lossy(&text).into_owned());
            }
            Answer::Running => {}
        }
        if !busy {
            let channel = pump.iter().map(|pump| pump.channel.here.as_fd());
            let sources: Vec<_> = channel.chain([line.as_fd()]).collect();
            wait(&sources, GLANCE).map_err(|error| of_io(&error))?;
        }
        // The only event on the line is its end.
        if wait(&[line.as_fd()], Duration::ZERO).map_err(|error| of_io(&error))? {
            return Err(("gone", "the command ended".into()));
        }
    }
}

/// Copies the output of a copy to a file.
struct Pump<'a> {
    channel: Channel,
    file: &'a File,
    /// Bytes still allowed.
    left: u64,
}

impl Pump<'_> {
    /// Copies available data; false if there was none.
    fn some(&mut self) -> Result<bool, Failure> {
        let mut bytes = vec![0; PIECE];
        for piece in 0..PIECES {
            let count = receive_now(self.channel.here.as_fd(), &mut bytes);
            let count = count.map_err(|error| of_io(&error))?;
            if count == 0 {
                return Ok(piece > 0);
            }
            self.left = (self.left.checked_sub(count as u64))
                .ok_or_else(|| ("refused", "its dump is truncated".to_owned()))?;
            let written = self.file.write_all(&bytes[..count]);
            written.map_err(|error| ("output", error.to_string()))?;
        }
        Ok(true)
    }
}

/// Starts a tracer that copies the process of a thread, to read its memory; the copy ends with the tracer.
pub fn copy(thread: i32) -> io::Result<Tracer> {
    Tracer::start(&[], |line| match Snapshot::take_with_threads(thread) {
        Err(error) => say_failed(line, failure(&error)),
        Ok(copy) => {
            let others = copy.others.clone();
            let pause = copy.pause.as_secs_f64();
            let message = Message::Memory(pause, copy.pid(), copy.registers(), others);
            say(line, &message, None);
            while line.receive(WHILE).is_ok() {}
        }
    })
}

/// Starts a tracer that makes a process evaluate a line of Ruby, step by step.
pub fn attach(pid: i32, held: OwnedFd, text: String) -> io::Result<Tracer> {
    Tracer::start(&[held.as_fd()], |line| {
        let mut attachment = match Attachment::begin(pid, held.as_fd(), &text) {
            Ok(attachment) => attachment,
            Err(error) => return say_failed(line, failure(&error)),
        };
        while let Ok(message) = line.receive(WHILE) {
            let step = message.map(|(text, _)| serde_json::from_slice(&text));
            let Some(Ok(step)) = step else { continue };
            let outcome = match step {
                Step::Ask { wake } => attachment.request(wake),
                Step::Withdraw => attachment.withdraw().map(|()| Outcome::Requested),
                Step::Close => attachment.close().map(|()| Outcome::Requested),
            };
            let channel = attachment.channel();
            let message = match outcome {
                Ok(Outcome::Requested) => Message::Asked(attachment.pause.as_secs_f64()),
                Ok(Outcome::NotNow) => {
                    let text = "its main thread is never at a place where it can be asked";
                    Message::Failed("busy".into(), text.into())
                }
                Err(error) => {
                    let (kind, text) = failure(&error);
                    Message::Failed(kind.into(), text)
                }
            };
            say(line, &message, channel.as_ref().map(AsFd::as_fd));
        }
        // However the command ended, the page is free for the next one. If the process has ended, there is nothing to do.
        let _ = attachment.withdraw();
    })
}

/// Requests the next step of an attachment.
pub fn step(tracer: &Tracer, step: &Step) -> io::Result<()> {
    tracer.line.send(&serde_json::to_vec(step)?, None)
}

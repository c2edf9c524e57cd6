//! A recording written to a file while it runs: a thread takes the events of the hooks and writes them in blocks.
//!
//! The thread takes none of the loader's locks, nor any that a thread in a hook may hold for long, so hooks may wait for it;
//! it never waits for itself. It blocks all signals. If the file can't be written, the events end and the program continues.
//! A forked child lacks this thread, and records in memory only.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::mem::{self, MaybeUninit};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use memprof_recording::{BlockWriter, Event as Recorded, Native, Record};

use super::event_ring::{Event, Pushed, Ring};
use super::sites::{self, SiteId};
use super::{Frame, Location, names, sampling};
use crate::held_file::HeldFile;
use crate::lock::Lock;
use crate::process::maps::{self, Mapping};
use crate::unwind::JIT;

/// The destination of a recording.
#[derive(Debug)]
pub struct Stream {
    /// An empty file, open for writing.
    pub file: File,
    /// The command being run, shown to readers of the recording.
    pub command: String,
    /// Whether events have addresses.
    pub addresses: bool,
}

/// Whether events are recorded: checking this is cheaper than taking the lock.
static IS_ON: AtomicBool = AtomicBool::new(false);
/// The writer thread, set just before it starts to write.
static WRITING: AtomicUsize = AtomicUsize::new(0);
static RING: Lock<Ring> = Lock::new(Ring::new());
static WRITER: Lock<Option<Writer>> = Lock::new(None);
/// Woken when a buffer is full.
static WOKEN: Lock<Option<Thread>> = Lock::new(None);

struct Writer {
    thread: JoinHandle<io::Result<()>>,
    pid: u32,
}

/// Interval for writing events to the file.
const INTERVAL: Duration = Duration::from_millis(100);
/// Interval for writing time and memory when nothing else happens: it keeps the file small for a `sh` that just waits for a
/// program.
const IDLE: Duration = Duration::from_secs(1);
/// Pause of a hook before it looks for room again.
const PAUSE: Duration = Duration::from_micros(200);

/// Starts the thread. Must be called before blocks are recorded.
pub(super) fn start(stream: Stream) -> io::Result<()> {
    let Stream { file, command, addresses } = stream;
    let blocks = BlockWriter::new(HeldFile::new(file)?)?;
    if !RING.with(Ring::start) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    let output = Output {
        blocks,
        addresses,
        known: Vec::new(),
        of_cut: HashMap::new(),
        frames: HashMap::new(),
        nodes: 0,
        natives: Vec::new(),
        maps: Vec::new(),
        since: Instant::now(),
    };
    // Set before the thread starts, which ends when it is off.
    IS_ON.store(true, Relaxed);
    WRITING.store(0, Relaxed);
    let thread = without_signals(|| {
        thread::Builder::new().name("memprof malloc".to_owned()).spawn(move || {
            // Makes libc allocate the thread's data now, before allocations are recorded.
            thread::park_timeout(Duration::ZERO);
            // SAFETY: has no conditions.
            WRITING.store(unsafe { libc::pthread_self() } as usize, Relaxed);
            write(output, &command)
        })
    });
    let thread = thread.inspect_err(|_| stop())?;
    while WRITING.load(Relaxed) == 0 {
        thread::yield_now();
    }
    let handle = thread.thread().clone();
    let pid = std::process::id();
    drop(WOKEN.with(|woken| woken.replace(handle)));
    // A writer left from before a fork belongs to the parent.
    mem::forget(WRITER.with(|writer| writer.replace(Writer { thread, pid })));
    Ok(())
}

/// In this order: the thread ends when it then finds the ring empty.
fn stop() {
    RING.with(Ring::stop);
    IS_ON.store(false, Relaxed);
}

/// Writes the remaining events. Fails if the file could not be written at some point, where it ends. Must be called when no
/// more blocks are recorded.
pub(super) fn finish() -> io::Result<()> {
    stop();
    let writer = WRITER.with(Option::take);
    let Some(writer) = writer else {
        return Ok(());
    };
    if writer.pid != std::process::id() {
        // A thread of the parent.
        mem::forget(writer);
        return Ok(());
    }
    writer.thread.thread().unpark();
    let result = writer.thread.join();
    drop(WOKEN.with(Option::take));
    result.unwrap_or_else(|_| Err(io::Error::other("the thread that writes failed")))
}

/// Pushes the allocation or the free of a block. The thread is in the recorder.
#[inline(always)]
pub(super) fn push(address: usize, site: SiteId, size: u64, is_free: bool) {
    if IS_ON.load(Relaxed) {
        push_event(Event::new(address, site, size, is_free));
    }
}

#[inline(never)]
fn push_event(event: Event) {
    loop {
        match RING.with(|ring| ring.push(event)) {
            Pushed::Yes | Pushed::Off => return,
            Pushed::Filled => return wake(),
            // SAFETY: has no conditions.
            Pushed::Full if WRITING.load(Relaxed) == unsafe { libc::pthread_self() } as usize => {
                return;
            }
            Pushed::Full => {
                wake();
                thread::sleep(PAUSE);
            }
        }
    }
}

fn wake() {
    WOKEN.with(|woken| woken.as_ref().map(Thread::unpark));
}

/// Takes the locks for a fork.
pub(super) fn hold() {
    WRITER.take();
    WOKEN.take();
    RING.take();
}

/// Releases the locks, in the parent and in the child.
pub(super) fn release() {
    RING.release();
    WOKEN.release();
    WRITER.release();
}

/// Turns the stream off in the child of a fork: the thread is the parent's.
pub(super) fn abandon() {
    IS_ON.store(false, Relaxed);
}

/// Runs `work` with all signals blocked; a thread that it starts has them blocked from its first instruction.
fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the sets are there to be written, and `all` is written before it is read.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let result = work();
    // SAFETY: written above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    result
}

/// The writer thread's state.
struct Output {
    blocks: BlockWriter<HeldFile>,
    addresses: bool,
    /// The node of each site; 0: none yet.
    known: Vec<u32>,
    /// The nodes of truncated stacks, by parent and frame.
    of_cut: HashMap<(u32, u32), u32>,
    /// The numbers of frames.
    frames: HashMap<Frame, u32>,
    /// The number of nodes.
    nodes: u32,
    /// Native frames with their addresses, to be named at the end.
    natives: Vec<(u32, usize)>,
    /// The mappings at the last lookup of native code.
    maps: Vec<Mapping>,
    since: Instant,
}

fn write(mut output: Output, command: &str) -> io::Result<()> {
    let result = output.run(command);
    if result.is_err() {
        // Hooks no longer wait for room.
        stop();
        // A partial block would look like a loss.
        let (length, file) = output.blocks.into_parts();
        let _ = file.set_len(length);
    }
    result
}

impl Output {
    fn run(&mut self, command: &str) -> io::Result<()> {
        let time = SystemTime::now().duration_since(UNIX_EPOCH);
        self.blocks.add(Record::Start {
            pid: u64::from(std::process::id()),
            time: time.map_or(0, |time| time.as_millis() as u64),
            command: command.as_bytes(),
        })?;
        if let Some(period) = sampling::period() {
            self.blocks.add(Record::Samples { period })?;
        }
        if self.addresses {
            self.blocks.add(Record::Addresses)?;
        }
        self.clock()?;
        self.blocks.flush()?;
        let mut events = Vec::new();
        let (mut flushed, mut timed) = (Instant::now(), Instant::now());
        loop {
            let (is_last, is_due) = (!IS_ON.load(Relaxed), flushed.elapsed() >= INTERVAL);
            RING.with(|ring| ring.take(is_last || is_due, &mut events));
            if !events.is_empty() || timed.elapsed() >= IDLE {
                self.clock()?;
                timed = Instant::now();
            }
            for event in &events {
                self.event(*event)?;
            }
            if is_due {
                self.blocks.flush()?;
                flushed = Instant::now();
            }
            if !events.is_empty() {
                continue;
            }
            if is_last {
                return self.end();
            }
            thread::park_timeout(INTERVAL);
        }
    }

    fn clock(&mut self) -> io::Result<()> {
        self.blocks.add(Record::Clock { ms: self.since.elapsed().as_millis() as u64, rss: rss() })
    }

    fn event(&mut self, event: Event) -> io::Result<()> {
        let node = u64::from(self.node(event.site())?);
        let recorded = Recorded { node, size: event.size(), address: event.address() };
        self.blocks.add(if event.is_free() {
            Record::Free(recorded)
        } else {
            Record::Allocation(recorded)
        })
    }

    /// The node of a site, which is defined on first use, after its callers.
    fn node(&mut self, site: SiteId) -> io::Result<u32> {
        let known = self.known.get(site.0 as usize).copied().unwrap_or(0);
        if known != 0 {
            return Ok(known);
        }
        match sites::cut(site) {
            Some(frames) => self.cut(site, frames),
            None => self.whole(site),
        }
    }

    /// The node of a stack truncated to these frames, innermost first.
    fn cut(&mut self, site: SiteId, frames: Vec<Frame>) -> io::Result<u32> {
        let mut node = 0;
        for frame in frames.into_iter().rev() {
            let frame = self.frame(frame)?;
            node = match self.of_cut.get(&(node, frame)) {
                Some(&known) => known,
                None => {
                    let new = self.define(node, frame)?;
                    self.of_cut.insert((node, frame), new);
                    new
                }
            };
        }
        self.know(site, node);
        Ok(node)
    }

    /// The node of a complete stack.
    fn whole(&mut self, site: SiteId) -> io::Result<u32> {
        let mut new = Vec::new();
        let (mut next, mut caller) = (Some(site), 0);
        while let Some(site) = next {
            caller = self.known.get(site.0 as usize).copied().unwrap_or(0);
            if caller != 0 {
                break;
            }
            let (callers, frame) = sites::node(site);
            new.push((site, frame));
            next = callers;
        }
        for (site, frame) in new.into_iter().rev() {
            let frame = self.frame(frame)?;
            caller = self.define(caller, frame)?;
            self.know(site, caller);
        }
        Ok(caller)
    }

    fn define(&mut self, parent: u32, frame: u32) -> io::Result<u32> {
        self.nodes += 1;
        self.blocks.add(Record::Node { parent: u64::from(parent), frame: u64::from(frame) })?;
        Ok(self.nodes)
    }

    fn know(&mut self, site: SiteId, node: u32) {
        let index = site.0 as usize;
        if index >= self.known.len() {
            self.known.resize(index + 1, 0);
        }
        self.known[index] = node;
    }

    /// The number of a frame, which is defined on first use.
    fn frame(&mut self, frame: Frame) -> io::Result<u32> {
        if let Some(&number) = self.frames.get(&frame) {
            return Ok(number);
        }
        let number = self.frames.len() as u32 + 1;
        match &frame.location {
            Location::Line { path, line } => self.blocks.add(Record::RubyFrame {
                path: path.as_bytes(),
                line: u64::from(*line),
                method: frame.method.as_bytes(),
            })?,
            Location::Native(address) => {
                self.natives.push((number, *address));
                self.native(*address)?;
            }
        }
        self.frames.insert(frame, number);
        Ok(number)
    }

    fn native(&mut self, address: usize) -> io::Result<()> {
        let address = address as u64;
        if address == JIT as u64 {
            return self.blocks.add(Record::NativeFrame {
                address: 0,
                offset: 0,
                module: Native::JIT.as_bytes(),
            });
        }
        let is_here = |one: &&Mapping| (one.start..one.end).contains(&address);
        if !self.maps.iter().any(|one| is_here(&one)) {
            self.maps = maps::of(std::process::id() as i32).unwrap_or_default();
        }
        let mapping = self.maps.iter().find(is_here);
        let module = mapping.map_or("", |one| one.path.as_str());
        let module = if module.starts_with('/') { module } else { "" };
        let parts = self.maps.iter().filter(|one| one.path == module);
        let base = parts.map(|one| one.start).min().filter(|_| !module.is_empty());
        self.blocks.add(Record::NativeFrame {
            address,
            offset: base.map_or(0, |base| address - base),
            module: module.as_bytes(),
        })
    }

    /// Naming functions takes the loader's lock, which a thread in a hook may have; hooks no longer wait for this thread.
    fn end(&mut self) -> io::Result<()> {
        for (frame, address) in mem::take(&mut self.natives) {
            if let Some((function, distance)) = names::function(address) {
                self.blocks.add(Record::Name {
                    frame: u64::from(frame),
                    distance: distance as u64,
                    function: function.as_bytes(),
                })?;
            }
        }
        self.clock()?;
        let missed = super::recorder::missed();
        self.blocks.add(Record::End { missed })?;
        self.blocks.flush()
    }
}

/// Resident memory of this process in bytes; 0 if unknown.
fn rss() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|word| word.parse().ok());
    // SAFETY: reads a system constant.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages.unwrap_or(0u64) * u64::try_from(page).unwrap_or(4096)
}

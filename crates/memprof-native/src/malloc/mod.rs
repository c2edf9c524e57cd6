//! Recording of malloc: which site allocated each live block, and what was allocated and freed there.
//!
//! While a recording runs, the allocator's hooks ([`crate::tracers::memory`]) report here. A site is a line of Ruby if the
//! thread runs Ruby code, which the [`Host`] knows, and else the native code that called the allocator. No block has a
//! header: a block from before the recording is unknown, and is freed as ever.
//!
//! Rules that keep the program safe:
//!
//! - **What is needed inside a hook comes from the system** (`pages`), or from Rust's allocator, which the hooks leave out.
//! - **A thread counts only in its own memory** (`tallies`), and only while it is in the recorder.
//! - **A block is forgotten before it is freed**, so that the thread that gets its address next records it after that.
//! - **A signal handler that allocates in the middle of this code is not recorded** (`counters::Block::enter_recorder`): the
//!   thread may hold a lock of the table.

#[cfg(interposed)]
mod answers;
#[cfg(interposed)]
mod block_entry;
#[cfg(interposed)]
mod block_shards;
#[cfg(interposed)]
mod block_table;
#[cfg(interposed)]
mod event_ring;
#[cfg(interposed)]
mod names;
#[cfg(interposed)]
mod pages;
#[cfg(interposed)]
mod probes;
#[cfg(interposed)]
mod recorder;
#[cfg(interposed)]
mod sampling;
#[cfg(interposed)]
mod site_cache;
#[cfg(interposed)]
mod site_counters;
#[cfg(interposed)]
mod sites;
#[cfg(interposed)]
mod stack_cache;
#[cfg(interposed)]
mod stream;
#[cfg(interposed)]
mod tallies;
#[cfg(interposed)]
mod thread_memory;
#[cfg(not(interposed))]
mod unsupported;
#[cfg(interposed)]
mod weave;

use std::ffi::{CString, c_char};
use std::num::NonZeroU32;
use std::ops::Range;

#[cfg(interposed)]
pub(crate) use recorder::{AT_FORK, allocated, forget, freed, reallocated};
#[cfg(not(interposed))]
pub use unsupported::{
    Stream, counts, describe, is_recording, live_blocks, memsize, missed, reset, sample,
    set_interpreter, set_quiet, sites, stacks, start, start_stream, stop,
};
#[cfg(interposed)]
pub use {
    answers::{counts, live_blocks, memsize, sites, stacks},
    names::describe,
    recorder::{is_recording, missed, reset, sample, set_quiet, start, start_stream, stop},
    stream::Stream,
    weave::set_interpreter,
};

/// What is recorded.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Bytes between samples on average, of which only the blocks that they are in are recorded; counts are estimates then.
    /// None: all blocks.
    pub sample: Option<NonZeroU32>,
    /// Frames of the interpreter's code that are kept of each stack, innermost first. With one, only the line that allocates.
    pub stack: usize,
    /// Native frames, too, with the interpreter's in place of its loop ([`Interpreter`]).
    pub native: bool,
}

/// Where an interpreter's own functions are, in native stacks.
#[derive(Clone, Debug, Default)]
pub struct Interpreter {
    /// The function that runs code of the interpreter: on a stack as often as it was entered from native code.
    pub run: Range<usize>,
    /// Functions between that one and the native code that it calls: their frames are left out.
    pub between: Vec<Range<usize>>,
}

impl Default for Settings {
    /// All blocks, by line.
    fn default() -> Settings {
        Settings {
            sample: None,
            stack: 1,
            native: false,
        }
    }
}

/// The running line of a program.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// The file's name, which ends with a NUL and stays as it is until the hook returns.
    pub path: *const c_char,
    /// The line.
    pub line: u32,
}

/// What the calling thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// No code of the interpreter.
    Native,
    /// Code whose line [`Host::line`] knows.
    Line,
    /// The instruction at this address, which is always the same line as long as its block is not freed.
    Code(usize),
}

/// A frame of the interpreter's code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Running {
    /// The address behind the instruction that it runs, or that called the next frame.
    pub instruction: usize,
    /// The interpreter's name for its code, which is not 0.
    pub code: usize,
    /// Whether the interpreter was entered from native code with this frame.
    pub is_entry: bool,
    /// False for a frame that runs no code of the interpreter, as of a method in C: [`Host::follow`] writes those, too.
    pub is_code: bool,
}

/// What a frame runs. The texts stay as they are until the hook returns.
#[derive(Clone, Copy, Debug)]
pub struct Described {
    /// File.
    pub path: *const [u8],
    /// Its line.
    pub line: u32,
    /// Method.
    pub method: *const [u8],
    /// The block of the allocator that holds the instruction. As long as it is not freed, the instruction is of that line.
    pub block: usize,
    /// Whether it is the profiler's own: stacks have no such frames.
    pub is_own: bool,
}

/// What the recorder asks of the interpreter. All are called inside an allocator's call, on any thread: they must
/// not allocate where that is recorded, and wait for nothing.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    /// Where the calling thread is in the code of the interpreter. Called for each block.
    pub position: fn() -> Position,
    /// The block of the allocator that holds the instruction at the position that was just returned; None if it is not known.
    pub code_block: fn(usize) -> Option<usize>,
    /// The line that the calling thread runs; None if it runs no code of the interpreter right now.
    pub line: fn() -> Option<Line>,
    /// Writes the calling thread's frames, innermost first, and returns how many; 0 if it runs no code of the interpreter
    /// right now, or they are unknown.
    pub frames: fn(&mut [Running]) -> usize,
    /// Writes all of them, outermost first, over those that it wrote at the call before, as many as the second argument
    /// says. Returns how many of these are what they were, and how many frames there are. The third argument: a frame that is
    /// entered in another way is another one. Of a stack that is too deep for the slice, the outermost frames are missing.
    pub follow: fn(&mut [Running], usize, bool) -> (usize, usize),
    /// What such a frame runs; None if that is not known.
    pub described: fn(Running) -> Option<Described>,
    /// The number of garbage collections so far.
    pub generation: fn() -> u32,
    /// Whether a file of this path is the profiler's own. Asked once for each line.
    pub is_own: fn(&[u8]) -> bool,
    /// Whether the calling thread is not to be recorded. Only asked while [`set_quiet`] says that some thread is.
    pub is_quiet: fn() -> bool,
}

/// A site with what was counted there.
#[derive(Clone, Debug)]
pub struct Site {
    /// Where it is.
    pub location: Location,
    /// What was counted.
    pub counts: Counts,
}

/// A live block of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveBlock {
    /// Bytes asked for.
    pub size: u64,
    /// Garbage collections since it was allocated.
    pub age: u32,
}

/// A frame of a stack that allocated.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Where it is.
    pub location: Location,
    /// The method as the interpreter names it; empty if it is not known.
    pub method: CString,
}

/// Where a block is allocated.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Location {
    /// A line of Ruby code.
    Line {
        /// The file as Ruby names it.
        path: CString,
        /// Its line.
        line: u32,
    },
    /// Native code: the address behind the call.
    Native(usize),
}

/// Whose code a location is. The greatest of a stack is the one that people call the place of an allocation.
#[cfg(interposed)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    Native,
    /// Ruby, but the interpreter's own.
    Interpreter,
    User,
}

#[cfg(interposed)]
impl Location {
    pub(crate) fn origin(&self) -> Origin {
        match self {
            Location::Native(_) => Origin::Native,
            Location::Line { path, .. } if memprof_paths::is_vms(path.to_bytes()) => {
                Origin::Interpreter
            }
            Location::Line { .. } => Origin::User,
        }
    }
}

#[cfg(interposed)]
impl Described {
    pub(crate) fn location(&self) -> Location {
        Location::Line {
            path: text(self.path),
            line: self.line,
        }
    }
}

/// Up to the first NUL, as functions of C see it.
#[cfg(interposed)]
fn text(text: *const [u8]) -> CString {
    // SAFETY: the host's text, which stays as it is until the hook returns.
    let bytes = unsafe { &*text };
    let bytes = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    CString::new(bytes).unwrap_or_default()
}

/// What was counted at a site. Sizes are in bytes as asked for. In a recording of samples these are estimates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Blocks that were allocated.
    pub allocations: u64,
    /// Their bytes.
    pub allocated_bytes: u64,
    /// Blocks that were freed.
    pub frees: u64,
    /// Their bytes.
    pub freed_bytes: u64,
    /// Sum of the ages at which blocks were freed, in GC generations.
    pub age_total: u64,
    /// The greatest of them.
    pub max_lifespan: u64,
    /// Blocks that are live, those from before a reset among them.
    pub live: u64,
    /// Their bytes.
    pub live_bytes: u64,
}

impl Counts {
    /// Adds what was counted elsewhere.
    pub(crate) fn add(&mut self, other: Counts) {
        self.allocations += other.allocations;
        self.allocated_bytes += other.allocated_bytes;
        self.frees += other.frees;
        self.freed_bytes += other.freed_bytes;
        self.age_total += other.age_total;
        self.max_lifespan = self.max_lifespan.max(other.max_lifespan);
        self.live += other.live;
        self.live_bytes += other.live_bytes;
    }
}

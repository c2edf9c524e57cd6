//! Malloc recordings: the site of each live block, and each site's allocations and frees.
//!
//! While a recording runs, the allocator's hooks ([`crate::tracers::memory`]) report here. If the thread runs Ruby code,
//! according to the [`Host`], the site is a line of Ruby, else the native code that called the allocator. Blocks have no
//! header: a block from before the recording is unknown, and freed as usual.
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
mod steps;
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

/// Settings of a recording.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Mean number of bytes between samples; only blocks with a sample are recorded, and counts are estimates. None: all
    /// blocks.
    pub sample: Option<NonZeroU32>,
    /// Number of interpreter frames to record per stack, innermost first. With 1, only the line that allocates.
    pub stack: usize,
    /// Whether to record native frames, too, with interpreter frames in place of its loop ([`Interpreter`]).
    pub native: bool,
}

/// The interpreter's own functions in native stacks.
#[derive(Clone, Debug, Default)]
pub struct Interpreter {
    /// The function that runs the interpreter's code: on a stack once per entry from native code.
    pub run: Range<usize>,
    /// Functions between that one and the native code that it calls; their frames are left out.
    pub between: Vec<Range<usize>>,
}

impl Default for Settings {
    /// Records all blocks, by line.
    fn default() -> Settings {
        Settings { sample: None, stack: 1, native: false }
    }
}

/// The current line of a program.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// The file's name, NUL-terminated and unchanged until the hook returns.
    pub path: *const c_char,
    /// The line.
    pub line: u32,
}

/// The calling thread's position in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// Outside of interpreted code.
    Native,
    /// Interpreted code; [`Host::line`] knows the line.
    Line,
    /// The instruction at this address, which belongs to the same line until its block is freed.
    Code(usize),
}

/// A frame of interpreted code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Running {
    /// The address after the current instruction, or the one that called the next frame.
    pub instruction: usize,
    /// The interpreter's id of its code, never 0.
    pub code: usize,
    /// Whether the interpreter was entered from native code with this frame.
    pub is_entry: bool,
    /// False for a frame without interpreted code, such as a method in C: [`Host::follow`] writes those, too.
    pub is_code: bool,
}

/// Description of a frame. The texts stay unchanged until the hook returns.
#[derive(Clone, Copy, Debug)]
pub struct Described {
    /// File.
    pub path: *const [u8],
    /// Its line.
    pub line: u32,
    /// Method.
    pub method: *const [u8],
    /// The allocator's block with the instruction. Until it is freed, the instruction belongs to that line.
    pub block: usize,
    /// Whether the frame belongs to the profiler itself: stacks omit such frames.
    pub is_own: bool,
}

/// Callbacks into the interpreter. All are called inside an allocator call, on any thread: they must not make recorded
/// allocations or wait for anything.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    /// The calling thread's position in interpreted code. Called for each block.
    pub position: fn() -> Position,
    /// The allocator's block with the instruction at the position just returned; None if unknown.
    pub code_block: fn(usize) -> Option<usize>,
    /// The current line of the calling thread; None if it is not running interpreted code.
    pub line: fn() -> Option<Line>,
    /// Writes the calling thread's frames, innermost first, and returns their number; 0 if it is not running interpreted
    /// code, or they are unknown.
    pub frames: fn(&mut [Running]) -> usize,
    /// Writes all frames, outermost first, over those of the previous call, whose number is the second argument. Returns how
    /// many are unchanged, and the number of frames. With the third argument, a frame that is entered in another way counts
    /// as changed. If the stack is too deep for the slice, the outermost frames are missing.
    pub follow: fn(&mut [Running], usize, bool) -> (usize, usize),
    /// Describes a frame; None if unknown.
    pub described: fn(Running) -> Option<Described>,
    /// The number of garbage collections so far.
    pub generation: fn() -> u32,
    /// Whether the file with this path belongs to the profiler itself. Called once per line.
    pub is_own: fn(&[u8]) -> bool,
    /// Whether to exclude the calling thread from the recording. Only called while [`set_quiet`] is on.
    pub is_quiet: fn() -> bool,
}

/// A site with its counts.
#[derive(Clone, Debug)]
pub struct Site {
    /// The site's location.
    pub location: Location,
    /// The site's counts.
    pub counts: Counts,
}

/// A live block of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveBlock {
    /// The requested bytes.
    pub size: u64,
    /// Garbage collections since it was allocated.
    pub age: u32,
}

/// A frame of an allocating stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The frame's location.
    pub location: Location,
    /// The method as named by the interpreter; empty if unknown.
    pub method: CString,
}

/// The location of an allocation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Location {
    /// A line of Ruby code.
    Line {
        /// The file as named by Ruby.
        path: CString,
        /// Its line.
        line: u32,
    },
    /// Native code: the address after the call.
    Native(usize),
}

/// The owner of a location's code. The greatest of a stack is the one reported as the allocation's location.
#[cfg(interposed)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    Native,
    /// Ruby code of the interpreter itself.
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
        Location::Line { path: text(self.path), line: self.line }
    }
}

/// Up to the first NUL, as C functions see it.
#[cfg(interposed)]
fn text(text: *const [u8]) -> CString {
    // SAFETY: the host's text, which stays unchanged until the hook returns.
    let bytes = unsafe { &*text };
    let bytes = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    CString::new(bytes).unwrap_or_default()
}

/// The counts of a site. Sizes are requested bytes. When sampling, these are estimates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Allocated blocks.
    pub allocations: u64,
    /// Their bytes.
    pub allocated_bytes: u64,
    /// Freed blocks.
    pub frees: u64,
    /// Their bytes.
    pub freed_bytes: u64,
    /// Sum of the ages of blocks when freed, in GC generations.
    pub age_total: u64,
    /// The greatest of these ages.
    pub max_lifespan: u64,
    /// Live blocks, including those from before a reset.
    pub live: u64,
    /// Their bytes.
    pub live_bytes: u64,
}

impl Counts {
    /// Adds counts from elsewhere.
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

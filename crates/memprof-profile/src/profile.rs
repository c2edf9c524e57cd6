//! A profile: what one tracking session saw, as plain data.
//!
//! It is taken once, when a block ends or a report is asked for. Everything that presents allocations (text, JSON,
//! Markdown, flame graphs) starts from here, and nothing in it refers to the recorder or to a virtual machine.

use serde::{Deserialize, Serialize};

/// Objects and the bytes that they take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    /// Number of objects.
    pub objects: u64,
    /// Bytes of those objects.
    pub bytes: u64,
}

impl Amount {
    /// An amount of `objects` objects and `bytes` bytes.
    pub fn new(objects: u64, bytes: u64) -> Self {
        Amount { objects, bytes }
    }

    /// True if there are no objects.
    pub fn is_none(&self) -> bool {
        *self == Amount::default()
    }

    /// Adds `other` to this amount.
    pub fn add(&mut self, other: Amount) {
        self.objects += other.objects;
        self.bytes += other.bytes;
    }
}

/// Age of the objects that were freed, in GC generations (collections survived between allocation and free).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ages {
    /// Sum of the ages; divide by the number of freed objects for the mean.
    pub sum: u64,
    /// The oldest object that was freed.
    pub max: u32,
}

impl Ages {
    /// Joins the ages of two groups of objects.
    pub fn add(&mut self, other: Ages) {
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }
}

/// One entry of a call stack: a method (or block, class body, script) of a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    /// Index into [`Profile::files`].
    pub file: u32,
    /// Qualified name of the method, as `Cache#fetch`; `<main>` for a script's top level.
    pub method: String,
    /// First line of the method's definition, 0 if it has none (a method written in C).
    pub first_line: u32,
    /// True for a method written in C: it has no file and no lines of its own.
    pub native: bool,
}

/// A call stack, as a node of a tree whose parents are the callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StackNode {
    /// Index into [`Profile::stacks`] of the calling frame; `None` for the outermost frame that was kept.
    /// A parent always has a smaller index than its children.
    pub parent: Option<u32>,
    /// Index into [`Profile::frames`].
    pub frame: u32,
    /// Line that was being executed in the frame; 0 if unknown (methods written in C).
    pub line: u32,
}

/// The objects of one class that were allocated at one place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SiteRow {
    /// Index into [`Profile::stacks`] of the frame that allocated: its file and line are the site's location.
    pub site: u32,
    /// Index into [`Profile::stacks`] of the innermost frame kept, which may be a method written in C that `site` called.
    pub stack: u32,
    /// Index into [`Profile::classes`].
    pub class: u32,
    /// All objects allocated. Bytes: slot size at allocation for those that were freed, memsize for those that are retained.
    pub allocated: Amount,
    /// Those that are alive at the end. Bytes: memsize.
    pub retained: Amount,
    /// Those that were freed. Bytes: slot size at allocation.
    pub freed: Amount,
    /// Ages of those that were freed.
    pub ages: Ages,
    /// Those that were alive, or not yet collected, when memory was largest; see [`Meta::peak`].
    #[serde(default, skip_serializing_if = "Amount::is_none")]
    pub peak: Amount,
}

/// One string value and the places that allocated it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StringRow {
    /// The value, at most [`crate::string_values::VALUE_LIMIT`] bytes of it; bytes that are not UTF-8 are written as `\xNN`.
    pub value: String,
    /// Number of strings with this value.
    pub objects: u64,
    /// Number of strings by location: (file, line, strings), most first. `file` is an index into [`Profile::files`].
    pub locations: Vec<(u32, u32, u64)>,
}

/// The process when its memory was largest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeakFacts {
    /// Seconds since tracking began.
    pub time: f64,
    /// Resident set size then, in bytes.
    pub resident: Option<u64>,
    /// The largest resident set size of the process up to the report, as the kernel reports it, in bytes.
    pub resident_ever: Option<u64>,
    /// Bytes of malloc in use then.
    pub malloc: Option<u64>,
    /// Bytes of the slots of recorded objects then.
    pub slots: u64,
    /// The objects of all sites.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Facts about the run that a profile was taken in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// `RUBY_DESCRIPTION`, or whatever the host calls itself.
    pub runtime: String,
    /// Version of memprof.
    pub memprof: String,
    /// Process id.
    pub pid: u32,
    /// Command line of the program.
    pub command: String,
    /// Where it ran; empty if that is not known.
    #[serde(default)]
    pub directory: String,
    /// When tracking began, seconds since the epoch.
    pub started_at: f64,
    /// How long was tracked, seconds.
    pub duration: f64,
    /// One object in so many was recorded, on average; 1 means all. Amounts are scaled up already.
    pub sample: u32,
    /// Bytes of malloc between samples, on average; `None`: all blocks were recorded, or no malloc at all. Amounts are
    /// scaled up already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub malloc_sample: Option<u64>,
    /// Frames kept per object.
    pub stack: u32,
    /// Collections during the session.
    pub gc_count: u64,
    /// The VM was silent for a part of the run, so objects are missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
    /// When memory was largest, if that was to be found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<PeakFacts>,
}

impl Meta {
    /// What is to be said of numbers that come from samples of malloc.
    pub fn estimates(&self) -> Option<String> {
        self.malloc_sample.map(estimates)
    }
}

/// What is to be said of numbers that come from samples of malloc, one every so many bytes.
pub fn estimates(period: u64) -> String {
    format!("sampled every {period} bytes on average: estimates")
}

/// What one tracking session saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// The run.
    pub meta: Meta,
    /// Paths of files, as the host spells them.
    pub files: Vec<String>,
    /// Frames that occur in the stacks.
    pub frames: Vec<Frame>,
    /// Call stacks, as a tree: a parent comes before its children.
    pub stacks: Vec<StackNode>,
    /// Names of classes; internal objects are named as `<iseq>`.
    pub classes: Vec<String>,
    /// What was allocated, by site, stack and class. A combination occurs once.
    pub rows: Vec<SiteRow>,
    /// Values of the strings allocated; empty unless asked for.
    pub strings_allocated: Vec<StringRow>,
    /// Values of the strings retained; empty unless asked for.
    pub strings_retained: Vec<StringRow>,
}

//! A profile: the results of one tracking session, as plain data.
//!
//! A profile is taken once, when a block ends or a report is requested. All presentations of allocations (text, JSON, Markdown,
//! flame graphs) start from it, and nothing in it refers to the recorder or to a virtual machine.

use serde::{Deserialize, Serialize};

/// A number of objects and their bytes.
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

/// Ages of freed objects, in GC generations (GCs survived between allocation and free).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ages {
    /// Sum of the ages; divide by the number of freed objects for the mean.
    pub sum: u64,
    /// Age of the oldest freed object.
    pub max: u32,
}

impl Ages {
    /// Adds the ages of another group of objects.
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
    /// Qualified name of the method, such as `Cache#fetch`; `<main>` for a script's top level.
    pub method: String,
    /// First line of the method's definition; 0 for a method written in C.
    pub first_line: u32,
    /// True for a method written in C: it has no file and no lines of its own.
    pub native: bool,
}

/// A call stack, as a node of a tree whose parents are the callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StackNode {
    /// Index into [`Profile::stacks`] of the calling frame; `None` for the outermost frame recorded.
    /// A parent always has a smaller index than its children.
    pub parent: Option<u32>,
    /// Index into [`Profile::frames`].
    pub frame: u32,
    /// Line being executed in the frame; 0 if unknown (methods written in C).
    pub line: u32,
}

/// The objects of one class allocated at one place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SiteRow {
    /// Index into [`Profile::stacks`] of the allocating frame: its file and line are the site's location.
    pub site: u32,
    /// Index into [`Profile::stacks`] of the innermost frame recorded, which may be a method written in C called by `site`.
    pub stack: u32,
    /// Index into [`Profile::classes`].
    pub class: u32,
    /// All objects allocated. Bytes: slot size at allocation for freed objects, memsize for retained ones.
    pub allocated: Amount,
    /// Objects live at the end. Bytes: memsize.
    pub retained: Amount,
    /// Objects freed. Bytes: slot size at allocation.
    pub freed: Amount,
    /// Ages of the freed objects.
    pub ages: Ages,
    /// Objects live, or not yet collected, when memory peaked; see [`Meta::peak`].
    #[serde(default, skip_serializing_if = "Amount::is_none")]
    pub peak: Amount,
}

/// One string value and the places that allocated it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StringRow {
    /// The value, truncated to [`crate::string_values::VALUE_LIMIT`] bytes; bytes that are not UTF-8 are written as `\xNN`.
    pub value: String,
    /// Number of strings with this value.
    pub objects: u64,
    /// Number of strings by location: (file, line, strings), most first. `file` is an index into [`Profile::files`].
    pub locations: Vec<(u32, u32, u64)>,
}

/// The process when its memory peaked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeakFacts {
    /// Seconds since tracking began.
    pub time: f64,
    /// Resident set size at the peak, in bytes.
    pub resident: Option<u64>,
    /// Maximum resident set size of the process up to the report, as reported by the kernel, in bytes.
    pub resident_ever: Option<u64>,
    /// malloc'ed bytes in use at the peak.
    pub malloc: Option<u64>,
    /// Bytes of the slots of recorded objects at the peak.
    pub slots: u64,
    /// The objects of all sites.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Facts about the run of a profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// `RUBY_DESCRIPTION`, or the host's equivalent.
    pub runtime: String,
    /// Version of memprof.
    pub memprof: String,
    /// Process id.
    pub pid: u32,
    /// Command line of the program.
    pub command: String,
    /// Working directory; empty if unknown.
    #[serde(default)]
    pub directory: String,
    /// When tracking began, in seconds since the epoch.
    pub started_at: f64,
    /// Duration of tracking, in seconds.
    pub duration: f64,
    /// Sampling interval: one object in `sample` was recorded on average; 1 means all. Amounts are already scaled up.
    pub sample: u32,
    /// Average malloc'ed bytes between samples; `None` if all blocks were recorded, or no malloc at all. Amounts are already
    /// scaled up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub malloc_sample: Option<u64>,
    /// Frames recorded per object.
    pub stack: u32,
    /// GCs during the session.
    pub gc_count: u64,
    /// The VM reported no events for a part of the run, so objects are missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
    /// The process when its memory peaked, if that was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<PeakFacts>,
}

impl Meta {
    /// Note on numbers that come from malloc samples, if any.
    pub fn estimates(&self) -> Option<String> {
        self.malloc_sample.map(estimates)
    }
}

/// Note on numbers that come from malloc samples, one per `period` bytes.
pub fn estimates(period: u64) -> String {
    format!("sampled every {period} bytes on average: estimates")
}

/// The results of one tracking session.
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
    /// Names of classes; internal objects have names such as `<iseq>`.
    pub classes: Vec<String>,
    /// Allocations by site, stack and class. Each combination occurs once.
    pub rows: Vec<SiteRow>,
    /// Values of the strings allocated; empty unless asked for.
    pub strings_allocated: Vec<StringRow>,
    /// Values of the strings retained; empty unless asked for.
    pub strings_retained: Vec<StringRow>,
}

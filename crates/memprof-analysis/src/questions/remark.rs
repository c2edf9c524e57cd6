//! What limits an answer, as fields: Ruby has the sentences (`lib/memprof/heap/sentences.rb`).

use serde::Serialize;

use super::tracking::Tracking;

/// A limit of an answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "remark", rename_all = "snake_case")]
pub enum Remark {
    /// The dump has no objects.
    NoObjects,
    /// The dump ends before its end: objects and references are missing.
    EndsEarly,
    /// Parts of the dump cannot be read.
    Skipped {
        /// `line` or `block`.
        unit: &'static str,
        /// Number of these parts.
        count: u64,
        /// Number of the first one.
        first: u64,
    },
    /// References to objects that the dump does not have.
    Missing {
        /// Number of these references.
        count: u64,
    },
    /// The dump has no roots.
    Rootless,
    /// A dump lacks roots or references: what retains objects is unknown.
    Unretained,
    /// The dump has no roots, so the answer includes garbage.
    GarbageCounted,
    /// The GC moved objects while the dump was written.
    Moved,
    /// No object has a known allocation line.
    NoLines {
        /// Whether memprof is loaded.
        tracking: Tracking,
    },
    /// Few objects have a known allocation line.
    FewLines {
        /// Percentage of all objects.
        percent: f64,
    },
    /// Others have known lines, the objects of the answer do not.
    LinesUnknown,
    /// The dump was written without contents of strings.
    NoTexts,
    /// Contents of all strings are missing.
    NoContents,
    /// Contents of some strings are incomplete.
    PartialTexts {
        /// Number of these strings.
        count: u64,
    },
    /// The dump has hashes instead of contents.
    HashedTexts,
    /// Facts about the Ruby of a core file that could not be found out.
    UnknownFacts {
        /// Their names.
        facts: Vec<String>,
    },
    /// memprof's own objects, which are not counted.
    OwnObjects {
        /// Number of objects.
        count: u64,
        /// Sum of their memsizes.
        size: u64,
    },
    /// Neither of two dumps has generations.
    NoGenerations,
    /// Only the first of two dumps has generations.
    TrackingEnded,
    /// The dumps are from two processes.
    TwoProcesses,
    /// Only some of the dumps have the blocks of malloc.
    BlocksDiffer,
    /// Only some of the dumps are read from the memory of a process.
    ImagesDiffer,
    /// The heap was compacted between the dumps.
    Compacted,
    /// The first dump was written after the second.
    WrongOrder,
    /// The dump is truncated, and the answer lacks its missing part.
    Truncated,
    /// One of two dumps is truncated.
    OneTruncated {
        /// `earlier` or `later`.
        dump: &'static str,
    },
}

//! Measurements of a process, taken from outside of Ruby.

use std::fs;
use std::io;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::Allocator;
use super::cgroup::{self, Cgroup};
use super::mapping_kinds::{self, Kinds};
use super::pagemap::{Pagemap, merged};
use super::sharing::Sharing;
use super::smaps::{self, Mapping};

/// Measurements of a process, as stored in the header of a dump. Sizes are bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// Sum over all mappings.
    pub rss: u64,
    /// PSS: a page shared by n processes counts 1/n. Unknown where a forked child measures itself in place of its parent.
    pub pss: Option<u64>,
    /// Part of the RSS that no other process has; unknown in the same case.
    pub private: Option<u64>,
    /// Swapped out, so not in the RSS.
    pub swap: u64,
    /// Mappings by kind.
    pub mappings: Kinds,
    /// Pages of Ruby's heap; unknown for another process.
    pub ruby_heap: Option<RubyHeap>,
    /// How many of these a forked process still shares with its parent; `None` for other processes, and for a forked child that
    /// measures itself in place of its parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sharing: Option<Sharing>,
    /// The allocator's own statistics; unknown for another process.
    pub allocator: Option<Allocator>,
    /// The limit of the cgroup.
    pub cgroup: Option<Cgroup>,
}

/// Pages with Ruby's slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RubyHeap {
    /// Bytes of all pages.
    pub size: u64,
    /// Resident bytes of these pages.
    pub resident: u64,
}

/// Address ranges of Ruby's heap.
#[derive(Clone, Debug, Default)]
pub struct HeapPages {
    /// Pages with objects.
    pub ranges: Vec<Range<u64>>,
    /// Bytes of empty pages, wherever they are.
    pub empty: u64,
}

/// Measures the process whose `directory` is `/proc/self` or `/proc/PID`. `heap`: the pages of its Ruby heap, if known.
///
/// # Errors
/// If /proc cannot be read.
pub fn measure(
    directory: &str,
    page_size: u64,
    heap: Option<HeapPages>,
    allocator: Option<Allocator>,
) -> io::Result<Facts> {
    let mappings = smaps::parse(&fs::read(format!("{directory}/smaps"))?);
    // Without the pagemap, all of the heap counts as resident.
    let pagemap = (heap.as_ref()).and_then(|_| Pagemap::open(directory, page_size).ok());
    let empty = heap.as_ref().map_or(0, |heap| heap.empty);
    let pages = heap.map(|heap| merged(heap.ranges));
    let (mut kinds, resident) =
        mapping_kinds::sum(&mappings, pages.as_deref().unwrap_or_default(), pagemap.as_ref());
    let ruby_heap = pages.map(|pages| {
        // They were in use before, so they are resident.
        let empty_resident = empty.min(kinds.anonymous);
        kinds.anonymous -= empty_resident;
        RubyHeap {
            size: pages.iter().map(|range| range.end - range.start).sum::<u64>() + empty,
            resident: resident + empty_resident,
        }
    });
    let sum = |field: fn(&Mapping) -> u64| mappings.iter().map(field).sum();
    Ok(Facts {
        rss: sum(|mapping| mapping.rss),
        pss: Some(sum(|mapping| mapping.pss)),
        private: Some(sum(|mapping| mapping.private)),
        swap: sum(|mapping| mapping.swap),
        mappings: kinds,
        ruby_heap,
        sharing: None,
        allocator,
        cgroup: cgroup::limit(directory),
    })
}

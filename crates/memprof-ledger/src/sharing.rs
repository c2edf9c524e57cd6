//! Which pages of Ruby's heap a forked process still shares with its parent, and which it has unshared.

use std::io;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::pagemap::{Entry, Pagemap};
use super::process_stat;

/// Ruby heap pages of a forked process by origin. Bytes, without swapped-out pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sharing {
    /// The process it was forked from.
    pub parent: u32,
    /// Pages shared with other processes.
    pub shared: u64,
    /// Pages shared with its parent until one of the two wrote to them.
    pub unshared: u64,
    /// Pages that its parent does not have.
    pub new: u64,
}

/// Unshared pages, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnsharedPages {
    ranges: Vec<Range<u64>>,
}

/// Format in the header of a dump: alternating counts of pages, first of others, then of unshared ones.
#[derive(Serialize, Deserialize)]
struct Stored {
    page_size: u64,
    turns: Vec<u64>,
}

impl UnsharedPages {
    /// Whether the address is in an unshared page.
    pub fn contains(&self, address: u64) -> bool {
        let next = self.ranges.partition_point(|range| range.end <= address);
        (self.ranges.get(next)).is_some_and(|range| range.start <= address)
    }

    fn add(&mut self, page: Range<u64>) {
        match self.ranges.last_mut() {
            Some(last) if last.end == page.start => last.end = page.end,
            _ => self.ranges.push(page),
        }
    }

    /// Compact JSON.
    pub fn to_json(&self, page_size: u64) -> serde_json::Result<String> {
        let mut last = 0;
        let turns = self.ranges.iter().flat_map(|range| {
            let gap = (range.start - last) / page_size;
            last = range.end;
            [gap, (range.end - range.start) / page_size]
        });
        serde_json::to_string(&Stored { page_size, turns: turns.collect() })
    }

    /// Parses the JSON of [`UnsharedPages::to_json`]; `None` if it is something else.
    pub fn from_json(json: serde_json::Value) -> Option<UnsharedPages> {
        let stored: Stored = serde_json::from_value(json).ok()?;
        let (mut ranges, mut at) = (Vec::new(), 0_u64);
        for turn in stored.turns.chunks_exact(2) {
            let start = at.checked_add(turn[0].checked_mul(stored.page_size)?)?;
            at = start.checked_add(turn[1].checked_mul(stored.page_size)?)?;
            ranges.push(start..at);
        }
        Some(UnsharedPages { ranges })
    }
}

/// The process from which `pid` was forked; `None` if the two run different programs, or one has ended or is unreadable.
pub fn forked_from(pid: u32) -> Option<u32> {
    let own = process_stat::of(pid)?;
    let parent = process_stat::of(own.parent)?;
    own.has_program_of(&parent).then_some(parent.pid)
}

/// Compares the pages of these ranges (sorted, without overlap) in a process and in its parent.
///
/// # Errors
/// If /proc cannot be read.
pub fn compare(
    pid: u32,
    parent: u32,
    page_size: u64,
    ranges: &[Range<u64>],
) -> io::Result<(Sharing, UnsharedPages)> {
    let own = Pagemap::open(&format!("/proc/{pid}"), page_size)?;
    let theirs = Pagemap::open(&format!("/proc/{parent}"), page_size)?;
    let mut sharing = Sharing { parent, ..Sharing::default() };
    let mut unshared = UnsharedPages::default();
    let mut entries: Vec<Entry> = Vec::new();
    for range in ranges {
        entries.clear();
        theirs.each(range, |entry| entries.push(entry))?;
        let mut index = 0;
        own.each(range, |entry| {
            let before = entries.get(index).copied().unwrap_or_default();
            let start = range.start + index as u64 * page_size;
            index += 1;
            if !entry.is_present() {
            } else if !entry.is_exclusive() {
                sharing.shared += page_size;
            } else if before.exists() {
                sharing.unshared += page_size;
                unshared.add(start..start + page_size);
            } else {
                sharing.new += page_size;
            }
        })?;
    }
    Ok((sharing, unshared))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_pages_and_reads_them_back() {
        let mut pages = UnsharedPages::default();
        for start in [0x7f00_0000_0000, 0x7f00_0000_1000, 0x7f00_0000_8000] {
            pages.add(start..start + 0x1000);
        }
        let json = pages.to_json(0x1000).unwrap();
        assert_eq!(json, r#"{"page_size":4096,"turns":[34091302912,2,6,1]}"#);
        let read = UnsharedPages::from_json(serde_json::from_str(&json).unwrap()).unwrap();
        assert_eq!(read, pages);
        let on = |address| read.contains(address);
        assert!(on(0x7f00_0000_0000) && on(0x7f00_0000_1fff) && on(0x7f00_0000_8fff));
        assert!(!on(0x7eff_ffff_ffff) && !on(0x7f00_0000_2000) && !on(0x7f00_0000_9000) && !on(0));
    }

    #[test]
    fn refuses_what_was_not_written_by_it() {
        let read = |json: &str| UnsharedPages::from_json(serde_json::from_str(json).unwrap());
        assert_eq!(read(r#"{"page_size":4096}"#), None);
        assert_eq!(read("[1]"), None);
        let huge = format!(r#"{{"page_size":4096,"turns":[{},1]}}"#, u64::MAX);
        assert_eq!(read(&huge), None);
        let odd = read(r#"{"page_size":4096,"turns":[1,1,5]}"#).unwrap();
        assert!(odd.contains(4096) && !odd.contains(8192));
    }

    #[test]
    fn a_process_shares_nothing_with_itself() {
        let pid = std::process::id();
        let block = vec![1_u8; 40 * 4096];
        let start = (block.as_ptr() as u64).next_multiple_of(4096);
        let range = start..start + 32 * 4096;
        let Ok((sharing, pages)) = compare(pid, pid, 4096, std::slice::from_ref(&range)) else {
            return;
        };
        assert_eq!(sharing.unshared, range.end - range.start);
        assert_eq!((sharing.shared, sharing.new), (0, 0));
        assert!(pages.contains(range.start) && !pages.contains(range.end));
        // The test runner is another program.
        assert_eq!(forked_from(pid), None);
        std::hint::black_box(&block);
    }
}

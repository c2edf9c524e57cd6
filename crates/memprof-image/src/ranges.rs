//! Ranges of addresses.

use std::ops::Range;

/// The ranges in order of address, with adjacent and overlapping ones merged.
#[must_use]
pub fn sorted(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    let mut all: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match all.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => all.push(range),
        }
    }
    all
}

/// The ranges minus others. Both are sorted.
#[must_use]
pub fn without(ranges: &[Range<u64>], others: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut left = Vec::new();
    let mut first = 0;
    for range in ranges {
        let mut start = range.start;
        first += others[first..].partition_point(|other| other.end <= range.start);
        for other in others[first..].iter().take_while(|other| other.start < range.end) {
            if start < other.start {
                left.push(start..other.start);
            }
            start = start.max(other.end);
        }
        if start < range.end {
            left.push(start..range.end);
        }
    }
    left
}

/// The range that contains an address. The ranges are sorted.
#[must_use]
pub fn containing(ranges: &[Range<u64>], address: u64) -> Option<usize> {
    let after = ranges.partition_point(|range| range.start <= address);
    let number = after.checked_sub(1)?;
    (address < ranges[number].end).then_some(number)
}

//! `/proc/PID/pagemap`: which pages of a range are resident.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

const ENTRY: u64 = 8;
const CHUNK: usize = 64 * 1024;

/// A pagemap entry: the state of a page.
#[derive(Clone, Copy, Debug, Default)]
pub struct Entry(u64);

impl Entry {
    const PRESENT: u64 = 1 << 63;
    const SWAPPED: u64 = 1 << 62;
    /// Since Linux 4.2.
    const EXCLUSIVE: u64 = 1 << 56;

    /// Whether it is in RAM.
    pub fn is_present(self) -> bool {
        self.0 & Entry::PRESENT != 0
    }

    /// Whether it is in RAM or swapped out.
    pub fn exists(self) -> bool {
        self.0 & (Entry::PRESENT | Entry::SWAPPED) != 0
    }

    /// Whether no other process maps it.
    pub fn is_exclusive(self) -> bool {
        self.0 & Entry::EXCLUSIVE != 0
    }
}

pub struct Pagemap {
    file: File,
    page_size: u64,
}

impl Pagemap {
    pub fn open(directory: &str, page_size: u64) -> io::Result<Pagemap> {
        let file = File::open(format!("{directory}/pagemap"))?;
        Ok(Pagemap { file, page_size })
    }

    /// Resident bytes of the range. Both ends are page-aligned.
    pub fn resident(&self, range: &Range<u64>) -> io::Result<u64> {
        let mut pages = 0;
        self.each(range, |entry| pages += u64::from(entry.is_present()))?;
        Ok(pages * self.page_size)
    }

    /// Calls `visit` with each page of the range, in order.
    pub fn each(&self, range: &Range<u64>, mut visit: impl FnMut(Entry)) -> io::Result<()> {
        let (mut at, last) = (range.start / self.page_size, range.end / self.page_size);
        let mut buffer = vec![0_u8; CHUNK.min(last.saturating_sub(at) as usize * ENTRY as usize)];
        while at < last {
            let wanted = usize::try_from((last - at) * ENTRY).map_or(CHUNK, |rest| rest.min(CHUNK));
            self.file.read_exact_at(&mut buffer[..wanted], at * ENTRY)?;
            for entry in buffer[..wanted].chunks_exact(ENTRY as usize) {
                visit(Entry(u64::from_ne_bytes(entry.try_into().unwrap_or_default())));
            }
            at += wanted as u64 / ENTRY;
        }
        Ok(())
    }
}

/// The parts of a range covered by sorted ranges without overlap.
pub fn overlaps<'a>(
    sorted: &'a [Range<u64>],
    of: &'a Range<u64>,
) -> impl Iterator<Item = Range<u64>> + 'a {
    let first = sorted.partition_point(|range| range.end <= of.start);
    let there = sorted[first..].iter().take_while(|range| range.start < of.end);
    there.map(|range| range.start.max(of.start)..range.end.min(of.end))
}

/// Sorts ranges, and merges those that touch.
pub fn merged(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_and_cuts_ranges() {
        let sorted = merged(vec![30..40, 0..10, 10..20, 15..18]);
        assert_eq!(sorted, [0..20, 30..40]);
        let cut: Vec<_> = overlaps(&sorted, &(5..35)).collect();
        assert_eq!(cut, [5..20, 30..35]);
        assert_eq!(overlaps(&sorted, &(20..30)).count(), 0);
    }

    #[test]
    fn counts_the_pages_that_were_written() {
        let pages = 4 * CHUNK / ENTRY as usize;
        // Zeroed pages come from the kernel untouched; half of them are written to.
        let mut block = vec![0_u8; pages * 4096];
        let start = (block.as_ptr() as u64).next_multiple_of(4096);
        let Ok(pagemap) = Pagemap::open("/proc/self", 4096) else {
            return;
        };
        let (half, end) = (pages / 2 * 4096, (pages - 1) * 4096);
        for page in block[..half].chunks_mut(4096) {
            page[0] = 1;
        }
        let resident = pagemap.resident(&(start..start + end as u64)).unwrap();
        assert!(resident >= half as u64 - 4096, "{resident}");
        // Huge pages may be mapped at once.
        assert!(resident <= half as u64 + (2 << 20), "{resident}");
        std::hint::black_box(&mut block);
    }
}

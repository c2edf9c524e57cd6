//! Strings, compared by their texts.

use std::hash::BuildHasher;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::super::{Error, Remark, Selection};
use memprof_dump::record::Kind;
use memprof_heap::graph::{PART, in_parts, piece_of, share};
use memprof_heap::{Heap, Known, NONE, Sizes, TextReader};

/// Strings that are equal.
#[derive(Clone, Copy, Default)]
pub(super) struct Equal {
    pub count: u64,
    pub size: u64,
    /// Memsize of the largest one.
    largest: u64,
    /// The one with the lowest address.
    pub first: u32,
}

impl Equal {
    fn add(&mut self, id: u32, size: u64) {
        self.first = if self.count == 0 { id } else { self.first.min(id) };
        self.count += 1;
        self.size = self.size.saturating_add(size);
        self.largest = self.largest.max(size);
    }

    /// Bytes freed if only the largest one remained.
    pub fn wasted(&self) -> u64 {
        self.size - self.largest
    }
}

/// A possibly duplicate string: a number for its text in two halves, and the object.
#[derive(Clone, Copy)]
pub(super) struct Entry([u32; 3]);

impl Entry {
    fn new(key: u64, id: u32) -> Entry {
        Entry([(key >> 32) as u32, key as u32, id])
    }

    fn key(&self) -> u64 {
        (u64::from(self.0[0]) << 32) | u64::from(self.0[1])
    }

    fn id(&self) -> u32 {
        self.0[2]
    }
}

/// The examined strings.
#[derive(Default)]
pub(super) struct Found {
    /// Possible duplicates, part by part.
    strings: Vec<Vec<Entry>>,
    pub count: u64,
    pub size: u64,
    pub unknown_count: u64,
    pub unknown_size: u64,
    marked: bool,
}

impl Found {
    pub fn of(heap: &Heap, selection: &Selection<'_>) -> Result<Found, Error> {
        let groups = heap.group_numbers()?;
        let is_string: Vec<bool> =
            heap.groups().iter().map(|group| group.kind == Kind::STRING).collect();
        let string = |id: u32| {
            groups
                .get(id as usize)
                .is_some_and(|&group| is_string.get(group as usize) == Some(&true))
        };
        let places = heap.text_places()?;
        let memsizes = heap.memsizes()?;
        let parts = in_parts(heap.len() as usize, PART, Looked::default, |looked, part| {
            let (found, all) = looked;
            let ids = part.start as u32..part.end as u32;
            let mut stored = Vec::new();
            for id in ids.filter(|&id| string(id) && selection.contains(id)) {
                let size = memsizes.get(id);
                found.count += 1;
                found.size = found.size.saturating_add(size);
                match places.get(id as usize) {
                    Some(&place) if place != NONE => stored.push((place, id)),
                    _ => found.leave_out(size),
                }
            }
            all.push((part.start, stored));
        });
        let mut found = Found::default();
        let mut stored: Vec<(usize, Vec<(u32, u32)>)> = Vec::new();
        for (part, places) in parts {
            found.merge(&part);
            stored.extend(places);
        }
        stored.sort_unstable_by_key(|(start, _)| *start);
        let stored: Vec<Vec<(u32, u32)>> = stored.into_iter().map(|(_, part)| part).collect();
        let stored = in_order(stored.concat());
        if let Some(&(place, _)) = stored.first() {
            let known = heap.texts().reader().get(place)?.known;
            found.marked = matches!(known, Known::Mark(_));
        }
        found.read(heap, &stored)?;
        let repeated = Repeated::of(&found.strings);
        let parts = found.strings.iter_mut();
        share(
            parts.len(),
            parts,
            || (),
            |(), part| {
                part.retain(|string| repeated.contains(string.key()));
            },
        );
        Ok(found)
    }

    /// Reads texts in several threads.
    fn read(&mut self, heap: &Heap, stored: &[(u32, u32)]) -> io::Result<()> {
        let memsizes = heap.memsizes()?;
        let start = || (heap.texts().reader(), io::Result::Ok(Found::default()));
        let read = in_parts(stored.len(), PART, start, |(reader, found), part| {
            let Ok(known) = found else {
                return;
            };
            if let Err(error) = known.read_part(&stored[part], reader, memsizes) {
                *found = Err(error);
            }
        });
        for (_, found) in read {
            let found = found?;
            self.merge(&found);
            self.strings.extend(found.strings);
        }
        Ok(())
    }

    fn read_part(
        &mut self,
        stored: &[(u32, u32)],
        reader: &mut TextReader<'_>,
        memsizes: &Sizes,
    ) -> io::Result<()> {
        let mut strings = Vec::with_capacity(stored.len());
        for &(place, id) in stored {
            match reader.identity(place)? {
                Some(text) => strings.push(Entry::new(FxBuildHasher.hash_one(text), id)),
                None => self.leave_out(memsizes.get(id)),
            }
        }
        self.strings.push(strings);
        Ok(())
    }

    /// Adds the sums of others.
    fn merge(&mut self, other: &Found) {
        self.count += other.count;
        self.size = self.size.saturating_add(other.size);
        self.unknown_count += other.unknown_count;
        self.unknown_size = self.unknown_size.saturating_add(other.unknown_size);
    }

    fn leave_out(&mut self, size: u64) {
        self.unknown_count += 1;
        self.unknown_size = self.unknown_size.saturating_add(size);
    }

    pub fn warnings(&self) -> Vec<Remark> {
        let count = self.unknown_count;
        let unknown = match count {
            0 => None,
            _ if count == self.count => Some(Remark::NoContents),
            _ => Some(Remark::PartialTexts { count }),
        };
        unknown.into_iter().chain(self.marked.then_some(Remark::HashedTexts)).collect()
    }
}

/// Sums, and strings with places, part by part.
type Looked = (Found, Vec<(usize, Vec<(u32, u32)>)>);

/// Finds buckets with more than one key.
struct Repeated {
    once: Vec<AtomicU64>,
    again: Vec<AtomicU64>,
}

impl Repeated {
    fn of(strings: &[Vec<Entry>]) -> Repeated {
        let keys: usize = strings.iter().map(Vec::len).sum();
        let words = keys.div_ceil(8).clamp(1, 1 << 25);
        let empty = || (0..words).map(|_| AtomicU64::new(0)).collect();
        let repeated = Repeated { once: empty(), again: empty() };
        share(
            strings.len(),
            strings.iter(),
            || (),
            |(), part| {
                for string in part {
                    let (word, bit) = repeated.bucket(string.key());
                    if repeated.once[word].fetch_or(bit, Ordering::Relaxed) & bit != 0 {
                        repeated.again[word].fetch_or(bit, Ordering::Relaxed);
                    }
                }
            },
        );
        repeated
    }

    fn contains(&self, key: u64) -> bool {
        let (word, bit) = self.bucket(key);
        self.again[word].load(Ordering::Relaxed) & bit != 0
    }

    /// The word and the bit for a key. The upper bits of the product are a number below that of the buckets.
    fn bucket(&self, key: u64) -> (usize, u64) {
        let buckets = self.once.len() as u128 * 64;
        let bucket = ((u128::from(key) * buckets) >> 64) as usize;
        (bucket / 64, 1 << (bucket % 64))
    }
}

/// Sorts places, with their objects. Both ascend within a heap page, and a dump lists a page from beginning to end, so only
/// the pages are sorted, unless they overlap.
fn in_order(stored: Vec<(u32, u32)>) -> Vec<(u32, u32)> {
    if stored.is_sorted() {
        return stored;
    }
    let mut runs: Vec<&[(u32, u32)]> = stored.chunk_by(|one, next| one.0 <= next.0).collect();
    runs.sort_unstable_by_key(|run| run[0]);
    let mut sorted = runs.concat();
    if !sorted.is_sorted() {
        // Overlapping pieces are only read in several passes. This sort makes use of runs.
        let piece = piece_of(sorted.len());
        let pieces = sorted.chunks_mut(piece);
        share(pieces.len(), pieces, || (), |(), piece| piece.sort());
    }
    sorted
}

impl Found {
    /// Counts equal strings: returns each text's sums, and the number of its text for each string.
    pub fn equals(&mut self, memsizes: &Sizes) -> (Vec<Equal>, Vec<(u32, u32)>) {
        let strings = std::mem::take(&mut self.strings);
        let mut texts: Vec<Equal> = Vec::new();
        let mut numbers: FxHashMap<u64, u32> = FxHashMap::default();
        let numbered = strings.into_iter().flatten().map(|string| {
            let number = *numbers.entry(string.key()).or_insert_with(|| {
                texts.push(Equal::default());
                texts.len() as u32 - 1
            });
            texts[number as usize].add(string.id(), memsizes.get(string.id()));
            (number, string.id())
        });
        let numbered = numbered.collect();
        (texts, numbered)
    }
}

//! Numbers for shared properties of objects, assigned in order of first occurrence.

use std::hash::Hash;

use rustc_hash::FxHashMap;

use memprof_heap::NONE;
use memprof_heap::graph::{piece_of, share};

/// Keys below this use a table, if a key is a number or has one.
const SMALL: usize = 1 << 16;

/// Keys and their numbers.
pub(in super::super) struct Numbering<K> {
    /// By number.
    pub keys: Vec<K>,
    numbers: FxHashMap<K, u32>,
    last: Option<(K, u32)>,
    /// Numbers of keys that are small numbers.
    small: Vec<u32>,
}

impl<K> Default for Numbering<K> {
    fn default() -> Numbering<K> {
        Numbering { keys: Vec::new(), numbers: FxHashMap::default(), last: None, small: Vec::new() }
    }
}

impl<K: Copy + Eq + Hash> Numbering<K> {
    /// The number of a key.
    pub fn number(&mut self, key: K) -> u32 {
        if let Some((last, number)) = self.last {
            if last == key {
                return number;
            }
        }
        let next = self.keys.len() as u32;
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.keys.push(key);
        }
        self.last = Some((key, number));
        number
    }

    /// The same, using the table if possible: few keys of a heap are large numbers.
    #[inline]
    fn number_at(&mut self, key: K, small: Option<usize>) -> u32 {
        let Some(small) = small.filter(|&small| small < SMALL) else {
            return self.number(key);
        };
        match self.small.get(small) {
            Some(&number) if number != NONE => number,
            _ => {
                let number = self.number(key);
                if small >= self.small.len() {
                    self.small.resize(small + 1, NONE);
                }
                self.small[small] = number;
                number
            }
        }
    }
}

/// The number of each object's key, [`NONE`] for objects without one, and the keys by number. `small` returns a unique
/// number of a key, if it has one: small ones are found faster. Works in several threads.
pub(in super::super) fn numbered<K: Copy + Eq + Hash + Send + Sync>(
    length: usize,
    key: impl Fn(u32) -> Option<K> + Sync,
    small: impl Fn(K) -> Option<usize> + Sync,
) -> (Vec<u32>, Numbering<K>) {
    let mut of = vec![NONE; length];
    let piece = piece_of(length);
    let pieces = of.chunks_mut(piece).zip((0..).step_by(piece)).zip(0_usize..);
    let found = share(length.div_ceil(piece), pieces, Vec::new, |found, item| {
        let ((piece, start), index) = item;
        let mut numbering = Numbering::default();
        for (place, id) in piece.iter_mut().zip(start..) {
            if let Some(key) = key(id) {
                *place = numbering.number_at(key, small(key));
            }
        }
        found.push((index, numbering.keys));
    });
    let mut found: Vec<(usize, Vec<K>)> = found.into_iter().flatten().collect();
    found.sort_unstable_by_key(|(index, _)| *index);
    // Each piece has its own numbers: merged in order, they equal those of a single pass.
    let mut all = Numbering::default();
    let tables: Vec<Vec<u32>> =
        found.iter().map(|(_, keys)| keys.iter().map(|&key| all.number(key)).collect()).collect();
    let pieces = of.chunks_mut(piece).zip(&tables).skip(1);
    share(
        tables.len(),
        pieces,
        || (),
        |(), (piece, table)| {
            for place in piece.iter_mut().filter(|place| **place != NONE) {
                *place = table[*place as usize];
            }
        },
    );
    (of, all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use memprof_heap::graph::PART;

    #[test]
    fn counts_as_one_who_goes_through_all() {
        let key =
            |id: u32| (id % 7 != 0).then(|| u64::from(id.wrapping_mul(2_654_435_761) >> 12) * 3);
        for length in [0, 1, 100, 3 * PART + 5] {
            let (of, all) = numbered(length, key, |key| usize::try_from(key).ok());
            let mut one = Numbering::default();
            let slowly: Vec<u32> =
                (0..length as u32).map(|id| key(id).map_or(NONE, |key| one.number(key))).collect();
            assert_eq!(of, slowly);
            assert_eq!(all.keys, one.keys);
        }
    }
}

//! A column of sizes: four bytes each, as sizes beyond 4 GiB are rare.

use super::NONE;

/// Sizes in bytes by object number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// [`NONE`] if the size is in `large`.
    pub(super) small: Vec<u32>,
    /// Number and size, ascending.
    pub(super) large: Vec<(u32, u64)>,
}

impl Sizes {
    /// Loads stored sizes: the large ones are pairs of number and size.
    pub(super) fn new(small: Vec<u32>, large: &[u64]) -> Sizes {
        let large = large.chunks_exact(2).map(|pair| (pair[0] as u32, pair[1]));
        Sizes { small, large: large.collect() }
    }

    /// The large sizes as stored.
    pub(super) fn large_words(&self) -> Vec<u64> {
        self.large.iter().flat_map(|&(id, size)| [u64::from(id), size]).collect()
    }

    /// Appends a size.
    #[inline]
    pub(super) fn push(&mut self, size: u64) {
        if size < u64::from(NONE) {
            self.small.push(size as u32);
        } else {
            self.large.push((self.small.len() as u32, size));
            self.small.push(NONE);
        }
    }

    /// The size of an object; 0 if the number is out of range.
    #[inline]
    pub fn get(&self, id: u32) -> u64 {
        match self.small.get(id as usize) {
            Some(&NONE) => self.large(id),
            Some(&size) => u64::from(size),
            None => 0,
        }
    }

    #[cold]
    fn large(&self, id: u32) -> u64 {
        let found = self.large.binary_search_by_key(&id, |&(id, _)| id);
        found.map_or(0, |index| self.large[index].1)
    }

    /// Number of sizes.
    pub fn len(&self) -> usize {
        self.small.len()
    }

    /// Whether it has no sizes.
    pub fn is_empty(&self) -> bool {
        self.small.is_empty()
    }

    /// The sum of all sizes.
    pub fn sum(&self) -> u64 {
        let small = self.small.iter().filter(|&&size| size != NONE);
        let small = small.map(|&size| u64::from(size)).sum::<u64>();
        self.large.iter().fold(small, |sum, &(_, size)| sum.saturating_add(size))
    }
}

impl FromIterator<u64> for Sizes {
    fn from_iter<I: IntoIterator<Item = u64>>(sizes: I) -> Sizes {
        let mut column = Sizes::default();
        sizes.into_iter().for_each(|size| column.push(size));
        column
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_sizes_of_any_magnitude() {
        let all = [0, 40, u64::from(NONE) - 1, u64::from(NONE), 1 << 40, u64::MAX, 7];
        let sizes: Sizes = all.into_iter().collect();
        let back: Vec<u64> = (0..all.len() as u32).map(|id| sizes.get(id)).collect();
        assert_eq!(back, all);
        assert_eq!((sizes.get(99), sizes.sum()), (0, u64::MAX));
    }
}

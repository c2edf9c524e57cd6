use std::ops::Range;

use super::parts::{PART, in_parts};

/// A set of nodes, a bit each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BitSet {
    words: Vec<u64>,
    length: usize,
}

impl BitSet {
    /// The empty set of numbers below `length`.
    pub fn new(length: usize) -> BitSet {
        BitSet {
            words: vec![0; length.div_ceil(64)],
            length,
        }
    }

    /// The set of these numbers; those that are not below `length` are left out.
    pub fn of(length: usize, members: impl IntoIterator<Item = u32>) -> BitSet {
        let mut set = BitSet::new(length);
        for member in members {
            set.insert(member);
        }
        set
    }

    /// The set of the numbers that a test chooses. Several threads do it, each with a state of its own, which are
    /// returned.
    pub fn filled<S: Send>(
        length: usize,
        state: impl Fn() -> S + Sync,
        test: impl Fn(&mut S, u32) -> bool + Sync,
    ) -> (BitSet, Vec<S>) {
        let mut set = BitSet::new(length);
        let start = || (state(), Vec::new());
        let states = in_parts(length, PART, start, |(state, filled), part| {
            let words = part.clone().step_by(64).map(|first| {
                bits(first..(first + 64).min(part.end), |number| {
                    test(state, number)
                })
            });
            filled.push((part.start / 64, words.collect::<Vec<u64>>()));
        });
        let states = states.into_iter().map(|(state, filled)| {
            for (first, words) in filled {
                set.words[first..first + words.len()].copy_from_slice(&words);
            }
            state
        });
        let states = states.collect();
        (set, states)
    }

    /// What the members are below.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Adds a number; whether it was not there before. One that is not below `length` is never added.
    #[inline]
    pub fn insert(&mut self, number: u32) -> bool {
        if number as usize >= self.length {
            return false;
        }
        let word = &mut self.words[number as usize / 64];
        let bit = 1 << (number % 64);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Takes a number out; whether it was there.
    #[inline]
    pub fn remove(&mut self, number: u32) -> bool {
        let Some(word) = self.words.get_mut(number as usize / 64) else {
            return false;
        };
        let bit = 1 << (number % 64);
        let there = *word & bit != 0;
        *word &= !bit;
        there
    }

    /// Whether a number is in the set.
    #[inline]
    pub fn contains(&self, number: u32) -> bool {
        let word = self.words.get(number as usize / 64);
        word.is_some_and(|word| word >> (number % 64) & 1 != 0)
    }

    /// How many members there are.
    pub fn count(&self) -> usize {
        let ones = self.words.iter().map(|word| word.count_ones() as usize);
        ones.sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Takes out all members.
    pub fn clear(&mut self) {
        self.words.fill(0);
    }

    /// The members, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let words = self.words.iter().zip(0u32..);
        words.flat_map(|(&word, index)| ones(word, index))
    }

    /// The sum of the members' sizes, [`u64::MAX`] if it is more than that.
    pub fn sum(&self, size: impl Fn(u32) -> u64 + Sync) -> u64 {
        let sums = in_parts(self.words.len(), PART / 64, u64::default, |sum, part| {
            for (&word, index) in self.words[part.clone()].iter().zip(part.start as u32..) {
                for member in ones(word, index) {
                    *sum = sum.saturating_add(size(member));
                }
            }
        });
        sums.into_iter().fold(0, u64::saturating_add)
    }

    /// Takes out the members of another set.
    pub fn subtract(&mut self, other: &BitSet) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= !other;
        }
    }

    /// Adds the members of another set, as far as they are below `length`.
    pub fn unite(&mut self, other: &BitSet) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word |= other;
        }
        self.trim();
    }

    /// Keeps only the members that another set has, too.
    pub fn intersect(&mut self, other: &BitSet) {
        let rest = self.words.len().min(other.words.len());
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= other;
        }
        self.words[rest..].fill(0);
    }

    /// No bit is set behind the last number.
    fn trim(&mut self) {
        let used = self.length % 64;
        if let (Some(last), 1..) = (self.words.last_mut(), used) {
            *last &= (1 << used) - 1;
        }
    }
}

/// The numbers whose bits are set in a word.
#[inline]
fn ones(mut word: u64, index: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let low = word.trailing_zeros();
        // Takes the lowest bit away.
        word &= word.checked_sub(1)?;
        Some(index * 64 + low)
    })
}

/// At most 64 numbers as bits, the first one as the lowest.
fn bits(numbers: Range<usize>, mut test: impl FnMut(u32) -> bool) -> u64 {
    numbers.zip(0..).fold(0, |word, (number, bit)| {
        word | u64::from(test(number as u32)) << bit
    })
}

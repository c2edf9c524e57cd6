use std::ops::Range;

use super::parts::{PART, in_parts};

/// A set of nodes, one bit each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BitSet {
    words: Vec<u64>,
    length: usize,
}

impl BitSet {
    /// The empty set of numbers below `length`.
    pub fn new(length: usize) -> BitSet {
        BitSet { words: vec![0; length.div_ceil(64)], length }
    }

    /// The set of these numbers; skips numbers not below `length`.
    pub fn of(length: usize, members: impl IntoIterator<Item = u32>) -> BitSet {
        let mut set = BitSet::new(length);
        for member in members {
            set.insert(member);
        }
        set
    }

    /// The set of the numbers that pass a test. Runs in several threads, each with a state of its own; returns the states.
    pub fn filled<S: Send>(
        length: usize,
        state: impl Fn() -> S + Sync,
        test: impl Fn(&mut S, u32) -> bool + Sync,
    ) -> (BitSet, Vec<S>) {
        let mut set = BitSet::new(length);
        let start = || (state(), Vec::new());
        let states = in_parts(length, PART, start, |(state, filled), part| {
            let words = part
                .clone()
                .step_by(64)
                .map(|first| bits(first..(first + 64).min(part.end), |number| test(state, number)));
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

    /// The exclusive upper bound of the members.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Adds a number if it is below `length`; returns whether it is new.
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

    /// Removes a number; returns whether it was a member.
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

    /// The number of members.
    pub fn count(&self) -> usize {
        let ones = self.words.iter().map(|word| word.count_ones() as usize);
        ones.sum()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Removes all members.
    pub fn clear(&mut self) {
        self.words.fill(0);
    }

    /// The members, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let words = self.words.iter().zip(0u32..);
        words.flat_map(|(&word, index)| ones(word, index))
    }

    /// The sum of the members' sizes, saturating at [`u64::MAX`].
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

    /// Removes the members of another set.
    pub fn subtract(&mut self, other: &BitSet) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= !other;
        }
    }

    /// Adds the members of another set that are below `length`.
    pub fn unite(&mut self, other: &BitSet) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word |= other;
        }
        self.trim();
    }

    /// Removes the members that are not in another set.
    pub fn intersect(&mut self, other: &BitSet) {
        let rest = self.words.len().min(other.words.len());
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= other;
        }
        self.words[rest..].fill(0);
    }

    /// Clears the bits beyond `length`.
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
        // Clears the lowest bit.
        word &= word.checked_sub(1)?;
        Some(index * 64 + low)
    })
}

/// At most 64 numbers as bits, the first one in the lowest bit.
fn bits(numbers: Range<usize>, mut test: impl FnMut(u32) -> bool) -> u64 {
    numbers.zip(0..).fold(0, |word, (number, bit)| word | u64::from(test(number as u32)) << bit)
}

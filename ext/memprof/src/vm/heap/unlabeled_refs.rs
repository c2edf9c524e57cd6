//! References of an object that have no label yet.

use rb_sys::VALUE;
use rustc_hash::FxHashMap;

/// Maximum number of references for a linear search.
const FEW: usize = 48;

/// Unlabeled references: a bit each if there are few, or else their number by address.
#[derive(Default)]
pub struct UnlabeledRefs {
    bits: u64,
    /// Likely position of the next one: labels often come in the order of references.
    next: usize,
    counts: FxHashMap<VALUE, u32>,
}

impl UnlabeledRefs {
    /// All of `references` but the class.
    pub fn begin(&mut self, references: &[VALUE], class: VALUE) {
        self.next = 0;
        if references.len() <= FEW {
            self.bits = 0;
            for (index, reference) in references.iter().enumerate() {
                self.bits |= u64::from(*reference != class) << index;
            }
            return;
        }
        self.counts.clear();
        for reference in references.iter().filter(|reference| **reference != class) {
            *self.counts.entry(*reference).or_default() += 1;
        }
    }

    /// Removes one; false if it is not there.
    pub fn take(&mut self, references: &[VALUE], wanted: VALUE) -> bool {
        if references.len() > FEW {
            return match self.counts.get_mut(&wanted) {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    true
                }
                _ => false,
            };
        }
        let length = references.len();
        let after = (self.next..length).chain(0..self.next.min(length));
        for index in after {
            if references[index] == wanted && self.bits & 1 << index != 0 {
                self.bits &= !(1 << index);
                self.next = index + 1;
                return true;
            }
        }
        false
    }

    /// True if the reference at `index` has no label. Call it in order, once for each.
    pub fn has(&mut self, references: &[VALUE], index: usize) -> bool {
        if references.len() > FEW {
            return references.get(index).is_some_and(|wanted| self.take(references, *wanted));
        }
        self.bits & 1 << index != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_each_as_often_as_it_is_there() {
        for padding in [0, 2 * FEW as u64] {
            let mut references: Vec<VALUE> = vec![8, 16, 8, 24];
            references.extend((0..padding).map(|index| 1000 + index * 8));
            let mut unlabeled = UnlabeledRefs::default();
            unlabeled.begin(&references, 24);
            assert!(unlabeled.take(&references, 8));
            assert!(unlabeled.take(&references, 8));
            assert!(!unlabeled.take(&references, 8));
            assert!(!unlabeled.take(&references, 24));
            assert!(!unlabeled.take(&references, 32));
            let rest: Vec<VALUE> = (0..references.len())
                .filter(|index| unlabeled.has(&references, *index))
                .map(|index| references[index])
                .collect();
            assert_eq!(rest[0], 16);
            assert_eq!(rest.len() as u64, 1 + padding);
        }
    }
}

//! Sums of rows, added up in several threads.

use std::ops::Range;

use memprof_heap::graph::in_parts;

/// Sums that are computed part by part.
pub(in super::super) trait Merge: Clone + Default + Send {
    /// Adds those of another part.
    fn merge(&mut self, other: &Self);
}

/// The sums of `rows` rows. `add` adds some objects, of all below `objects`, to the sums of their rows. A thread takes `part`
/// objects at a time.
pub(in super::super) fn summed<S: Merge>(
    rows: usize,
    (objects, part): (usize, usize),
    add: impl Fn(&mut [S], Range<usize>) + Sync,
) -> Vec<S> {
    let start = || vec![S::default(); rows];
    let parts = in_parts(objects, part, start, |sums: &mut Vec<S>, part| add(sums, part));
    let mut parts = parts.into_iter();
    let mut sums = parts.next().unwrap_or_else(start);
    for part in parts {
        merge(&mut sums, &part);
    }
    sums
}

/// Adds the sums of others to those of the same rows.
pub(in super::super) fn merge<S: Merge>(sums: &mut [S], others: &[S]) {
    for (sum, other) in sums.iter_mut().zip(others) {
        sum.merge(other);
    }
}

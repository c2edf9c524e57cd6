//! Sorts the rows of tables. The standard library's sort is compiled for each type and order, at 6 KB of the library each.
//! One function sorts indices for all types here; it is not meant for columns of millions.

use std::cmp::Ordering;

/// Like `slice::sort_by`, which is stable.
pub(crate) fn sort_by<T>(rows: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    sort(&mut order, &mut |one, other| compare(&rows[one], &rows[other]));
    arrange(&mut order, &mut |one, other| rows.swap(one, other));
}

/// Like `slice::sort_by_key`, which is stable.
pub(crate) fn sort_by_key<T, K: Ord>(rows: &mut [T], mut key: impl FnMut(&T) -> K) {
    sort_by(rows, |one, other| key(one).cmp(&key(other)));
}

#[inline(never)]
fn sort(order: &mut [usize], compare: &mut dyn FnMut(usize, usize) -> Ordering) {
    order.sort_by(|&one, &other| compare(one, other));
}

/// Moves the row `order[place]` to each place, by swapping rows.
#[inline(never)]
fn arrange(order: &mut [usize], swap: &mut dyn FnMut(usize, usize)) {
    for first in 0..order.len() {
        let mut place = first;
        loop {
            let from = std::mem::replace(&mut order[place], place);
            if from == first {
                break;
            }
            swap(place, from);
            place = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_as_the_standard_library_does() {
        let mut state = 1_u32;
        for length in 0..200_usize {
            let mut rows: Vec<(u32, String)> = (0..length)
                .map(|index| {
                    state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
                    ((state >> 16) % 40, index.to_string())
                })
                .collect();
            let mut expected = rows.clone();
            expected.sort_by_key(|row| std::cmp::Reverse(row.0));
            sort_by_key(&mut rows, |row| std::cmp::Reverse(row.0));
            assert_eq!(rows, expected);
        }
    }
}

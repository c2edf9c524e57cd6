//! The first rows of an order, chosen while the rows go by.

use std::cmp::Ordering;

use super::{Order, Page, Rows};

/// Maximum number of measures that are compared.
const MEASURES: usize = 3;

/// A row with its measures: unknown ones are 0, known ones 1 more.
#[derive(Clone, Copy)]
struct Ranked {
    rank: [u64; MEASURES],
    row: u32,
}

/// Collects rows, and has those that come first in an order: of millions of objects, at most twice as many as are asked for are
/// in memory, or twice [`SOME`].
pub(in super::super) struct First<'r, R> {
    rows: &'r R,
    order: Order,
    end: usize,
    found: Vec<Ranked>,
    /// The last of the first rows, once there are enough: rows after it are not among them.
    last: Option<Ranked>,
    count: usize,
}

impl<'r, R: Rows> First<'r, R> {
    pub(super) fn new(rows: &'r R, order: Order, end: usize) -> First<'r, R> {
        First { rows, order, end, found: Vec::new(), last: None, count: 0 }
    }

    /// Adds rows.
    pub fn extend(&mut self, rows: impl IntoIterator<Item = u32>) {
        for row in rows {
            if self.rows.is_listed(row) {
                self.offer(row);
            }
        }
    }

    #[inline]
    fn offer(&mut self, row: u32) {
        self.count += 1;
        let mut found = Ranked { rank: [0; MEASURES], row };
        let mut measures = self.order.iter().zip(&mut found.rank);
        if let Some((&measure, rank)) = measures.next() {
            *rank = ranked(self.rows.measure(row, measure));
            if self.last.is_some_and(|last| *rank < last.rank[0]) {
                return;
            }
        }
        for (&measure, rank) in measures {
            *rank = ranked(self.rows.measure(row, measure));
        }
        let rows = self.rows;
        let mut keys = |one, other| rows.compare_keys(one, other);
        if self.last.is_some_and(|last| compare(&found, &last, &mut keys) != Ordering::Less) {
            return;
        }
        self.found.push(found);
        if self.found.len() / 2 >= self.end.max(SOME) {
            self.shrink();
        }
    }

    /// Adds the rows of another thread.
    pub fn join(&mut self, other: First<'r, R>) {
        self.count += other.count;
        self.found.extend(other.found);
        self.shrink();
    }

    /// Drops the rows after the first ones.
    fn shrink(&mut self) {
        let rows = self.rows;
        if select(&mut self.found, self.end, &mut |one, other| rows.compare_keys(one, other)) {
            self.last = self.found.last().copied();
        }
    }

    /// The first rows after `offset` skipped ones, and how many rows follow.
    pub fn page(mut self, offset: usize) -> Page {
        let rows = self.rows;
        let mut compare = |one, other| rows.compare_keys(one, other);
        select(&mut self.found, self.end, &mut compare);
        sort(&mut self.found, &mut compare);
        let shown = self.found.iter().skip(offset).map(|found| found.row).collect();
        Page { shown, more: self.count.saturating_sub(self.end) }
    }
}

/// So many rows are always few.
const SOME: usize = 512;

/// A measure as part of a rank.
#[inline]
fn ranked(measure: Option<u64>) -> u64 {
    measure.map_or(0, |value| value.saturating_add(1))
}

type Compare<'c> = dyn FnMut(u32, u32) -> Ordering + 'c;

fn compare(one: &Ranked, other: &Ranked, keys: &mut Compare<'_>) -> Ordering {
    other.rank.cmp(&one.rank).then_with(|| keys(one.row, other.row))
}

/// Drops all but the first rows, and puts the last of them at the end; false if there are not more. Like [`sort`] it is
/// compiled once for all lists.
#[inline(never)]
fn select(found: &mut Vec<Ranked>, end: usize, keys: &mut Compare<'_>) -> bool {
    let is_long = end < found.len();
    if end > 0 && is_long {
        found.select_nth_unstable_by(end - 1, |one, other| compare(one, other, keys));
    }
    found.truncate(end);
    is_long
}

#[inline(never)]
fn sort(found: &mut [Ranked], keys: &mut Compare<'_>) {
    found.sort_unstable_by(|one, other| compare(one, other, keys));
}

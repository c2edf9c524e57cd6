//! The engine of all lists: rows, by number, with measures; which come first, which of them are shown, and what they sum up to.
//!
//! A question says what its rows are. The members of a row share a *key*: [`numbered`](numbering::numbered) gives equal keys
//! one number, and [`Groups`](tally::Groups) has the number of each object. Or each object is a row of its own. A row's
//! *measures* are numbers such as its size ([`Rows`]); [`summed`](sums::summed) adds them up in several threads. An *order*
//! is a list of measures ([`Order`]), and a [`List`] in that order chooses the rows of a page.

mod first;
pub(super) mod limit;
pub(super) mod numbering;
pub(super) mod sums;
pub(super) mod tally;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use first::First;
use limit::Limit;

/// A number about a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// Objects.
    Count,
    /// Sum of memsizes.
    Size,
    /// Retained size.
    Retained,
    /// Bytes of redundant objects.
    Wasted,
    /// Bytes of unused capacity.
    Unused,
    /// Elements of a collection, bytes of a text.
    Length,
    /// Classes and modules.
    Classes,
    /// Bytes of new objects.
    New,
    /// Bytes of new objects that are still present later.
    Survived,
}

/// An order of rows: by these measures, the most important one first, the largest value first. Rows with equal measures are in
/// the order of their keys. More than three measures are not compared.
pub(super) type Order = &'static [Measure];

/// The order of keys alone.
pub(super) const BY_KEY: Order = &[];

/// Rows of a list, by number.
pub(super) trait Rows {
    /// A measure of a row; `None` if it is unknown, which comes last.
    fn measure(&self, row: u32, measure: Measure) -> Option<u64>;

    /// Compares the keys of two rows: by default, their numbers.
    fn compare_keys(&self, one: u32, other: u32) -> Ordering {
        one.cmp(&other)
    }

    /// False for rows that are in no list, such as groups without members.
    fn is_listed(&self, _row: u32) -> bool {
        true
    }
}

/// The order of rows with a single measure, whichever it is.
pub(super) const BY_VALUE: Order = &[Measure::Size];

/// Rows whose measures a function returns.
pub(super) struct Measured<F: Fn(u32, Measure) -> Option<u64>>(pub F);

impl<F: Fn(u32, Measure) -> Option<u64>> Rows for Measured<F> {
    fn measure(&self, row: u32, measure: Measure) -> Option<u64> {
        (self.0)(row, measure)
    }
}

/// A measure that may be negative, as a number in the same order.
pub(super) fn signed(value: i64) -> Option<u64> {
    Some(value as u64 ^ (1 << 63))
}

/// The rows of a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    /// In order.
    pub shown: Vec<u32>,
    /// Number of rows that follow.
    pub more: usize,
}

impl Page {
    /// The shown ones of all rows.
    pub fn of<T>(&self, rows: Vec<T>) -> Vec<T> {
        let mut rows: Vec<Option<T>> = rows.into_iter().map(Some).collect();
        let shown = self.shown.iter();
        shown.filter_map(|&row| rows.get_mut(row as usize)?.take()).collect()
    }
}

/// Rows in an order.
pub(super) struct List<'r, R> {
    pub rows: &'r R,
    pub order: Order,
}

impl<'r, R: Rows> List<'r, R> {
    pub fn new(rows: &'r R, order: Order) -> List<'r, R> {
        List { rows, order }
    }

    /// A collector for the rows before `end`.
    pub fn first(&self, end: usize) -> First<'r, R> {
        First::new(self.rows, self.order, end)
    }

    /// A page: of these rows the first ones, after `offset` skipped ones.
    pub fn page<const N: usize>(
        &self,
        among: impl IntoIterator<Item = u32>,
        limit: Limit<N>,
        offset: usize,
    ) -> Page {
        let mut first = self.first(limit.end(offset));
        first.extend(among);
        first.page(offset)
    }

    /// Rows within a row, and how many are not shown: `children` has the rows within each. Rows at `depth` 0 are only counted.
    /// `make` builds a row from its number, the rows within, and how many of these are not shown.
    pub fn nested<T, const N: usize>(
        &self,
        children: &[Vec<u32>],
        above: usize,
        limit: Limit<N>,
        depth: usize,
        make: &impl Fn(u32, Vec<T>, usize) -> T,
    ) -> (Vec<T>, usize) {
        let among = children.get(above).into_iter().flatten().copied();
        let page = self.page(among, if depth == 0 { Limit(0) } else { limit }, 0);
        let rows = page.shown.into_iter().map(|row| {
            let (rows, more) = self.nested(children, row as usize, limit, depth - 1, make);
            make(row, rows, more)
        });
        (rows.collect(), page.more)
    }
}

/// The objects with the largest values, the largest first, with these; equal ones by address. Those without a value come last.
pub(crate) fn largest(
    ids: impl IntoIterator<Item = u32>,
    count: usize,
    value: impl Fn(u32) -> Option<u64>,
) -> Vec<(u32, Option<u64>)> {
    let rows = Measured(|id, _| value(id));
    let mut first = List::new(&rows, BY_VALUE).first(count);
    first.extend(ids);
    first.page(0).shown.into_iter().map(|id| (id, value(id))).collect()
}

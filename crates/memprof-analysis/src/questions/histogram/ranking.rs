//! Sorted groups, as rows.

use std::cmp::Ordering;

use super::super::Limit;
use super::super::list::{BY_KEY, List, Measure, Order, Page, Rows};
use super::super::tally::{Tally, percent};
use super::by::Keys;
use super::{Row, Sort};

impl Sort {
    fn order(self) -> Order {
        match self {
            Sort::Retained => &[Measure::Retained, Measure::Size, Measure::Count],
            Sort::Size => &[Measure::Size, Measure::Count, Measure::Retained],
            Sort::Count => &[Measure::Count, Measure::Size, Measure::Retained],
            Sort::Name => BY_KEY,
        }
    }
}

/// Sorted groups.
#[derive(Clone, Copy)]
pub(super) struct Ranking<'k> {
    pub keys: &'k Keys<'k>,
    pub tallies: &'k [Tally],
    pub sort: Sort,
    pub heap_size: u64,
    pub rooted: bool,
}

/// Groups without objects are not listed.
impl Rows for Ranking<'_> {
    fn measure(&self, group: u32, measure: Measure) -> Option<u64> {
        self.tallies[group as usize].measure(measure)
    }

    fn compare_keys(&self, one: u32, other: u32) -> Ordering {
        self.keys.place(one).cmp(&self.keys.place(other))
    }

    fn is_listed(&self, group: u32) -> bool {
        self.tallies[group as usize].count > 0
    }
}

impl Ranking<'_> {
    fn list(&self) -> List<'_, Self> {
        List::new(self, self.sort.order())
    }

    /// The groups that are shown.
    pub fn page<const N: usize>(
        &self,
        groups: impl IntoIterator<Item = u32>,
        limit: Limit<N>,
        offset: usize,
    ) -> Page {
        self.list().page(groups, limit, offset)
    }

    pub fn row(&self, group: u32) -> Row {
        self.row_with(group, (Vec::new(), 0))
    }

    fn row_with(&self, group: u32, (rows, more): (Vec<Row>, usize)) -> Row {
        let tally = &self.tallies[group as usize];
        let (first_generation, last_generation) = tally.generations();
        Row {
            key: self.keys.key(group),
            count: tally.count,
            size: tally.size,
            retained: self.rooted.then_some(tally.retained),
            percent: self.percent(tally),
            first_generation,
            last_generation,
            r#where: self.keys.filter(group),
            rows,
            more,
        }
    }

    pub fn percent(&self, tally: &Tally) -> f64 {
        let part = if self.sort == Sort::Retained { tally.retained } else { tally.size };
        percent(part, self.heap_size)
    }

    /// A row of a tree, with `depth` levels of groups within.
    pub fn tree(&self, group: u32, children: &[Vec<u32>], limit: Limit<10>, depth: usize) -> Row {
        let make = |group, rows, more| self.row_with(group, (rows, more));
        self.row_with(group, self.list().nested(children, group as usize, limit, depth, &make))
    }
}

//! Sorted groups, as rows.

use std::cmp::Reverse;

use super::super::Limit;
use super::super::limit::sort_first;
use super::super::tally::{Tally, percent};
use super::by::Keys;
use super::{Row, Sort};

/// Sorted groups.
#[derive(Clone, Copy)]
pub(super) struct Ranking<'k> {
    pub keys: &'k Keys<'k>,
    pub tallies: &'k [Tally],
    pub sort: Sort,
    pub heap_size: u64,
    pub rooted: bool,
}

impl Ranking<'_> {
    /// The groups that are shown, and how many follow. Groups without objects do not count.
    pub fn page<const N: usize>(
        &self,
        mut groups: Vec<u32>,
        limit: Limit<N>,
        offset: usize,
    ) -> (Vec<u32>, usize) {
        self.sort(&mut groups, limit.end(offset));
        limit.page(groups, offset)
    }

    /// Sorts the groups before `end`, and drops those without objects.
    fn sort(&self, groups: &mut Vec<u32>, end: usize) {
        let tally = |group: u32| self.tallies[group as usize];
        groups.retain(|&group| tally(group).count > 0);
        let rank = |group: u32| {
            let tally = tally(group);
            match self.sort {
                Sort::Retained => Reverse((tally.retained, tally.size, tally.count)),
                Sort::Size => Reverse((tally.size, tally.count, tally.retained)),
                Sort::Count | Sort::Name => Reverse((tally.count, tally.size, tally.retained)),
            }
        };
        match self.sort {
            Sort::Name => groups.sort_by_cached_key(|&group| self.keys.key(group)),
            _ => sort_first(groups, end, |&group| (rank(group), group)),
        }
    }

    pub fn row(&self, group: u32) -> Row {
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
            rows: Vec::new(),
            more: 0,
        }
    }

    pub fn percent(&self, tally: &Tally) -> f64 {
        let part = if self.sort == Sort::Retained { tally.retained } else { tally.size };
        percent(part, self.heap_size)
    }

    /// Adds the inner groups to a row.
    pub fn nest(
        &self,
        row: &mut Row,
        group: u32,
        children: &[Vec<u32>],
        limit: Limit<10>,
        depth: usize,
    ) {
        let limit = if depth > 1 { limit } else { Limit(0) };
        let (shown, more) = self.page(children[group as usize].clone(), limit, 0);
        row.more = more;
        for group in shown {
            let mut below = self.row(group);
            self.nest(&mut below, group, children, limit, depth - 1);
            row.rows.push(below);
        }
    }
}

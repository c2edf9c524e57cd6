//! Sites regardless of their stacks, for tables: one row per file, line, method and class.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::site_rows::SiteRows;
use super::{Kind, SiteReport, Sort, keep_most};
use crate::profile::{Profile, SiteRow};

/// Sum of the rows of one place, with the stack of the row that retains most.
struct Sum {
    row: SiteRow,
    /// Bytes retained and allocated by the row of that stack.
    main: (u64, u64),
}

impl Sum {
    fn add(&mut self, row: &SiteRow, sites: &SiteRows<'_>) {
        let bytes = (row.retained.bytes, row.allocated.bytes);
        let comes_first = || sites.compare_stacks(row.stack, self.row.stack).is_lt();
        if bytes > self.main || (bytes == self.main && comes_first()) {
            (self.main, self.row.stack, self.row.site) = (bytes, row.stack, row.site);
        }
        self.row.allocated.add(row.allocated);
        self.row.retained.add(row.retained);
        self.row.freed.add(row.freed);
        self.row.ages.add(row.ages);
        self.row.peak.add(row.peak);
    }
}

impl Profile {
    /// Places that have objects of `kind`: their number, and the first `limit` of them, largest first, ties by file, line,
    /// class and method.
    pub fn places(&self, kind: Kind, sort: Sort, limit: usize) -> (usize, Vec<SiteReport>) {
        let sites = SiteRows::new(self);
        let mut sums: FxHashMap<(&str, u32, &str, &str), Sum> = FxHashMap::default();
        for row in sites.names().rows() {
            match sums.entry(sites.place(&row)) {
                Entry::Occupied(sum) => sum.into_mut().add(&row, &sites),
                Entry::Vacant(place) => {
                    let main = (row.retained.bytes, row.allocated.bytes);
                    place.insert(Sum { row, main });
                }
            }
        }
        let rows = (sums.into_values().map(|sum| sum.row))
            .filter(|row| kind.of(row).objects > 0)
            .collect::<Vec<_>>();
        let count = rows.len();
        let measure = |row: &SiteRow| sort.measure(kind.of(row));
        let mut rows = keep_most(rows, Some(limit), measure);
        rows.sort_by(|a, b| {
            let order = |row| {
                let (file, line, method, class) = sites.place(row);
                (file, line, class, method)
            };
            measure(b).cmp(&measure(a)).then_with(|| order(a).cmp(&order(b)))
        });
        rows.truncate(limit);
        (count, rows.iter().map(|row| sites.whole_site(row)).collect())
    }
}

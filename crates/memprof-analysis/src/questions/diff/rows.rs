//! Two heaps side by side: by class, type or allocation site.

use std::cmp::{Ordering, Reverse};
use std::ops::Deref;

use serde::{Deserialize, Serialize};

use super::Diff;
use super::keys::{Key, Keys};
use super::totals::{Change, Sum};
use crate::questions::list::sums::{Merge, merge, summed};
use crate::questions::list::{self, List, Measure, Order, Rows as _, signed};
use crate::questions::tally::Groups;
use crate::questions::{Error, Limit, Remark};
use memprof_heap::graph::{BitSet, Dominators, PART, filled};
use memprof_heap::{Heap, NONE};

/// Property that objects are grouped by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// Class.
    #[default]
    Class,
    /// Type.
    Type,
    /// File and line where they were allocated.
    Site,
    /// File where they were allocated.
    File,
}

/// Sort order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// Largest growth in reachable bytes.
    #[default]
    Size,
    /// Largest growth in reachable objects.
    Count,
    /// Largest retained size of the new objects.
    Retained,
    /// Most new reachable bytes.
    New,
    /// Most surviving bytes.
    Survived,
}

/// `rows`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// Property that objects are grouped by.
    pub by: By,
    /// Only these objects; `change = "new"` is allowed here.
    pub r#where: Option<String>,
    /// Sort order.
    pub sort: Sort,
    /// Maximum number of rows (default: all).
    pub limit: Limit<{ usize::MAX }>,
    /// Only rows with new, gone, grown or shrunk objects (default: all).
    pub changed: bool,
}

/// Objects with the same key.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The key.
    #[serde(flatten)]
    pub key: Key,
    /// Before.
    pub before: Sum,
    /// After.
    pub after: Sum,
    /// The change.
    pub change: Change,
    /// The change of reachable objects, by which rows are ranked, as garbage is not growth. The same as `change` if a dump
    /// has no roots.
    pub reachable: Change,
    /// Only in the heap after.
    pub new: Sum,
    /// New objects that no root reaches.
    pub garbage: Sum,
    /// Only in the heap before.
    pub gone: Sum,
    /// New, and still present later; null if there are only two heaps.
    pub survived: Option<Sum>,
    /// Memory freed together with the new objects.
    pub retained: u64,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rows {
    /// Possible errors of the comparison.
    pub warnings: Vec<Remark>,
    /// In the requested order.
    pub rows: Vec<Row>,
    /// Rows that are not returned.
    pub more: usize,
    /// Unchanged rows that are not returned; 0 if all are requested.
    pub unchanged: usize,
}

impl Row {
    /// True if its objects are the same as before, with the same sizes.
    pub fn is_unchanged(&self) -> bool {
        self.new.count == 0 && self.gone.count == 0 && self.change == Change::default()
    }
}

impl Question {
    pub(super) fn answer<H: Deref<Target = Heap>>(&self, diff: &Diff<H>) -> Result<Rows, Error> {
        let chosen = diff.chosen(self.r#where.as_deref())?;
        let (old, sizes) = (diff.before.memsizes()?, diff.after.memsizes()?);
        let mut keys = Keys::default();
        let before = keys.column(&diff.before, self.by)?;
        let after = keys.column(&diff.after, self.by)?;
        let (changes, survived) = (&diff.changes, diff.survived.as_ref());
        let reached_before = Reached::of(&diff.before)?;
        let reached_after = Reached::of(&diff.after)?;
        let mut sums = sum(&chosen.before, keys.len(), |sums, id| {
            if let Some(sums) = sums.get_mut(before.row(id) as usize) {
                let size = old.get(id);
                sums.before.add(size);
                if reached_before.contains(id) {
                    sums.reachable_before.add(size);
                }
                if changes.gone.contains(id) {
                    sums.gone.add(size);
                }
            }
        });
        let since = sum(&chosen.after, keys.len(), |sums, id| {
            if let Some(sums) = sums.get_mut(after.row(id) as usize) {
                let size = sizes.get(id);
                sums.after.add(size);
                let is_reached = reached_after.contains(id);
                if is_reached {
                    sums.reachable_after.add(size);
                }
                if changes.new.contains(id) {
                    sums.new.add(size);
                    if !is_reached {
                        sums.garbage.add(size);
                    }
                }
                if survived.is_some_and(|survived| survived.contains(id)) {
                    sums.survived.add(size);
                }
            }
        });
        merge(&mut sums, &since);
        let is_new = |id: u32| chosen.after.contains(id) && changes.new.contains(id);
        let row = |id: u32| if is_new(id) { after.row(id) } else { NONE };
        let groups = Groups {
            of: filled(diff.after.len() as usize, row),
            count: keys.len(),
            parents: Vec::new(),
        };
        let (retained, _) = groups.retained(&diff.after)?;
        let there = |sums: &Sums| sums.before.count + sums.after.count > 0;
        let rows = keys
            .into_keys()
            .into_iter()
            .zip(sums)
            .zip(retained)
            .filter(|((_, sums), _)| there(sums));
        let rows: Vec<Row> = rows
            .map(|((key, sums), retained)| Row {
                key,
                before: sums.before,
                after: sums.after,
                change: Change::between(sums.before, sums.after),
                reachable: Change::between(sums.reachable_before, sums.reachable_after),
                new: sums.new,
                garbage: sums.garbage,
                gone: sums.gone,
                survived: diff.survived.is_some().then_some(sums.survived),
                retained,
            })
            .collect();
        let all = rows.len();
        let listed = Listed { rows, changed: self.changed };
        let numbers = 0..all as u32;
        let unchanged = numbers.clone().filter(|&row| !listed.is_listed(row)).count();
        let page = List::new(&listed, self.sort.order()).page(numbers, self.limit, 0);
        let (rows, more) = (page.of(listed.rows), page.more);
        Ok(Rows { warnings: diff.warnings.clone(), rows, more, unchanged })
    }
}

#[derive(Clone, Copy, Default)]
struct Sums {
    before: Sum,
    after: Sum,
    reachable_before: Sum,
    reachable_after: Sum,
    new: Sum,
    garbage: Sum,
    gone: Sum,
    survived: Sum,
}

/// Reachable objects, or all objects of a heap without roots.
struct Reached<'h>(Option<&'h Dominators>);

impl<'h> Reached<'h> {
    fn of(heap: &'h Heap) -> Result<Reached<'h>, Error> {
        Ok(Reached(match heap.categories().is_empty() {
            true => None,
            false => Some(heap.dominators()?),
        }))
    }

    fn contains(&self, id: u32) -> bool {
        self.0.is_none_or(|tree| tree.reaches(id))
    }
}

/// Sums of a set's members by row.
fn sum(set: &BitSet, rows: usize, add: impl Fn(&mut [Sums], u32) + Sync) -> Vec<Sums> {
    let part = if rows < PART { PART } else { set.length().max(1) };
    summed(rows, (set.length(), part), |sums, part| {
        let ids = part.start as u32..part.end as u32;
        ids.filter(|&id| set.contains(id)).for_each(|id| add(sums, id));
    })
}

impl Merge for Sums {
    fn merge(&mut self, others: &Sums) {
        self.before.merge(&others.before);
        self.after.merge(&others.after);
        self.reachable_before.merge(&others.reachable_before);
        self.reachable_after.merge(&others.reachable_after);
        self.new.merge(&others.new);
        self.garbage.merge(&others.garbage);
        self.gone.merge(&others.gone);
        self.survived.merge(&others.survived);
    }
}

impl Sort {
    fn order(self) -> Order {
        match self {
            Sort::Size => &[Measure::Size, Measure::Count],
            Sort::Count => &[Measure::Count, Measure::Size],
            Sort::Retained => &[Measure::Retained, Measure::Size, Measure::Count],
            Sort::New => &[Measure::New, Measure::Size, Measure::Count],
            Sort::Survived => &[Measure::Survived, Measure::Size, Measure::Count],
        }
    }
}

/// The rows of the list: all, or only changed ones.
struct Listed {
    rows: Vec<Row>,
    changed: bool,
}

impl list::Rows for Listed {
    fn measure(&self, row: u32, measure: Measure) -> Option<u64> {
        let row = &self.rows[row as usize];
        match measure {
            Measure::Count => signed(row.reachable.count),
            Measure::Retained => Some(row.retained),
            Measure::New => Some(row.new.size.saturating_sub(row.garbage.size)),
            Measure::Survived => Some(row.survived.map_or(0, |survived| survived.size)),
            _ => signed(row.reachable.size),
        }
    }

    /// Rows with the same growth: those with more growth including garbage come first.
    fn compare_keys(&self, one: u32, other: u32) -> Ordering {
        let change = |row: u32| self.rows[row as usize].change;
        let change = |row: u32| Reverse((change(row).size, change(row).count));
        change(one).cmp(&change(other)).then(one.cmp(&other))
    }

    fn is_listed(&self, row: u32) -> bool {
        !self.changed || !self.rows[row as usize].is_unchanged()
    }
}

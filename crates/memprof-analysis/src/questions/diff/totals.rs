//! Sums over two heaps.

use std::ops::Deref;

use serde::{Deserialize, Serialize};

use super::Diff;
use crate::questions::{Error, Remark};
use memprof_heap::graph::BitSet;
use memprof_heap::{Heap, Sizes};

/// A number of objects and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sum {
    /// Objects.
    pub count: u64,
    /// Sum of their memsizes.
    pub size: u64,
}

impl Sum {
    pub(super) fn add(&mut self, size: u64) {
        self.count += 1;
        self.size = self.size.saturating_add(size);
    }

    pub(super) fn merge(&mut self, other: &Sum) {
        self.count += other.count;
        self.size = self.size.saturating_add(other.size);
    }

    fn and(mut self, other: Sum) -> Sum {
        self.merge(&other);
        self
    }

    fn of(set: &BitSet, sizes: &Sizes) -> Sum {
        Sum { count: set.count() as u64, size: set.sum(|id| sizes.get(id)) }
    }
}

/// Difference of two sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Objects.
    pub count: i64,
    /// Bytes.
    pub size: i64,
}

impl Change {
    pub(super) fn between(before: Sum, after: Sum) -> Change {
        let change = |before: u64, after: u64| {
            let change = i128::from(after) - i128::from(before);
            change.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
        };
        Change { count: change(before.count, after.count), size: change(before.size, after.size) }
    }
}

/// `totals`: the heaps as a whole.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// Only these objects.
    pub r#where: Option<String>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Totals {
    /// Possible errors of the comparison.
    pub warnings: Vec<Remark>,
    /// All objects before.
    pub before: Sum,
    /// All objects after.
    pub after: Sum,
    /// The change.
    pub change: Change,
    /// Only in the heap after.
    pub new: Sum,
    /// Only in the heap before.
    pub gone: Sum,
    /// In both, with the sizes after.
    pub kept: Sum,
    /// Growth in bytes of the objects in both.
    pub grown: i64,
    /// New, and still present later; null if there are only two heaps.
    pub survived: Option<Sum>,
    /// New, and gone later.
    pub temporary: Option<Sum>,
    /// New but unreachable: garbage that was not yet freed.
    pub unreachable: Sum,
}

impl Question {
    pub(super) fn answer<H: Deref<Target = Heap>>(&self, diff: &Diff<H>) -> Result<Totals, Error> {
        let chosen = diff.chosen(self.r#where.as_deref())?;
        let (old, sizes) = (diff.before.memsizes()?, diff.after.memsizes()?);
        let (mut gone, mut kept_before) = (chosen.before.clone(), chosen.before.clone());
        gone.intersect(&diff.changes.gone);
        kept_before.subtract(&gone);
        let (mut new, mut kept) = (chosen.after.clone(), chosen.after.clone());
        new.intersect(&diff.changes.new);
        kept.subtract(&new);
        let later = diff.survived.as_ref().map(|survived| {
            let (mut lives, mut temporary) = (new.clone(), new.clone());
            lives.intersect(survived);
            temporary.subtract(survived);
            (Sum::of(&lives, sizes), Sum::of(&temporary, sizes))
        });
        let tree = diff.after.dominators()?;
        let is_garbage = |(): &mut (), id: u32| new.contains(id) && !tree.reaches(id);
        let (unreachable, _) = BitSet::filled(new.length(), || (), is_garbage);
        let (kept, kept_before) = (Sum::of(&kept, sizes), Sum::of(&kept_before, old));
        let (new, gone) = (Sum::of(&new, sizes), Sum::of(&gone, old));
        let (before, after) = (kept_before.and(gone), kept.and(new));
        Ok(Totals {
            warnings: diff.warnings.clone(),
            before,
            after,
            change: Change::between(before, after),
            new,
            gone,
            kept,
            grown: Change::between(kept_before, kept).size,
            survived: later.map(|(survived, _)| survived),
            temporary: later.map(|(_, temporary)| temporary),
            unreachable: Sum::of(&unreachable, sizes),
        })
    }
}

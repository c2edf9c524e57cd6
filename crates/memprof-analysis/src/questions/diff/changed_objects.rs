//! Changed objects, one by one.

use std::ops::Deref;

use serde::{Deserialize, Serialize};

use super::Diff;
use crate::questions::describe::{Described, Describer};
use crate::questions::list::largest;
use crate::questions::{Error, Limit, Remark};
use memprof_heap::Heap;
use memprof_heap::graph::BitSet;

/// Which objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Only in the heap after.
    #[default]
    New,
    /// Only in the heap before.
    Gone,
    /// In both.
    Kept,
    /// New, and still present later.
    Survived,
    /// New, and gone later.
    Temporary,
}

/// Sort order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Largest retained size.
    #[default]
    Retained,
    /// Largest size.
    Size,
    /// Lowest address.
    Address,
}

/// `objects`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// Which objects (default: new ones).
    pub change: Status,
    /// Only these.
    pub r#where: Option<String>,
    /// Sort order.
    pub sort: Order,
    /// Maximum number of objects.
    pub limit: Limit<100>,
    /// Objects to skip.
    pub offset: usize,
}

/// An object that changed. Gone objects have the number of the heap before, others that of the heap after.
#[derive(Clone, Debug, Serialize)]
pub struct Changed {
    /// The object.
    #[serde(flatten)]
    pub object: Described,
    /// How it changed.
    pub change: Status,
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
pub struct Objects {
    /// Possible errors of the comparison.
    pub warnings: Vec<Remark>,
    /// In the requested order.
    pub objects: Vec<Changed>,
    /// All objects of this change.
    pub count: u64,
    /// Sum of their memsizes.
    pub size: u64,
}

impl Question {
    pub(super) fn answer<H: Deref<Target = Heap>>(&self, diff: &Diff<H>) -> Result<Objects, Error> {
        let chosen = diff.chosen(self.r#where.as_deref())?;
        let later = || {
            diff.survived
                .as_ref()
                .ok_or_else(|| Error::Question("this takes a third dump".to_owned()))
        };
        let (heap, mut set): (&Heap, BitSet) = match self.change {
            Status::Gone => (&diff.before, chosen.before.clone()),
            _ => (&diff.after, chosen.after.clone()),
        };
        match self.change {
            Status::New => set.intersect(&diff.changes.new),
            Status::Gone => set.intersect(&diff.changes.gone),
            Status::Kept => set.subtract(&diff.changes.new),
            Status::Survived => set.intersect(later()?),
            Status::Temporary => {
                set.intersect(&diff.changes.new);
                set.subtract(later()?);
            }
        }
        let (sizes, retained) = (heap.memsizes()?, heap.retained()?);
        let end = self.limit.end(self.offset);
        let returned: Vec<u32> = match self.sort {
            Order::Retained => first(largest(set.iter(), end, |id| Some(retained.get(id)))),
            Order::Size => first(largest(set.iter(), end, |id| Some(sizes.get(id)))),
            Order::Address => set.iter().take(end).collect(),
        };
        let describer = Describer::new(heap)?;
        Ok(Objects {
            warnings: diff.warnings.clone(),
            objects: returned
                .into_iter()
                .skip(self.offset)
                .map(|id| Changed { object: describer.describe(id), change: self.change })
                .collect(),
            count: set.count() as u64,
            size: set.sum(|id| sizes.get(id)),
        })
    }
}

fn first(largest: Vec<(u32, Option<u64>)>) -> Vec<u32> {
    largest.into_iter().map(|(id, _)| id).collect()
}

//! `top`: objects, the largest first, or in another order.

use serde::{Deserialize, Serialize};

use super::computed::{depths, referrers};
use super::describe::{Described, Describer};
use super::list::largest;
use super::{Error, Limit, Selection};
use memprof_heap::{Heap, NONE};

/// Sort order of the objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// Retained size.
    #[default]
    Retained,
    /// Memsize.
    Size,
    /// Number of elements of a collection, bytes of a text.
    Length,
    /// Number of references.
    References,
    /// Number of referrers.
    Referrers,
    /// Steps from the roots.
    Depth,
    /// Address, the lowest first.
    Address,
}

/// `top`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// Sort order (default: retained size).
    pub sort: Sort,
    /// Filter for the objects (default: all).
    pub r#where: Option<String>,
    /// Maximum number of objects.
    pub limit: Limit<20>,
    /// Objects to skip (default: none).
    pub offset: usize,
}

/// An object with its sort value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The object.
    #[serde(flatten)]
    pub object: Described,
    /// The sort value; null if unknown, or sorted by address.
    pub value: Option<u64>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Sort order.
    pub sort: Sort,
    /// Objects.
    pub objects: Vec<Row>,
    /// Number of chosen objects.
    pub count: usize,
    /// Sum of their memsizes.
    pub size: u64,
    /// Objects after those that are shown.
    pub more: usize,
}

impl Question {
    /// The answer.
    ///
    /// # Errors
    /// If the filter is invalid, or the index cannot be read.
    pub fn answer(&self, heap: &Heap) -> Result<Answer, Error> {
        let selection = Selection::new(heap, self.r#where.as_deref())?;
        let end = self.limit.end(self.offset);
        let first = self.first(heap, &selection, end)?;
        let describer = Describer::new(heap)?;
        let shown = first.into_iter().skip(self.offset);
        let objects: Vec<Row> =
            shown.map(|(id, value)| Row { object: describer.describe(id), value }).collect();
        let memsizes = heap.memsizes()?;
        let count = selection.count();
        Ok(Answer {
            sort: self.sort,
            more: count.saturating_sub(end),
            objects,
            count,
            size: selection.iter().fold(0, |sum, id| sum.saturating_add(memsizes.get(id))),
        })
    }

    /// The first objects in order, with their sort values.
    fn first(
        &self,
        heap: &Heap,
        selection: &Selection<'_>,
        end: usize,
    ) -> Result<Vec<(u32, Option<u64>)>, Error> {
        let known = |value: u32| (value != NONE).then_some(u64::from(value));
        let of = |column: &[u32], id: u32| column.get(id as usize).copied().and_then(known);
        Ok(match self.sort {
            Sort::Address => selection.iter().take(end).map(|id| (id, None)).collect(),
            Sort::Retained => {
                let retained = heap.retained()?;
                largest(selection.iter(), end, |id| Some(retained.get(id)))
            }
            Sort::Size => {
                let memsizes = heap.memsizes()?;
                largest(selection.iter(), end, |id| Some(memsizes.get(id)))
            }
            Sort::Length => {
                let lengths = heap.lengths()?;
                largest(selection.iter(), end, |id| of(lengths, id))
            }
            Sort::References => {
                let offsets = heap.graph(&[])?.offsets;
                let row = |id: u32| offsets.get(id as usize..id as usize + 2);
                largest(selection.iter(), end, |id| {
                    row(id).map(|row| u64::from(row[1].saturating_sub(row[0])))
                })
            }
            Sort::Referrers => {
                let referrers = referrers(heap)?;
                largest(selection.iter(), end, |id| of(&referrers, id))
            }
            Sort::Depth => {
                let depths = depths(heap, heap.steps()?);
                largest(selection.iter(), end, |id| of(&depths, id))
            }
        })
    }
}

#[cfg(test)]
mod tests;

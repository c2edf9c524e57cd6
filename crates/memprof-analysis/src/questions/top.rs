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
mod tests {
    use std::cmp::Reverse;

    use super::{Answer, Limit, Question, Sort};
    use crate::questions::Selection;
    use crate::tests::ask;
    use memprof_heap::Heap;
    use memprof_heap::testing::random;

    fn value(heap: &Heap, sort: Sort, id: u32) -> Option<u64> {
        let object = heap.object(id).expect("in memory").expect("an object");
        let classes = [];
        let graph = heap.graph(&classes).expect("in memory");
        match sort {
            Sort::Retained => Some(heap.retained().expect("in memory").get(id)),
            Sort::Size => Some(object.memsize),
            Sort::Length => object.length.map(u64::from),
            Sort::References => Some(graph.row(id).len() as u64),
            Sort::Referrers => {
                let rows = (0..heap.len())
                    .map(|from| graph.row(from).iter().filter(|&&to| to == id).count());
                Some(rows.sum::<usize>() as u64)
            }
            Sort::Depth => {
                let steps = heap.steps().expect("in memory");
                let mut at = id;
                let mut depth = 0;
                while heap.category(at).is_none() {
                    at = *steps.get(at as usize).filter(|&&step| step != u32::MAX)?;
                    depth += 1;
                }
                Some(depth)
            }
            Sort::Address => None,
        }
    }

    #[test]
    fn is_the_beginning_of_the_sorted_list() {
        for seed in 0..10 {
            let (_, heap) = random(seed, 70);
            for sort in [
                Sort::Retained,
                Sort::Size,
                Sort::Length,
                Sort::References,
                Sort::Referrers,
                Sort::Depth,
                Sort::Address,
            ] {
                for (offset, limit) in [(0, 5), (3, 4), (0, 1000), (65, 20), (200, 1), (0, 0)] {
                    let filter = Some("size > 40 or frozen".to_owned());
                    let mut ids: Vec<u32> =
                        Selection::new(&heap, filter.as_deref()).expect("a query").iter().collect();
                    let count = ids.len();
                    ids.sort_by_key(|&id| Reverse(value(&heap, sort, id)));
                    let expected: Vec<u32> = ids.into_iter().skip(offset).take(limit).collect();
                    let question = Question { sort, r#where: filter, limit: Limit(limit), offset };
                    let Answer { objects, more, .. } = question.answer(&heap).expect("an answer");
                    let found: Vec<u32> = objects.iter().map(|row| row.object.id).collect();
                    assert_eq!(found, expected, "{sort:?} {offset} {limit}");
                    assert_eq!(
                        more,
                        count.saturating_sub(offset + limit),
                        "{sort:?} {offset} {limit}"
                    );
                    assert!(
                        objects.iter().all(|row| row.value == value(&heap, sort, row.object.id))
                    );
                }
            }
        }
    }

    #[test]
    fn is_asked_in_json() {
        let (_, heap) = random(1, 40);
        let answer = ask(&heap, "top", serde_json::json!({ "sort": "size", "limit": 1 }))
            .expect("an answer");
        let row = &answer["objects"][0];
        for key in [
            "id",
            "address",
            "type",
            "class",
            "text",
            "size",
            "retained",
            "percent",
            "generation",
            "value",
        ] {
            assert!(row.get(key).is_some(), "{key}: {row}");
        }
        assert_eq!(row["value"], row["size"]);
    }
}

//! Paths to the objects of a filter, merged if they only differ in indices and keys.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::{Sum, Verdict};
use crate::order;
use crate::questions::list::{BY_VALUE, List, Measured};
use crate::questions::{Error, Limit, Phrase, Selection};
use memprof_heap::{Heap, NONE};

/// The question.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// A filter (default: all objects).
    pub r#where: Option<String>,
    /// Maximum number of paths.
    pub limit: Limit<10>,
}

/// Objects with similar paths.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Class of the objects.
    pub class: String,
    /// Their path: `Registry::TENANTS -> Hash[*] -> Tenant@notes -> Array[*]`.
    pub retained_by: Phrase,
    /// Their number and memsize.
    #[serde(flatten)]
    pub sum: Sum,
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// Rows, those with the most objects first.
    pub rows: Vec<Row>,
    /// Paths that are not returned.
    pub more: usize,
    /// Objects of the filter that no root reaches.
    pub garbage: Sum,
}

impl Question {
    /// Finds the paths to the objects.
    ///
    /// # Errors
    /// If the filter is invalid, or the index cannot be read.
    pub fn answer(&self, heap: &Heap) -> Result<Answer, Error> {
        let mut verdict = Verdict::default();
        let (of, _) = verdict.tree.nodes_of(heap)?;
        let sizes = heap.memsizes()?;
        let mut sums: FxHashMap<u32, Sum> = FxHashMap::default();
        for id in Selection::new(heap, self.r#where.as_deref())?.iter() {
            let node = of.get(id as usize).copied().unwrap_or(NONE);
            let size = sizes.get(id);
            sums.entry(node).or_default().add(Sum { count: 1, size });
        }
        let garbage = sums.remove(&NONE).unwrap_or_default();
        let mut sums: Vec<(u32, Sum)> = sums.into_iter().collect();
        order::sort_by_key(&mut sums, |&(node, _)| node);
        let rows = Measured(|row: u32, _| Some(sums[row as usize].1.count));
        let page = List::new(&rows, BY_VALUE).page(0..sums.len() as u32, self.limit, 0);
        let (sums, more) = (page.of(sums), page.more);
        let row = |(node, sum): (u32, Sum)| Row {
            class: (verdict.text(verdict.tree.nodes[node as usize].class)).to_owned(),
            retained_by: verdict.retained_by(node),
            sum,
        };
        Ok(Answer { rows: sums.into_iter().map(row).collect(), more, garbage })
    }
}

//! `histogram`: objects in groups.

mod by;
mod chart;
mod key;
mod ranking;
#[cfg(test)]
mod tests;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::list::Page;
use super::list::sums::Merge;
use super::numbering::numbered;
use super::tally::{Groups, Tally, percent};
use super::{Error, Limit, Selection};
pub use by::By;
use by::Keys;
pub use chart::Bar;
pub use key::Key;
use memprof_heap::graph::{BitSet, PART, in_parts, reachable_without};
use memprof_heap::{Heap, NONE};
use ranking::Ranking;

/// Sort order of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// Retained size.
    Retained,
    /// Total memsize.
    Size,
    /// Number of objects.
    Count,
    /// The key.
    Name,
}

/// `histogram`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// Property that objects are grouped by (default: class).
    pub by: By,
    /// Property that the objects of a row are grouped by.
    pub then: Option<By>,
    /// Filter for the objects (default: all).
    pub r#where: Option<String>,
    /// Sort order (default: retained size if there are roots, else size).
    pub sort: Option<Sort>,
    /// Maximum number of rows.
    pub limit: Limit<20>,
    /// Rows to skip (default: none).
    pub offset: usize,
    /// Maximum number of rows within a row (default: 3, in a tree 10).
    pub then_limit: Option<usize>,
    /// Levels of a tree.
    pub depth: Limit<3>,
    /// Maximum number of bars of a chart (default: no chart).
    pub bars: Option<usize>,
    /// Computes retained sizes as if all objects of a row were freed at once: a walk over the heap per row.
    pub exact: bool,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The property that its objects share; null if unknown.
    pub key: Key,
    /// Objects.
    pub count: u64,
    /// Sum of their memsizes.
    pub size: u64,
    /// Retained size; null if the dump has no roots.
    pub retained: Option<u64>,
    /// Retained size if rows are sorted by that, else size, as a percentage of the whole heap's memsize.
    pub percent: f64,
    /// First generation in which one of them was allocated.
    pub first_generation: Option<u32>,
    /// Last such generation.
    pub last_generation: Option<u32>,
    /// The filter that chooses the same objects in the whole heap, if there is one.
    pub r#where: Option<String>,
    /// Groups within this one, in a tree or by `then`.
    pub rows: Vec<Row>,
    /// Groups within this one that are not shown.
    pub more: usize,
}

/// All objects that were chosen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Total {
    /// Objects.
    pub count: u64,
    /// Sum of their memsizes.
    pub size: u64,
    /// Retained size; null if the dump has no roots.
    pub retained: Option<u64>,
    /// Percentage of the whole heap's memsize, as in the rows.
    pub percent: f64,
    /// Unreachable objects: garbage that was not yet freed.
    pub unreachable_count: Option<u64>,
    /// Sum of their memsizes.
    pub unreachable_size: Option<u64>,
    /// Memsize of the whole heap.
    pub heap_size: u64,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Property that objects are grouped by.
    pub by: By,
    /// Sort order of the rows.
    pub sort: Sort,
    /// Whether retained sizes are exact.
    pub exact: bool,
    /// Groups.
    pub rows: Vec<Row>,
    /// Groups after those that are shown.
    pub more: usize,
    /// Sums of all groups.
    pub total: Total,
    /// All groups in the order of their keys, if bars were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chart: Option<Vec<Bar>>,
}

impl Question {
    /// The answer.
    ///
    /// # Errors
    /// If the filter is invalid, or the index cannot be read.
    pub fn answer(&self, heap: &Heap) -> Result<Answer, Error> {
        if let Some(then) =
            self.then.filter(|then| [*then, self.by].iter().any(|by| by.property().is_tree))
        {
            let text = format!("by {:?} then {then:?}: trees are not grouped further", self.by);
            return Err(Error::Question(text.to_lowercase()));
        }
        let selection = Selection::new(heap, self.filter().as_deref())?;
        let by_name = self.sort == Some(Sort::Name);
        let keys = Keys::new(heap, self.by, &selection)?.in_order(by_name);
        let then = self
            .then
            .map(|by| Keys::new(heap, by, &selection))
            .transpose()?
            .map(|then| Divided::new(&keys, then.in_order(by_name)));
        let groups = then.as_ref().map_or(&keys.groups, |then| &then.groups);
        let (tallies, retained) = groups.tally_and_retained(heap)?;
        let (inner, tallies) = tallies.split_at(groups.count - keys.groups.count);
        let rooted = !heap.categories().is_empty();
        let sort = self.sort.unwrap_or(if rooted { Sort::Retained } else { Sort::Size });
        let ranking = Ranking { keys: &keys, tallies, sort, heap_size: heap.size()?, rooted };
        let is_tree = !keys.groups.parents.is_empty();
        let children = is_tree.then(|| keys.groups.children());
        let top = match &children {
            Some(children) => children[keys.groups.count].clone(),
            None => (0..keys.groups.count as u32).collect(),
        };
        let chart = self.bars.map(|most| ranking.bars(&top, most, self.r#where.as_deref()));
        let Page { shown, more } = ranking.page(top, self.limit, self.offset);
        let depth = self.depth.0.min(DEEPEST).saturating_sub(1);
        let row = |&group: &u32| match &children {
            Some(children) => ranking.tree(group, children, self.then_limit.into(), depth),
            None => ranking.row(group),
        };
        let mut rows: Vec<Row> = shown.iter().map(row).collect();
        if let Some(then) = &then {
            let limit = self.then_limit.into();
            then.fill(&ranking, (&shown, &mut rows), inner, limit);
        }
        if self.exact && rooted {
            exact(heap, &keys.groups, &shown, &mut rows, (sort, ranking.heap_size))?;
        }
        let total = total(heap, &selection, &ranking, retained)?;
        let exact = self.exact && rooted;
        Ok(Answer { by: self.by, sort, exact, rows, more, total, chart })
    }

    /// The filter for objects that have the property.
    fn filter(&self) -> Option<String> {
        match (&self.r#where, self.by.property().only) {
            (Some(filter), Some(only)) if !filter.trim().is_empty() => {
                Some(format!("({filter}) and {only}"))
            }
            (_, Some(only)) => Some(only.to_owned()),
            (filter, None) => filter.clone(),
        }
    }
}

/// Groups within groups.
struct Divided<'h> {
    keys: Keys<'h>,
    /// By number, the outer group and the position in `keys`.
    pairs: Vec<(u32, u32)>,
    /// These groups, followed by the outer ones.
    groups: Groups,
}

impl<'h> Divided<'h> {
    fn new(outer: &Keys<'h>, keys: Keys<'h>) -> Divided<'h> {
        let (first, second) = (&outer.groups.of, &keys.groups.of);
        let pair = |id: u32| {
            let group = first[id as usize];
            (group != NONE).then(|| (group, second[id as usize]))
        };
        let small = |(group, inner)| Some(group as usize * keys.groups.count + inner as usize);
        let (of, pairs) = numbered(first.len(), pair, small);
        let pairs = pairs.keys;
        let mut parents: Vec<u32> =
            pairs.iter().map(|&(group, _)| pairs.len() as u32 + group).collect();
        parents.resize(pairs.len() + outer.groups.count, NONE);
        let groups = Groups { of, count: parents.len(), parents };
        Divided { keys, pairs, groups }
    }

    /// Adds the inner groups to rows.
    fn fill(
        &self,
        first: &Ranking<'_>,
        (shown, rows): (&[u32], &mut [Row]),
        tallies: &[Tally],
        limit: Limit<3>,
    ) {
        let mut inside: FxHashMap<u32, Vec<u32>> =
            shown.iter().map(|&group| (group, Vec::new())).collect();
        for (&(group, _), number) in self.pairs.iter().zip(0..) {
            if let Some(numbers) = inside.get_mut(&group) {
                numbers.push(number);
            }
        }
        let mut by_inner: Vec<Tally> = vec![Tally::default(); self.keys.groups.count];
        for (row, group) in rows.iter_mut().zip(shown) {
            // Within one row each inner group occurs once.
            let inner = inside[group].iter().map(|&number| {
                let (_, inner) = self.pairs[number as usize];
                by_inner[inner as usize] = tallies[number as usize];
                inner
            });
            let inner: Vec<u32> = inner.collect();
            let ranking = Ranking { keys: &self.keys, tallies: &by_inner, ..*first };
            let Page { shown, more } = ranking.page(inner, limit, 0);
            row.rows = shown.iter().map(|&group| ranking.row(group)).collect();
            for below in &mut row.rows {
                below.r#where = both(row.r#where.as_deref(), below.r#where.take());
            }
            row.more = more;
        }
    }
}

/// Maximum depth: the answer is nested as deeply.
const DEEPEST: usize = 40;

fn both(outer: Option<&str>, inner: Option<String>) -> Option<String> {
    Some(format!("{} and {}", outer?, inner?))
}

/// The joint retained size of each row's objects.
fn exact(
    heap: &Heap,
    groups: &Groups,
    shown: &[u32],
    rows: &mut [Row],
    (sort, heap_size): (Sort, u64),
) -> Result<(), Error> {
    let classes = heap.group_classes();
    let dominators = heap.dominators()?;
    let graph = heap.graph(&classes)?;
    let memsizes = heap.memsizes()?;
    let reached = BitSet::of(graph.len(), dominators.order.iter().copied());
    for (&group, row) in shown.iter().zip(rows) {
        let members = groups
            .of
            .iter()
            .zip(0..)
            .filter(|&(&of, _)| groups.chain(of).any(|known| known == group));
        let members = BitSet::of(graph.len(), members.map(|(_, id)| id));
        let mut gone = reached.clone();
        gone.subtract(&reachable_without(&graph, &[heap.root()], &members));
        let retained = gone.sum(|id| memsizes.get(id));
        row.retained = Some(retained);
        if sort == Sort::Retained {
            row.percent = percent(retained, heap_size);
        }
    }
    Ok(())
}

fn total(
    heap: &Heap,
    selection: &Selection<'_>,
    ranking: &Ranking<'_>,
    retained: u64,
) -> Result<Total, Error> {
    let mut sum = Tally::default();
    let groups = &ranking.keys.groups;
    for (tally, &parent) in
        ranking.tallies.iter().zip(groups.parents.iter().chain(std::iter::repeat(&NONE)))
    {
        if parent == NONE {
            sum.merge(tally);
        }
    }
    let mut unreachable = None;
    if ranking.rooted {
        sum.retained = match selection.is_all() {
            true => heap.retained()?.get(heap.root()),
            false => retained,
        };
        let dominators = heap.dominators()?;
        let memsizes = heap.memsizes()?;
        let parts = in_parts(heap.len() as usize, PART, Tally::default, |garbage, part| {
            let ids = part.start as u32..part.end as u32;
            for id in ids.filter(|&id| selection.contains(id) && !dominators.reaches(id)) {
                garbage.add(memsizes.get(id), NONE);
            }
        });
        let mut garbage = Tally::default();
        parts.iter().for_each(|part| garbage.merge(part));
        unreachable = Some(garbage);
    }
    Ok(Total {
        count: sum.count,
        size: sum.size,
        retained: ranking.rooted.then_some(sum.retained),
        percent: ranking.percent(&sum),
        unreachable_count: unreachable.map(|garbage| garbage.count),
        unreachable_size: unreachable.map(|garbage| garbage.size),
        heap_size: ranking.heap_size,
    })
}

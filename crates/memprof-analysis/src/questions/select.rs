//! Objects chosen by a filter.

use std::ops::Range;

use super::leaked::has_blocks;
use super::object_fields::{At, Columns, Reading};
use super::{Error, error};
use crate::query::{Comparison, Condition, Field, Order};
use memprof_heap::graph::BitSet;
use memprof_heap::{FOLDED, FREE, Heap};

/// The refusal of a filter that asks what is not known.
const NO_BLOCKS: &str =
    "whether blocks of malloc are leaked or free is unknown: the dump has no blocks (see --blocks)";

/// Objects of a heap: all, or those that match a filter. Objects folded into their owner are excluded, and free malloc blocks
/// unless the filter asks for states.
pub struct Selection<'h> {
    flags: &'h [u32],
    /// `None` for all.
    chosen: Option<BitSet>,
}

impl<'h> Selection<'h> {
    /// The objects that match a filter, or all.
    ///
    /// # Errors
    /// If the filter is invalid, or the index cannot be read.
    pub fn new(heap: &'h Heap, filter: Option<&str>) -> Result<Selection<'h>, Error> {
        let flags = heap.flag_words()?;
        let Some(filter) = filter.filter(|filter| !filter.trim().is_empty()) else {
            return Ok(Selection { flags, chosen: None });
        };
        let query = error::parse(filter)?;
        let fields = query.fields();
        let about_blocks = fields.contains(Field::Leaked) || fields.contains(Field::State);
        if about_blocks && !has_blocks(heap) {
            return Err(Error::Question(NO_BLOCKS.to_owned()));
        }
        let columns = Columns::new(heap, query.fields())?;
        let groups = heap.group_numbers()?;
        let possible = columns.possible_groups(query.expression());
        let sites = columns.possible_sites(query.expression());
        let is_none = |possible: &Option<Vec<bool>>| {
            let possible = possible.as_ref();
            possible.is_some_and(|possible| possible.iter().all(|possible| !possible))
        };
        if is_none(&possible) || is_none(&sites) {
            return Ok(Selection { flags, chosen: Some(BitSet::new(heap.len() as usize)) });
        }
        // Free blocks count only if the query is about states.
        let left_out = match query.fields().contains(Field::State) {
            true => FOLDED.0 | FREE.0,
            false => FOLDED.0,
        };
        let counts = |flags: u32| flags & left_out != FOLDED.0;
        let is_possible = |id: u32| {
            possible.as_ref().is_none_or(|possible| {
                let group = groups.get(id as usize);
                group.is_some_and(|&group| possible.get(group as usize) == Some(&true))
            }) && sites.as_ref().is_none_or(|possible| {
                // The last entry is for objects whose site is unknown.
                let site = columns.site_number(id).unwrap_or(possible.len() - 1);
                possible.get(site) == Some(&true)
            })
        };
        let (chosen, states) = BitSet::filled(
            heap.len() as usize,
            || {
                let prepared = query.prepare_with(&|comparison| places(heap, comparison));
                (prepared, Reading::new(heap))
            },
            |(prepared, reading), id| {
                let object = At { columns: &columns, reading, id };
                is_possible(id) && counts(flags[id as usize]) && prepared.matches(&object)
            },
        );
        for (_, reading) in states {
            reading.take_error()?;
        }
        Ok(Selection { flags, chosen: Some(chosen) })
    }

    /// The same without garbage, if the dump has roots.
    ///
    /// # Errors
    /// See [`new`](Self::new).
    pub fn live(heap: &'h Heap, filter: Option<&str>) -> Result<Selection<'h>, Error> {
        let selection = Selection::new(heap, filter)?;
        if heap.categories().is_empty() {
            return Ok(selection);
        }
        let dominators = heap.dominators()?;
        let is_live = |(): &mut (), id| selection.contains(id) && dominators.reaches(id);
        let (live, _) = BitSet::filled(heap.len() as usize, || (), is_live);
        Ok(Selection { chosen: Some(live), ..selection })
    }

    /// True if the object is chosen.
    #[inline]
    pub fn contains(&self, id: u32) -> bool {
        match &self.chosen {
            Some(chosen) => chosen.contains(id),
            None => self.flags.get(id as usize).is_some_and(|flags| flags & FOLDED.0 == 0),
        }
    }

    /// All of them, as a set.
    pub fn into_set(self) -> BitSet {
        match self.chosen {
            Some(chosen) => chosen,
            None => BitSet::of(self.flags.len(), self.iter()),
        }
    }

    /// True if no filter was given.
    pub fn is_all(&self) -> bool {
        self.chosen.is_none()
    }

    /// The chosen objects, ordered by address.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.flags.len() as u32).filter(|&id| self.contains(id))
    }

    /// Number of chosen objects.
    pub fn count(&self) -> usize {
        match &self.chosen {
            Some(chosen) => chosen.count(),
            None => self.iter().count(),
        }
    }
}

/// The numbers of the objects whose address meets a condition: numbers are ordered by address.
fn places(heap: &Heap, comparison: &Comparison) -> Option<Vec<Range<u32>>> {
    let addresses = heap.addresses();
    if comparison.field != Field::Address || !addresses.are_aligned() {
        return None;
    }
    let from = |address: u64| {
        let next = address.checked_next_multiple_of(8);
        next.map_or(heap.len(), |next| addresses.first_from(next))
    };
    let behind = |address: u64| address.checked_add(1).map_or(heap.len(), from);
    let at = |address| from(address)..behind(address);
    let one = |range| std::iter::once(range).collect();
    let (places, wanted): (Vec<Range<u32>>, bool) = match &comparison.condition {
        Condition::Number(order, address) => match order {
            Order::Equal => (one(at(*address)), true),
            Order::Unequal => (one(at(*address)), false),
            Order::Less => (one(0..from(*address)), true),
            Order::AtLeast => (one(from(*address)..heap.len()), true),
            Order::More => (one(behind(*address)..heap.len()), true),
            Order::AtMost => (one(0..behind(*address)), true),
        },
        Condition::Range { first, last, wanted } => (one(from(*first)..behind(*last)), *wanted),
        Condition::Numbers { numbers, wanted } => {
            (numbers.iter().copied().map(at).collect(), *wanted)
        }
        _ => return None,
    };
    Some(if wanted { places } else { others(&places, heap.len()) })
}

/// The gaps between ranges that are in ascending order.
fn others(ranges: &[Range<u32>], end: u32) -> Vec<Range<u32>> {
    let starts = std::iter::once(0).chain(ranges.iter().map(|range| range.end));
    let ends = ranges.iter().map(|range| range.start).chain([end]);
    starts.zip(ends).map(|(start, end)| start..end).collect()
}

#[cfg(test)]
mod tests;

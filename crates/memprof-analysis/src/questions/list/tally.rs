//! Sums of groups of objects: number, size, retained size, generations.

use std::io;

use super::sums::{Merge, summed};
use super::{Measure, Rows};
use memprof_heap::graph::{PART, Tree, in_parts, piece_of};
use memprof_heap::{Heap, NONE, Sizes};

/// Sums of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Tally {
    pub count: u64,
    pub size: u64,
    /// Bytes that the group's objects retain individually; 0 in a heap without roots.
    pub retained: u64,
    /// First and last generation; [`NONE`] if unknown for all.
    pub first: u32,
    pub last: u32,
}

impl Default for Tally {
    fn default() -> Tally {
        Tally { count: 0, size: 0, retained: 0, first: NONE, last: NONE }
    }
}

impl Tally {
    pub fn add(&mut self, size: u64, generation: u32) {
        self.merge(&Tally { count: 1, size, retained: 0, first: generation, last: generation });
    }

    /// A measure of the group.
    pub fn measure(&self, measure: Measure) -> Option<u64> {
        match measure {
            Measure::Count => Some(self.count),
            Measure::Size => Some(self.size),
            Measure::Retained => Some(self.retained),
            _ => None,
        }
    }

    /// First and last generation.
    pub fn generations(&self) -> (Option<u32>, Option<u32>) {
        let known = |generation| Some(generation).filter(|&generation| generation != NONE);
        (known(self.first), known(self.last))
    }
}

/// Groups by number.
impl Rows for Vec<Tally> {
    fn measure(&self, group: u32, measure: Measure) -> Option<u64> {
        self.get(group as usize)?.measure(measure)
    }
}

impl Merge for Tally {
    /// Adds another group, except its retained size.
    fn merge(&mut self, other: &Tally) {
        self.count += other.count;
        self.size = self.size.saturating_add(other.size);
        // NONE is the largest number.
        self.first = self.first.min(other.first);
        if other.last != NONE && (self.last == NONE || self.last < other.last) {
            self.last = other.last;
        }
    }
}

/// The group of each object, [`NONE`] if it has none; a group may be part of another.
#[derive(Default)]
pub(in super::super) struct Groups {
    pub of: Vec<u32>,
    pub count: usize,
    /// The parent of each group, [`NONE`] for none; empty if groups have no parents. There are no cycles.
    pub parents: Vec<u32>,
}

impl Groups {
    /// A group and its ancestors.
    pub fn chain(&self, group: u32) -> impl Iterator<Item = u32> + '_ {
        let parent =
            |group: &u32| self.parents.get(*group as usize).copied().filter(|&group| group != NONE);
        std::iter::successors((group != NONE).then_some(group), parent)
    }

    /// The children of each group; the last entry has the groups without parent.
    pub fn children(&self) -> Vec<Vec<u32>> {
        let mut children = vec![Vec::new(); self.count + 1];
        for (&parent, group) in self.parents.iter().zip(0..) {
            children[self.count.min(parent as usize)].push(group);
        }
        children
    }

    /// Sums of all groups.
    pub fn tally(&self, heap: &Heap) -> io::Result<Vec<Tally>> {
        Ok(self.tally_and_retained(heap)?.0)
    }

    /// The same, with the joint retained size of all groups.
    pub fn tally_and_retained(&self, heap: &Heap) -> io::Result<(Vec<Tally>, u64)> {
        let mut tallies = self.sums(heap)?;
        let (sums, all) = self.retained(heap)?;
        for (tally, sum) in tallies.iter_mut().zip(sums) {
            tally.retained = sum;
        }
        Ok((tallies, all))
    }

    /// Sums of all groups without retained sizes.
    pub fn sums(&self, heap: &Heap) -> io::Result<Vec<Tally>> {
        let memsizes = heap.memsizes()?;
        let generations = heap.generations()?;
        let part = (self.of.len(), self.part(PART));
        let mut tallies = summed(self.count, part, |tallies: &mut [Tally], part| {
            for (&group, id) in self.of[part.clone()].iter().zip(part.start as u32..) {
                if let Some(tally) = tallies.get_mut(group as usize) {
                    let generation = generations.get(id as usize).copied().unwrap_or(NONE);
                    tally.add(memsizes.get(id), generation);
                }
            }
        });
        if !self.parents.is_empty() {
            let own = tallies.clone();
            for (tally, group) in own.iter().zip(0..) {
                self.chain(group).skip(1).for_each(|above| tallies[above as usize].merge(tally));
            }
        }
        Ok(tallies)
    }

    /// The retained size of each group's top members in the dominator tree, and that of all groups together.
    pub fn retained(&self, heap: &Heap) -> io::Result<(Vec<u64>, u64)> {
        let mut sums = (vec![0; self.count], 0);
        if heap.categories().is_empty() {
            return Ok(sums);
        }
        let tree = heap.tree()?;
        let members = self.of.iter().filter(|&&group| group != NONE).count();
        if members < self.of.len() / FEW {
            let mut top = Top::of(self, heap.retained()?);
            let members = self.of.iter().zip(0..).filter(|&(&group, _)| group != NONE);
            let places = members.filter_map(|(_, node)| tree.place(node));
            let mut places: Vec<u32> = places.collect();
            places.sort_unstable();
            for place in places {
                top.meet(tree, place);
            }
            return Ok((top.sums, top.sum));
        }
        let nodes = tree.nodes().len();
        let part = self.part(piece_of(nodes));
        let (dominators, retained) = (heap.dominators()?, heap.retained()?);
        let parts = in_parts(nodes, part, Vec::new, |tops, part| {
            let mut top = Top::of(self, retained);
            for above in dominators.ancestors(tree.nodes()[part.start]) {
                top.enter(tree, above);
            }
            part.for_each(|place| top.meet(tree, place as u32));
            tops.push((top.sums, top.sum));
        });
        for (part, all) in parts.into_iter().flatten() {
            let (sums, sum) = &mut sums;
            *sum = sum.saturating_add(all);
            for (sum, part) in sums.iter_mut().zip(part) {
                *sum = sum.saturating_add(part);
            }
        }
        Ok(sums)
    }

    /// Number of objects that a thread takes at a time: all, if the sums of that many groups per part would take longer
    /// than the objects.
    fn part(&self, part: usize) -> usize {
        if self.count < self.of.len() / MANY { part } else { self.of.len().max(1) }
    }
}

/// For fewer than one in so many objects, sorting their places in the tree is faster than a pass over it.
const FEW: usize = 16;

/// With more groups than one per so many objects a single thread does all the work, except in tests.
const MANY: usize = if cfg!(test) { 1 } else { 64 };

/// Retained size of the top members of groups; nodes arrive in tree order.
struct Top<'g> {
    groups: &'g Groups,
    retained: &'g Sizes,
    /// End of the last top member's subtree, by group.
    ends: Vec<u32>,
    /// The same for all groups together.
    end: u32,
    sums: Vec<u64>,
    sum: u64,
}

impl<'g> Top<'g> {
    fn of(groups: &'g Groups, retained: &'g Sizes) -> Top<'g> {
        Top {
            groups,
            retained,
            ends: vec![0; groups.count],
            end: 0,
            sums: vec![0; groups.count],
            sum: 0,
        }
    }

    /// Enters the nodes above the first one of a part: an earlier part has counted them.
    fn enter(&mut self, tree: &Tree, node: u32) {
        let group = self.groups.of.get(node as usize).copied().unwrap_or(NONE);
        let Some(place) = tree.place(node).filter(|_| group != NONE) else {
            return;
        };
        let end = tree.ends()[place as usize];
        self.end = self.end.max(end);
        for group in self.groups.chain(group) {
            let known = &mut self.ends[group as usize];
            *known = end.max(*known);
        }
    }

    #[inline]
    fn meet(&mut self, tree: &Tree, place: u32) {
        let (node, subtree_end) = (tree.nodes()[place as usize], tree.ends()[place as usize]);
        let Some(&group) = self.groups.of.get(node as usize) else {
            return;
        };
        if group != NONE && place >= self.end {
            self.end = subtree_end;
            self.sum = self.sum.saturating_add(self.retained.get(node));
        }
        for group in self.groups.chain(group) {
            let Some(end) = self.ends.get_mut(group as usize).filter(|end| place >= **end) else {
                // Then it is also below a member of all ancestor groups.
                break;
            };
            *end = subtree_end;
            let sum = &mut self.sums[group as usize];
            *sum = sum.saturating_add(self.retained.get(node));
        }
    }
}

/// A percentage, rounded to two decimals.
pub(in super::super) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    (part as f64 / whole as f64 * 10_000.0).round() / 100.0
}

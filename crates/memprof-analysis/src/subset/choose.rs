//! Members by type, class or query.

use std::ops::Deref;

use rustc_hash::FxHashMap;

use super::{Name, Subset};
use crate::order;
use crate::questions::{Error, Selection};
use memprof_heap::Heap;
use memprof_heap::graph::BitSet;

/// Number of members per class.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Stats {
    /// Members whose class and type are unknown.
    pub unknown: u64,
    /// Class or a substitute, and the number of its members, largest first. Roots are `ROOT`.
    pub counts: Vec<(String, u64)>,
}

/// The class that roots are counted as.
pub(super) const ROOT: &str = "ROOT";

/// The class of objects whose class is missing in the dump.
const UNKNOWN: &str = "<unknown class>";

impl<H: Deref<Target = Heap> + Clone> Subset<H> {
    /// Members of a type such as `STRING`, in upper or lower case; roots are of type `ROOT`.
    ///
    /// # Errors
    /// See [`Subset::all`].
    pub fn of_type(&self, name: &Name) -> Result<Subset<H>, Error> {
        let holds = |kind: &str| name.holds(kind) || name.holds(&kind.to_ascii_uppercase());
        let wanted = self.heap.groups().iter().map(|group| holds(group.kind.name())).collect();
        let mut chosen = self.of_groups(wanted)?;
        if name.holds(ROOT) || name.holds("root") {
            chosen.extend(self.categories());
        }
        Ok(self.with(BitSet::of(self.members.length(), chosen)))
    }

    /// Members of a class.
    ///
    /// # Errors
    /// See [`Subset::all`].
    pub fn of_class(&self, name: &Name) -> Result<Subset<H>, Error> {
        let classes =
            self.heap.classes().iter().map(|class| name.holds(self.heap.name(class.name)));
        let classes: Vec<bool> = classes.collect();
        let groups = self.heap.groups().iter();
        let wanted = groups.map(|group| classes.get(group.shown as usize) == Some(&true)).collect();
        let mut chosen = self.of_groups(wanted)?;
        let named = (0..).zip(self.groups.iter()).filter(|(_, group)| name.holds(&group.name));
        let named = named.map(|(index, _): (u32, _)| self.heap.root() + 1 + index);
        chosen.extend(named.filter(|&node| self.contains(node)));
        Ok(self.with(BitSet::of(self.members.length(), chosen)))
    }

    fn of_groups(&self, wanted: Vec<bool>) -> Result<Vec<u32>, Error> {
        let groups = self.heap.group_numbers()?;
        let group =
            |node: u32| groups.get(node as usize).and_then(|&group| wanted.get(group as usize));
        Ok(self.iter().filter(|&node| group(node) == Some(&true)).collect())
    }

    /// Members that are root categories.
    pub(super) fn categories(&self) -> impl Iterator<Item = u32> + '_ {
        (self.heap.len()..self.heap.root()).filter(|&node| self.contains(node))
    }

    /// Objects that match a query ([`crate::query`]).
    ///
    /// # Errors
    /// If the query is invalid; also see [`Subset::all`].
    pub fn find_all(&self, query: &str) -> Result<Subset<H>, Error> {
        let selection = Selection::new(&self.heap, Some(query))?;
        let mut members = BitSet::of(self.members.length(), selection.iter());
        members.intersect(&self.members);
        Ok(self.with(members))
    }

    /// Members that a function accepts.
    pub fn filter(&self, wanted: impl FnMut(&u32) -> bool) -> Subset<H> {
        self.with(BitSet::of(self.members.length(), self.iter().filter(wanted)))
    }

    /// A random sample: each member with the same probability, reproducible with the same `seed`.
    pub fn sample(&self, ratio: f64, seed: u64) -> Subset<H> {
        let mut state = seed;
        self.filter(|_| {
            // Splitmix64: any seed is good.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut bits = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            bits ^= bits >> 31;
            ((bits >> 11) as f64 / (1_u64 << 53) as f64) < ratio
        })
    }

    /// Number of members per class.
    ///
    /// # Errors
    /// See [`Subset::all`].
    pub fn stats(&self) -> Result<Stats, Error> {
        let groups = self.heap.group_numbers()?;
        let mut by_group = vec![0_u64; self.heap.groups().len()];
        let mut by_name: FxHashMap<&str, u64> = FxHashMap::default();
        for node in self.iter() {
            if let Some(&group) = groups.get(node as usize) {
                by_group[group as usize] += 1;
            } else {
                let name = self.grouped(node).map_or(ROOT, |group| &group.name);
                *by_name.entry(name).or_default() += 1;
            }
        }
        for (group, count) in
            self.heap.groups().iter().zip(by_group).filter(|(_, count)| *count > 0)
        {
            let class = self.heap.classes().get(group.shown as usize);
            let name = class.map_or(UNKNOWN, |class| self.heap.name(class.name));
            *by_name.entry(name).or_default() += count;
        }
        let unknown = by_name.remove(UNKNOWN).unwrap_or(0);
        let mut counts: Vec<(String, u64)> =
            by_name.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
        order::sort_by(&mut counts, |left, right| {
            right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0))
        });
        Ok(Stats { unknown, counts })
    }

    /// Members that reference at least `least` members, with the number of these, smallest first.
    ///
    /// # Errors
    /// See [`Subset::all`].
    pub fn out_degree(&self, least: usize) -> Result<Vec<(u32, usize)>, Error> {
        let view = self.view()?;
        let mut targets = Vec::new();
        let mut degrees = Vec::new();
        for node in self.iter() {
            view.distinct(node, &mut targets);
            let degree = targets.iter().filter(|&&target| self.contains(target)).count();
            if degree >= least {
                degrees.push((node, degree));
            }
        }
        degrees.sort_by_key(|&(_, degree)| degree);
        Ok(degrees)
    }
}

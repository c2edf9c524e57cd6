//! Members by referrers and references.

use std::ops::Deref;

use super::compact::Compact;
use super::{Annotation, Subset};
use crate::questions::Error;
use memprof_heap::Heap;
use memprof_heap::graph::{self, BitSet, Inbound};

/// The annotation of [`Subset::parents_of`].
const REFERENCES: &str = "references";

impl<H: Deref<Target = Heap> + Clone> Subset<H> {
    /// Members that reference more than `min` members of `other`, which need not be members here. Each is annotated with
    /// how many (`references`). `exclude` omits those that are members of `other`.
    ///
    /// # Errors
    /// See [`Subset::all`].
    pub fn parents_of(
        &self,
        other: &Subset<H>,
        min: usize,
        exclude: bool,
    ) -> Result<Subset<H>, Error> {
        let view = self.view()?;
        let mut targets = Vec::new();
        let mut counts = Annotation::default();
        for node in self.iter().filter(|&node| !(exclude && other.contains(node))) {
            view.distinct(node, &mut targets);
            let count = targets.iter().filter(|&&target| other.contains(target)).count();
            if count > min {
                counts.insert(node, count as u64);
            }
        }
        let parents = self.with(BitSet::of(self.members.length(), counts.keys().copied()));
        Ok(parents.annotate(REFERENCES, counts))
    }

    /// Members that no member references.
    ///
    /// # Errors
    /// See [`Subset::all`].
    pub fn roots(&self) -> Result<Subset<H>, Error> {
        let view = self.view()?;
        let mut members = self.members.clone();
        for node in self.iter() {
            for target in view.references(node) {
                members.remove(target);
            }
        }
        Ok(self.with(members))
    }

    /// Members of `parents`, and the members that they reference.
    ///
    /// # Errors
    /// See [`Subset::all`].
    pub fn add_children(&self, parents: &Subset<H>) -> Result<Subset<H>, Error> {
        let view = self.view()?;
        let mut members = self.known(parents);
        members.intersect(&self.members);
        let parents_here: Vec<u32> = members.iter().collect();
        for node in parents_here {
            for target in view.references(node).filter(|&target| self.contains(target)) {
                members.insert(target);
            }
        }
        let mut family = self.with(members);
        family.take_annotations(parents);
        Ok(family)
    }

    /// A member and all members that reach it, with the references between these.
    ///
    /// # Errors
    /// See [`Subset::all`].
    pub fn root_of(&self, node: u32) -> Result<Subset<H>, Error> {
        let compact = Compact::of(&self.view()?, &self.members, []);
        let inbound = Inbound::of(&compact.graph());
        let target = BitSet::of(compact.nodes.len(), [compact.number(node)]);
        let reached = graph::ancestors(&inbound, &target);
        Ok(self.closed(compact.set(self.members.length(), reached.iter())))
    }

    /// Members that reach all members of `other`, with the references between these.
    ///
    /// # Errors
    /// See [`Subset::all`].
    pub fn common_ancestors(&self, other: &Subset<H>) -> Result<Subset<H>, Error> {
        let compact = Compact::of(&self.view()?, &self.members, []);
        let inbound = Inbound::of(&compact.graph());
        let length = compact.nodes.len();
        let mut common: Option<BitSet> = None;
        for node in other.iter().filter(|&node| self.contains(node)) {
            let reached = graph::ancestors(&inbound, &BitSet::of(length, [compact.number(node)]));
            match &mut common {
                Some(common) => common.intersect(&reached),
                None => common = Some(reached),
            }
            if common.as_ref().is_some_and(BitSet::is_empty) {
                break;
            }
        }
        let common = common.unwrap_or_default();
        Ok(self.closed(compact.set(self.members.length(), common.iter())))
    }

    /// A member and the members at most `max_depth` references away from it.
    ///
    /// # Errors
    /// See [`Subset::all`].
    pub fn subgraph_of(&self, node: u32, max_depth: u32) -> Result<Subset<H>, Error> {
        let view = self.view()?;
        let mut reached = BitSet::new(self.members.length());
        let mut level = Vec::new();
        if self.contains(node) {
            reached.insert(node);
            level.push(node);
        }
        for _ in 0..max_depth {
            let mut next = Vec::new();
            for &node in &level {
                let targets = view.references(node).filter(|&target| self.contains(target));
                next.extend(targets.filter(|&target| reached.insert(target)));
            }
            if next.is_empty() {
                break;
            }
            level = next;
        }
        Ok(self.with(reached))
    }

    /// Members reachable from members of `from` through members, including these.
    ///
    /// # Errors
    /// See [`Subset::all`].
    pub fn reachable_from(&self, from: &Subset<H>) -> Result<Subset<H>, Error> {
        let starts: Vec<u32> = from.iter().collect();
        Ok(self.with(self.reach(&starts, None)?))
    }

    /// Members still reachable from the members that no member references ([`Subset::roots`]) if one member is removed.
    ///
    /// # Errors
    /// See [`Subset::all`].
    pub fn remove_node(&self, node: u32) -> Result<Subset<H>, Error> {
        let roots: Vec<u32> = self.roots()?.iter().filter(|&root| root != node).collect();
        let reached = self.reach(&roots, Some(node))?;
        Ok(self.closed(reached))
    }

    /// Members reachable from some members on paths that avoid `without`.
    pub(super) fn reach(&self, from: &[u32], without: Option<u32>) -> Result<BitSet, Error> {
        let view = self.view()?;
        let mut reached = BitSet::new(self.members.length());
        let mut stack = Vec::new();
        let passes = |node: &u32| self.contains(*node) && Some(*node) != without;
        for &start in from {
            let mut next = Some(start).filter(passes).filter(|&start| reached.insert(start));
            while let Some(node) = next {
                stack.extend(
                    view.references(node).filter(passes).filter(|&target| reached.insert(target)),
                );
                next = stack.pop();
            }
        }
        Ok(reached)
    }
}

//! Paths through a subset.

use std::ops::Deref;

use super::Subset;
use super::compact::Compact;
use super::subset_edges::Own;
use crate::questions::Error;
use memprof_heap::graph::{self, BitSet, Visit};
use memprof_heap::{Heap, NONE};

impl<H: Deref<Target = Heap> + Clone> Subset<H> {
    /// The objects of `wanted` that roots reach, a shortest path from the roots to each, and the references between all of
    /// these: the graph that keeps them alive. Roots are the root categories, or the members of `from`. Annotations of
    /// `wanted` take precedence.
    ///
    /// # Errors
    /// See [`Subset::all`].
    pub fn roots_of(
        &self,
        wanted: &Subset<H>,
        from: Option<&Subset<H>>,
    ) -> Result<Subset<H>, Error> {
        let starts = self.starts(from);
        let compact = Compact::of(&self.view()?, &self.members, starts);
        let paths = graph::shortest_paths(&compact.graph(), compact.root());
        let mut reached = BitSet::new(compact.nodes.len());
        for node in wanted.iter() {
            let mut number = compact.number(node);
            while paths.parent.get(number as usize).is_some_and(|&parent| parent != NONE)
                && reached.insert(number)
            {
                number = paths.parent[number as usize];
            }
        }
        let mut found = self.closed(compact.set(self.members.length(), reached.iter()));
        found.take_annotations(wanted);
        Ok(found)
    }

    fn starts(&self, from: Option<&Subset<H>>) -> Vec<u32> {
        match from {
            Some(from) => from.iter().collect(),
            None => self.categories().collect(),
        }
    }

    /// A shortest path from one member to another, including both; empty if there is none.
    ///
    /// # Errors
    /// See [`Subset::all`].
    pub fn find_path(&self, from: u32, to: u32) -> Result<Vec<u32>, Error> {
        let compact = Compact::of(&self.view()?, &self.members, []);
        let (start, end) = (compact.number(from), compact.number(to));
        if start == NONE || end == NONE {
            return Ok(Vec::new());
        }
        let paths = graph::shortest_paths(&compact.graph(), start);
        Ok(paths.path(end).into_iter().map(|number| compact.node(number)).collect())
    }

    /// A tree of shortest paths from the only member of `root` to all members that it reaches. It is a minimum spanning
    /// tree, as all references have the same weight.
    ///
    /// # Errors
    /// If `root` has not exactly one member; see [`Subset::all`], too.
    pub fn minimum_spanning_tree(&self, root: &Subset<H>) -> Result<Subset<H>, Error> {
        let mut roots = root.iter();
        let (Some(start), None) = (roots.next(), roots.next()) else {
            let message = format!("a spanning tree needs one root, not {}", root.len());
            return Err(Error::Question(message));
        };
        let compact = Compact::of(&self.view()?, &self.members, []);
        let start = compact.number(start);
        let paths = graph::shortest_paths(&compact.graph(), start);
        let mut pairs = Vec::new();
        for (&parent, number) in paths.parent.iter().zip(0..).filter(|(parent, _)| **parent != NONE)
        {
            pairs.push((compact.node(parent), compact.node(number)));
        }
        pairs.sort_unstable();
        let mut rest = pairs.iter().peekable();
        let rows = Own::build(self.nodes(), |node, targets| {
            while let Some(&&(_, target)) = rest.peek().filter(|(parent, _)| *parent == node) {
                targets.push(target);
                rest.next();
            }
        })?;
        let members = pairs.iter().map(|&(_, node)| node).chain([compact.node(start)]);
        let members = BitSet::of(self.members.length(), members);
        Ok(Subset { members, ..self.with_own(rows) })
    }

    /// Walks depth first over the members that a member reaches, itself first; each node once, with its referrer on the
    /// walk.
    ///
    /// # Errors
    /// See [`Subset::all`].
    pub fn depth_first(&self, node: u32) -> Result<Vec<Visit>, Error> {
        let compact = Compact::of(&self.view()?, &self.members, []);
        let visits = graph::depth_first(&compact.graph(), compact.number(node), u32::MAX);
        let visits = visits.into_iter().map(|visit| Visit {
            node: compact.node(visit.node),
            parent: visit.parent.map(|parent| compact.node(parent)),
        });
        Ok(visits.collect())
    }

    /// The nearest member on all paths from the root categories to all members of `other`. `None` if there is none, as
    /// several roots or no root retain them.
    ///
    /// # Errors
    /// See [`Subset::all`].
    pub fn nearest_common_dominator(&self, other: &Subset<H>) -> Result<Option<u32>, Error> {
        let compact = Compact::of(&self.view()?, &self.members, self.starts(None));
        let tree = graph::dominators(&compact.graph(), compact.root());
        let wanted: Vec<u32> = other.iter().map(|node| compact.number(node)).collect();
        let common = compact.node(graph::nearest_common(&tree, &wanted));
        Ok(Some(common).filter(|&node| node != NONE))
    }
}

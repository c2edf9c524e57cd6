//! Operations that change references: they remove or merge members.

use std::ops::Deref;
use std::sync::Arc;

use super::subset_edges::{Edges, Own, View};
use super::{Grouped, Name, Subset};
use crate::questions::Error;
use memprof_heap::Heap;
use memprof_heap::graph::BitSet;

/// The method that writes a dump: objects that it allocates belong to the dump, not to the program.
const DUMPER: &str = "dump_all";

/// Invalid reference targets of a set.
#[derive(Debug)]
pub struct Missing {
    /// Nodes of the heap that are not members.
    pub nodes: BitSet,
    /// Addresses at which the dump has no object, in order.
    pub addresses: Vec<u64>,
}

impl<H: Deref<Target = Heap> + Clone> Subset<H> {
    /// Removes these members and the references to them.
    pub fn without(&self, entries: &Subset<H>) -> Subset<H> {
        let mut members = self.members.clone();
        members.subtract(&entries.members);
        let mut within = BitSet::of(self.nodes() as usize, 0..self.nodes());
        within.subtract(&entries.members);
        Subset { members, edges: self.edges.within(within), ..self.clone() }
    }

    /// Removes references to nodes that are not members; also returns these nodes.
    ///
    /// # Errors
    /// See [`Subset::all`].
    pub fn remove_invalid_references(&self) -> Result<(Subset<H>, Missing), Error> {
        let view = self.view()?;
        let mut nodes = BitSet::new(self.nodes() as usize);
        for node in self.iter() {
            for target in view.references(node).filter(|&target| !self.contains(target)) {
                nodes.insert(target);
            }
        }
        let mut addresses = Vec::new();
        if !self.closed {
            let dangling = self.heap.dangling()?;
            let of_members = dangling.filter(|&(from, _)| self.contains(from));
            addresses.extend(of_members.map(|(_, to)| to));
            addresses.sort_unstable();
            addresses.dedup();
        }
        let set = Subset { closed: true, ..self.closed(self.members.clone()) };
        Ok((set, Missing { nodes, addresses }))
    }

    /// Removes these members: their referrers reference their targets instead.
    ///
    /// # Errors
    /// If there would be more than 4 billion references; also see [`Subset::all`].
    pub fn collapse(&self, entries: &Subset<H>) -> Result<Subset<H>, Error> {
        let mut gone = entries.members.clone();
        gone.intersect(&self.members);
        let mut members = self.members.clone();
        members.subtract(&gone);
        let view = self.view()?;
        let mut walk =
            Through { view: &view, gone: &gone, seen: BitSet::new(gone.length()), met: Vec::new() };
        let rows = Own::build(self.nodes(), |node, targets| {
            if members.contains(node) {
                walk.targets(node, targets);
            }
        })?;
        Ok(Subset { members, ..self.with_own(rows) })
    }

    /// Hides objects that are rarely of interest: removes weak references and objects that the dump itself allocated;
    /// collapses arrays, hashes, sets, captured variables and the VM's own objects.
    ///
    /// # Errors
    /// See [`Subset::collapse`].
    pub fn common_cleanup(&self) -> Result<Subset<H>, Error> {
        let cleaned = self.without(&self.of_class(&Name::Is("WeakRef".to_owned()))?);
        let mut entries = cleaned.made_by(DUMPER)?;
        for class in ["Set", "RubyVM::Env"] {
            entries.unite(cleaned.of_class(&Name::Is(class.to_owned()))?.members());
        }
        for kind in ["IMEMO", "HASH", "ARRAY", "ICLASS"] {
            entries.unite(cleaned.of_type(&Name::Is(kind.to_owned()))?.members());
        }
        cleaned.collapse(&cleaned.with(entries))
    }

    /// Members that a method allocated.
    fn made_by(&self, method: &str) -> Result<BitSet, Error> {
        let heap = &self.heap;
        let made =
            |site: &memprof_heap::Site| site.method.is_some_and(|name| heap.name(name) == method);
        let made: Vec<bool> = heap.sites().iter().map(made).collect();
        let sites = heap.site_numbers()?;
        let site = |node: u32| sites.get(node as usize).and_then(|&site| made.get(site as usize));
        let found = self.iter().filter(|&node| site(node) == Some(&true));
        Ok(BitSet::of(self.members.length(), found))
    }

    /// Removes members that no member references and that reach at most `max_size` members, including themselves, together with
    /// the members that only these keep alive.
    ///
    /// # Errors
    /// See [`Subset::all`].
    pub fn remove_small_components(&self, max_size: u64) -> Result<Subset<H>, Error> {
        let roots: Vec<u32> = self.roots()?.iter().collect();
        let counts = self.keepalive_counts(&roots)?;
        let is_small = |root: u32| counts.get(&root).is_some_and(|&count| count <= max_size);
        let small: Vec<u32> = roots.into_iter().filter(|&root| is_small(root)).collect();
        let mut dropped = self.reach(&small, None)?;
        // Members that others reach remain: from roots that are not small, and from cycles that no root reaches.
        let all: Vec<u32> = self.iter().filter(|&node| !dropped.contains(node)).collect();
        dropped.subtract(&self.reach(&all, None)?);
        Ok(self.without(&self.with(dropped)))
    }

    /// Replaces the members of `set` by one node: it references their targets outside of the set, and their referrers
    /// reference it. Also returns its number.
    ///
    /// # Errors
    /// If no such member exists; also see [`Subset::all`].
    pub fn group(&self, name: &str, set: &Subset<H>) -> Result<(Subset<H>, u32), Error> {
        let replaced = set.intersection(self);
        if replaced.is_empty() {
            return Err(Error::Question("a group needs at least one member".to_owned()));
        }
        let group = self.nodes();
        let count =
            replaced.iter().map(|node| self.grouped(node).map_or(1, |group| group.count)).sum();
        let grouped = Grouped {
            name: name.to_owned(),
            count,
            size: self.with(replaced.members.clone()).size()?,
        };
        let view = self.view()?;
        let mut outside: Vec<u32> =
            replaced.iter().flat_map(|node| view.references(node)).collect();
        outside.retain(|&target| !replaced.contains(target));
        let rows = Own::build(group + 1, |node, targets| {
            if node == group {
                targets.append(&mut outside);
            } else if self.contains(node) && !replaced.contains(node) {
                let inside = |target| {
                    if replaced.contains(target) { group } else { target }
                };
                targets.extend(view.references(node).map(inside));
            }
        })?;
        let rest = self.iter().filter(|&node| !replaced.contains(node)).chain([group]);
        let mut groups = self.groups.to_vec();
        groups.push(grouped);
        let subset = Subset {
            members: BitSet::of(group as usize + 1, rest),
            edges: Edges::of(rows),
            groups: Arc::new(groups),
            ..self.clone()
        };
        Ok((subset, group))
    }
}

/// References through collapsed members.
struct Through<'w> {
    view: &'w View<'w>,
    gone: &'w BitSet,
    seen: BitSet,
    /// The nodes that were met, to reset them afterwards; those from `next` on were not visited yet.
    met: Vec<u32>,
}

impl Through<'_> {
    fn targets(&mut self, node: u32, targets: &mut Vec<u32>) {
        self.step(node, targets);
        let mut next = 0;
        while let Some(&node) = self.met.get(next) {
            next += 1;
            self.step(node, targets);
        }
        for node in self.met.drain(..) {
            self.seen.remove(node);
        }
    }

    fn step(&mut self, node: u32, targets: &mut Vec<u32>) {
        for target in self.view.references(node) {
            if !self.gone.contains(target) {
                targets.push(target);
            } else if self.seen.insert(target) {
                self.met.push(target);
            }
        }
    }
}

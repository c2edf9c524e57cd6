//! Sets of objects of one heap and operations on them: find a leak by taking a graph apart.
//!
//! A [`Subset`] has members and the references between them. It is immutable; each operation returns a new one, which
//! shares data with the old one. As in an objspace dump, an object does not reference its class, unless
//! [`Subset::with_class_references`] adds that reference. Otherwise each object would reach `Object`, and with it the whole
//! program.
//!
//! Members are objects, root categories, and nodes that represent many ([`Subset::group`]).

mod answer;
mod choose;
mod compact;
mod gml;
mod keepalive;
mod name;
mod relatives;
mod rewrite;
#[cfg(test)]
pub(crate) mod sample_subsets;
mod save;
mod subset_edges;
mod subset_paths;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use rustc_hash::FxHashMap;

pub use answer::{Answer, Member};
pub use choose::Stats;
pub use keepalive::Interface;
pub use name::Name;
pub use rewrite::Missing;

use crate::questions::{Changes, Error};
use memprof_heap::graph::BitSet;
use memprof_heap::{FOLDED, Heap};
use subset_edges::{Edges, Own, View};

/// Numbers that annotate members, such as `keepalive_count`.
pub type Annotation = FxHashMap<u32, u64>;

/// A node that represents the members of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grouped {
    /// Name given by the caller.
    pub name: String,
    /// Number of objects that it represents.
    pub count: u64,
    /// Sum of their memsizes.
    pub size: u64,
}

/// Some objects of a heap, and the references between them. `H` refers to the heap: `&Heap` or `Arc<Heap>`.
#[derive(Clone)]
pub struct Subset<H> {
    heap: H,
    members: BitSet,
    edges: Edges,
    /// References to objects missing in the dump were removed.
    closed: bool,
    groups: Arc<Vec<Grouped>>,
    annotations: BTreeMap<String, Arc<Annotation>>,
}

impl<H: Deref<Target = Heap> + Clone> Subset<H> {
    /// All objects and root categories.
    ///
    /// # Errors
    /// If the index cannot be read, as for every method that reads the heap.
    pub fn all(heap: H) -> Result<Subset<H>, Error> {
        let mut members = BitSet::new(heap.root() as usize + 1);
        let flags = heap.flag_words()?;
        let folded = |id: u32| flags.get(id as usize).is_some_and(|flags| flags & FOLDED.0 != 0);
        for node in (0..heap.root()).filter(|&node| !folded(node)) {
            members.insert(node);
        }
        Ok(Subset::new(heap, members))
    }

    /// These nodes; the super root is never a member.
    pub fn of(heap: H, nodes: impl IntoIterator<Item = u32>) -> Subset<H> {
        let root = heap.root();
        let members = BitSet::of(root as usize + 1, nodes.into_iter().filter(|&node| node != root));
        Subset::new(heap, members)
    }

    fn new(heap: H, members: BitSet) -> Subset<H> {
        Subset {
            heap,
            members,
            edges: Edges::default(),
            closed: false,
            groups: Arc::default(),
            annotations: BTreeMap::new(),
        }
    }

    /// Other members, with the same references.
    fn with(&self, members: BitSet) -> Subset<H> {
        Subset { members, ..self.clone() }
    }

    /// These members and only the references between them.
    fn closed(&self, members: BitSet) -> Subset<H> {
        let edges = self.edges.within(members.clone());
        Subset { members, edges, ..self.clone() }
    }

    /// The same members, with references of their own.
    fn with_own(&self, own: Own) -> Subset<H> {
        Subset { edges: Edges::of(own), ..self.clone() }
    }

    /// The heap.
    pub fn heap(&self) -> &Heap {
        &self.heap
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        self.members.count()
    }

    /// True if it has no members.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// True if the node is a member.
    pub fn contains(&self, node: u32) -> bool {
        self.members.contains(node)
    }

    /// The members, in order of their addresses; root categories and groups last.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.members.iter()
    }

    /// The members as a set of numbers.
    pub fn members(&self) -> &BitSet {
        &self.members
    }

    /// The member at an address.
    pub fn at(&self, address: u64) -> Option<u32> {
        self.heap.at(address).filter(|&node| self.contains(node))
    }

    /// The root category with this name, if it is a member.
    pub fn root_at(&self, category: &str) -> Option<u32> {
        let mut roots = (0..).zip(self.heap.categories());
        let (index, _) = roots.find(|(_, known)| known.name == category)?;
        Some(self.heap.category_node(index)).filter(|&node| self.contains(node))
    }

    /// The node that represents many, if the number is one of these.
    pub fn grouped(&self, node: u32) -> Option<&Grouped> {
        let index = node.checked_sub(self.heap.root() + 1)?;
        self.groups.get(index as usize)
    }

    /// Sum of the members' memsizes.
    ///
    /// # Errors
    /// See [`Subset::all`].
    pub fn size(&self) -> Result<u64, Error> {
        let sizes = self.heap.memsizes()?;
        let size = |node| self.grouped(node).map_or_else(|| sizes.get(node), |group| group.size);
        let members = self.members.iter();
        Ok(members.fold(0, |sum: u64, node| sum.saturating_add(size(node))))
    }

    /// The nodes that a member references, members or not: each node once, in order.
    ///
    /// # Errors
    /// See [`Subset::all`].
    pub fn references(&self, node: u32) -> Result<Vec<u32>, Error> {
        let mut targets = Vec::new();
        self.view()?.distinct(node, &mut targets);
        Ok(targets)
    }

    /// The members that a member references: each once, in order.
    ///
    /// # Errors
    /// See [`Subset::all`].
    pub fn children(&self, node: u32) -> Result<Vec<u32>, Error> {
        let mut targets = self.references(node)?;
        targets.retain(|&target| self.contains(target));
        Ok(targets)
    }

    /// The same members, including references to their classes.
    ///
    /// # Errors
    /// See [`Subset::all`].
    pub fn with_class_references(&self) -> Result<Subset<H>, Error> {
        if self.edges.own.is_none() {
            let edges = Edges { classes: true, ..self.edges.clone() };
            return Ok(Subset { edges, ..self.clone() });
        }
        let view = self.view()?;
        let rows = Own::build(self.nodes(), |node, targets| {
            targets.extend(view.references(node));
            targets.extend(view.class_of(node));
        })?;
        Ok(self.with_own(rows))
    }

    /// Numbers that annotate members, by name.
    pub fn annotations(&self) -> impl Iterator<Item = (&str, &Annotation)> {
        self.annotations.iter().map(|(name, numbers)| (name.as_str(), &**numbers))
    }

    /// The number that annotates a node.
    pub fn annotation(&self, name: &str, node: u32) -> Option<u64> {
        self.annotations.get(name)?.get(&node).copied()
    }

    /// The same with members annotated by numbers. Subsets derived from this one inherit annotations.
    pub fn annotate(&self, name: &str, numbers: Annotation) -> Subset<H> {
        let mut marked = self.clone();
        marked.annotations.insert(name.to_owned(), Arc::new(numbers));
        marked
    }

    /// Annotations of another subset take precedence.
    fn take_annotations(&mut self, other: &Subset<H>) {
        for (name, numbers) in &other.annotations {
            let own = self.annotations.entry(name.clone()).or_default();
            if own.is_empty() {
                *own = Arc::clone(numbers);
            } else if !Arc::ptr_eq(own, numbers) {
                Arc::make_mut(own).extend(numbers.iter().map(|(&node, &number)| (node, number)));
            }
        }
    }

    /// Upper bound of node numbers.
    fn nodes(&self) -> u32 {
        self.heap.root() + 1 + self.groups.len() as u32
    }

    /// A view of the references.
    fn view(&self) -> Result<View<'_>, Error> {
        View::new(&self.heap, &self.edges)
    }

    /// The members of another subset, as far as this one can number them.
    fn known(&self, other: &Subset<H>) -> BitSet {
        let mut set = BitSet::new(self.nodes() as usize);
        set.unite(&other.members);
        set
    }

    /// Members of this one or the other.
    ///
    /// # Errors
    /// If both have their own nodes that represent many; also see [`Subset::all`].
    pub fn union(&self, other: &Subset<H>) -> Result<Subset<H>, Error> {
        if !Arc::ptr_eq(&self.groups, &other.groups) && !self.groups.is_empty() {
            if !other.groups.is_empty() {
                return Err(Error::Question("both sets have groups of their own".to_owned()));
            }
            let mut united = other.union(self)?;
            united.take_annotations(self);
            return Ok(united);
        }
        let mut members = other.members.clone();
        members.unite(&self.members);
        let mut united = Subset { members, groups: Arc::clone(&other.groups), ..self.clone() };
        united.take_annotations(other);
        if !self.edges.same(&other.edges) {
            let (mine, theirs) = (self.view()?, other.view()?);
            let rows = Own::build(united.nodes(), |node, targets| {
                if self.contains(node) {
                    targets.extend(mine.references(node));
                } else if other.contains(node) {
                    targets.extend(theirs.references(node));
                }
            })?;
            united.edges = Edges::of(rows);
        }
        Ok(united)
    }

    /// Members of both.
    pub fn intersection(&self, other: &Subset<H>) -> Subset<H> {
        let mut members = self.members.clone();
        members.intersect(&other.members);
        self.with(members)
    }

    /// Members of this one that are not members of the other. References to removed members remain.
    pub fn difference(&self, other: &Subset<H>) -> Subset<H> {
        let mut members = self.members.clone();
        members.subtract(&other.members);
        self.with(members)
    }

    /// Members of `to` that are not members here. Across two heaps, objects are the same according to [`Changes`], and root
    /// categories if they have the same name.
    ///
    /// # Errors
    /// See [`Subset::all`].
    pub fn diff(&self, to: &Subset<H>) -> Result<Subset<H>, Error> {
        if std::ptr::eq(self.heap(), to.heap()) {
            return Ok(to.difference(self));
        }
        let changes = Changes::between(self.heap(), to.heap())?;
        let before = |node: u32| match to.heap().category(node) {
            Some(category) => self.root_at(&category.name),
            None => changes.origin(node),
        };
        let new = to.iter().filter(|&node| !before(node).is_some_and(|node| self.contains(node)));
        let members = BitSet::of(to.members.length(), new);
        Ok(to.with(members))
    }
}

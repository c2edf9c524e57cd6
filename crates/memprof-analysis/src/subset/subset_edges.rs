//! The references of a subset: those of the heap, or its own rows.

use std::sync::Arc;

use crate::questions::Error;
use memprof_heap::graph::{BitSet, Graph};
use memprof_heap::{Heap, NONE};

/// The source of references.
#[derive(Clone, Default)]
pub(super) struct Edges {
    /// Rows that replace the heap's.
    pub own: Option<Arc<Own>>,
    /// Only references to these count.
    pub within: Option<Arc<BitSet>>,
    /// References to classes count; own rows include them already.
    pub classes: bool,
}

impl Edges {
    pub fn of(own: Own) -> Edges {
        Edges { own: Some(Arc::new(own)), ..Edges::default() }
    }

    /// Only references to these count.
    pub fn within(&self, set: BitSet) -> Edges {
        let mut set = set;
        if let Some(before) = &self.within {
            set.intersect(before);
        }
        Edges { within: Some(Arc::new(set)), ..self.clone() }
    }

    /// True if both are identical.
    pub fn same(&self, other: &Edges) -> bool {
        fn one<T>(left: &Option<Arc<T>>, right: &Option<Arc<T>>) -> bool {
            match (left, right) {
                (Some(left), Some(right)) => Arc::ptr_eq(left, right),
                (None, None) => true,
                _ => false,
            }
        }
        one(&self.own, &other.own)
            && one(&self.within, &other.within)
            && self.classes == other.classes
    }
}

/// A row for each node.
#[derive(Clone, Debug, Default)]
pub(super) struct Own {
    offsets: Vec<u32>,
    targets: Vec<u32>,
}

impl Own {
    /// Rows of the nodes 0..`nodes`, appended by `row` one after the other, without duplicate targets.
    pub fn build(nodes: u32, mut row: impl FnMut(u32, &mut Vec<u32>)) -> Result<Own, Error> {
        let mut own = Own { offsets: Vec::with_capacity(nodes as usize + 1), targets: Vec::new() };
        let mut targets = Vec::new();
        for node in 0..nodes {
            own.offsets.push(own.targets.len() as u32);
            targets.clear();
            row(node, &mut targets);
            targets.sort_unstable();
            targets.dedup();
            own.targets.extend_from_slice(&targets);
            if own.targets.len() >= NONE as usize {
                return Err(Error::Question(
                    "the result has more than 4 billion references".to_owned(),
                ));
            }
        }
        own.offsets.push(own.targets.len() as u32);
        Ok(own)
    }

    fn row(&self, node: u32) -> &[u32] {
        let node = node as usize;
        match self.offsets.get(node..node + 2) {
            Some(&[begin, end]) => &self.targets[begin as usize..end as usize],
            _ => &[],
        }
    }
}

/// A view of the references.
pub(super) struct View<'s> {
    graph: Graph<'s>,
    own: Option<&'s Own>,
    within: Option<&'s BitSet>,
    /// Class of each group.
    classes: Vec<u32>,
    count_classes: bool,
    objects: u32,
    root: u32,
}

impl<'s> View<'s> {
    pub fn new(heap: &'s Heap, edges: &'s Edges) -> Result<View<'s>, Error> {
        Ok(View {
            graph: heap.graph(&[])?,
            own: edges.own.as_deref(),
            within: edges.within.as_deref(),
            classes: heap.group_classes(),
            count_classes: edges.classes && edges.own.is_none(),
            objects: heap.len(),
            root: heap.root(),
        })
    }

    /// The class of an object, if a reference to it can count.
    pub fn class_of(&self, node: u32) -> Option<u32> {
        let group = *self.graph.extra.group.get(node as usize)?;
        let class = *self.classes.get(group as usize)?;
        self.counts(class).then_some(class)
    }

    /// True if references to it count.
    pub fn counts(&self, target: u32) -> bool {
        target != NONE
            && target != self.root
            && self.within.is_none_or(|within| within.contains(target))
    }

    /// All references of a node except the one to its class, whether they count or not.
    pub fn row(&self, node: u32) -> &'s [u32] {
        match self.own {
            Some(own) => own.row(node),
            None => self.graph.row(node),
        }
    }

    /// The nodes that a node references, possibly with duplicates.
    pub fn references(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let row = self.row(node);
        let class =
            if self.count_classes && node < self.objects { self.class_of(node) } else { None };
        row.iter().copied().filter(|&target| self.counts(target)).chain(class)
    }

    /// The nodes that a node references, each once and in order; replaces the contents of `targets`.
    pub fn distinct(&self, node: u32, targets: &mut Vec<u32>) {
        targets.clear();
        targets.extend(self.references(node));
        targets.sort_unstable();
        targets.dedup();
    }
}

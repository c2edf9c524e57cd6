//! Some objects of a heap, in order: their properties, their joint retained size, and operations on them.

use std::cmp::Reverse;
use std::io;
use std::ops::Deref;
use std::sync::Arc;

use memprof_heap::graph::{self, BitSet};
use memprof_heap::{FOLDED, Heap, NONE};
use rustc_hash::FxHashMap;

use crate::query::Field;
use crate::questions::{Error, Selection, largest};

#[cfg(test)]
mod tests;

/// Objects of a heap, in order. `H` refers to the heap: `&Heap` or `Arc<Heap>`. Copies share the numbers.
#[derive(Clone)]
pub struct Objects<H> {
    heap: H,
    ids: Arc<Vec<u32>>,
    /// All objects, so that a filter may also ask for free malloc blocks.
    whole: bool,
}

/// How two collections are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// Objects in both.
    And,
    /// Objects in either, those of the first one first.
    Or,
    /// Objects in the first one only.
    Not,
}

/// A numeric field of objects, for sums and orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure(Field);

/// The numeric fields.
const MEASURES: [Field; 7] = [
    Field::Size,
    Field::Retained,
    Field::Length,
    Field::Slot,
    Field::References,
    Field::Generation,
    Field::Address,
];

impl Measure {
    /// Looks up a measure by name.
    ///
    /// # Errors
    /// If the field does not exist or is not a number.
    pub fn parse(name: &str) -> Result<Measure, Error> {
        let found = Field::parse(name).filter(|field| MEASURES.contains(field));
        found.map(Measure).ok_or_else(|| {
            let known: Vec<&str> = MEASURES.iter().map(|field| field.name()).collect();
            let known = known.join(", ");
            Error::Question(format!(
                "unknown field {name:?} for a sum or an order; expected one of: {known}"
            ))
        })
    }

    /// The value for each object; 0 if unknown.
    fn values(self, heap: &Heap) -> io::Result<Box<dyn Fn(u32) -> u64 + '_>> {
        fn known<'h>(column: &'h [u32]) -> Box<dyn Fn(u32) -> u64 + 'h> {
            Box::new(move |id| {
                let value = column.get(id as usize).copied();
                value.filter(|&value| value != NONE).map_or(0, u64::from)
            })
        }
        Ok(match self.0 {
            Field::Retained => {
                let sizes = heap.retained()?;
                Box::new(|id| sizes.get(id))
            }
            Field::Length => known(heap.lengths()?),
            Field::Generation => known(heap.generations()?),
            Field::Slot => Box::new(|id| u64::from(heap.slot_size(id))),
            Field::Address => Box::new(|id| heap.addresses().of(id)),
            Field::References => {
                let graph = heap.graph(&[])?;
                Box::new(move |id| graph.row(id).len() as u64)
            }
            _ => {
                let sizes = heap.memsizes()?;
                Box::new(|id| sizes.get(id))
            }
        })
    }
}

impl<H: Deref<Target = Heap> + Clone> Objects<H> {
    /// These nodes.
    pub fn new(heap: H, ids: Vec<u32>) -> Objects<H> {
        Objects { heap, ids: Arc::new(ids), whole: false }
    }

    fn with(&self, ids: Vec<u32>) -> Objects<H> {
        Objects::new(self.heap.clone(), ids)
    }

    /// All objects, except those folded into their owner.
    ///
    /// # Errors
    /// If the index cannot be read, here and below.
    pub fn all(heap: H) -> io::Result<Objects<H>> {
        let flags = heap.flag_words()?.iter().zip(0..);
        let ids = flags.filter(|(flags, _)| **flags & FOLDED.0 == 0);
        let ids = ids.map(|(_, id)| id).collect();
        Ok(Objects { whole: true, ..Objects::new(heap, ids) })
    }

    /// The objects that match a filter, in order of address.
    ///
    /// # Errors
    /// If the filter is invalid.
    pub fn chosen(heap: H, filter: &str) -> Result<Objects<H>, Error> {
        let ids = Selection::new(&heap, Some(filter))?.iter().collect();
        Ok(Objects::new(heap, ids))
    }

    /// Instances of a class, skipping singleton classes in between.
    pub fn instances(heap: H, class: u32) -> io::Result<Objects<H>> {
        let groups = heap.groups().iter().map(|group| {
            let shown = heap.classes().get(group.shown as usize);
            group.class == class || shown.is_some_and(|shown| shown.object == class)
        });
        let groups: Vec<bool> = groups.collect();
        let numbers = heap.group_numbers()?;
        let is_of = |id: &u32| {
            let group = numbers.get(*id as usize);
            group.is_some_and(|&group| groups.get(group as usize) == Some(&true))
        };
        let all = Objects::all(heap.clone())?;
        Ok(all.with(all.ids.iter().copied().filter(is_of).collect()))
    }

    /// The objects that an object retains, itself first.
    pub fn retained_by(heap: H, id: u32) -> io::Result<Objects<H>> {
        let tree = heap.tree()?;
        if tree.subtree_size(id) == 0 {
            return Ok(Objects::new(heap.clone(), vec![id]));
        }
        let flags = heap.flag_words()?;
        let counts = |id: &u32| {
            let flags = flags.get(*id as usize);
            flags.is_none_or(|flags| flags & FOLDED.0 == 0)
        };
        let ids = tree.subtree(id).iter().copied().filter(counts).collect();
        Ok(Objects::new(heap.clone(), ids))
    }

    /// Referrers of an object, those that retain most first, without the super root and the capturing thread.
    pub fn referrers(heap: H, mut referrers: Vec<u32>) -> io::Result<Objects<H>> {
        referrers.retain(|&from| from != heap.root());
        let mut referrers = heap.without_capturing_thread(referrers)?;
        let retained = heap.retained()?;
        referrers.sort_by_key(|&from| Reverse(retained.get(from)));
        Ok(Objects::new(heap.clone(), referrers))
    }

    /// The nodes.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// At most `count` nodes from `start` on.
    pub fn part(&self, start: usize, count: usize) -> &[u32] {
        let end = start.saturating_add(count).min(self.ids.len());
        self.ids.get(start..end).unwrap_or_default()
    }

    /// Those that match a filter.
    ///
    /// # Errors
    /// If the filter is invalid.
    pub fn filter(&self, filter: &str) -> Result<Objects<H>, Error> {
        if self.whole {
            return Objects::chosen(self.heap.clone(), filter);
        }
        let selection = Selection::new(&self.heap, Some(filter))?;
        let ids = self.ids.iter().copied();
        Ok(self.with(ids.filter(|&id| selection.contains(id)).collect()))
    }

    /// The sum of a measure; retained bytes count once.
    pub fn sum(&self, measure: Measure) -> io::Result<u64> {
        if measure.0 == Field::Retained {
            return self.retained();
        }
        let value = measure.values(&self.heap)?;
        let ids = self.ids.iter();
        Ok(ids.fold(0, |sum: u64, &id| sum.saturating_add(value(id))))
    }

    /// Memory freed together with all of them: the objects that roots reach only through them. Several objects require a walk
    /// over the graph, as neither of two dominates what they retain only together.
    pub fn retained(&self) -> io::Result<u64> {
        let heap = &self.heap;
        let retained = heap.retained()?;
        if let [id] = self.ids() {
            return Ok(retained.get(*id));
        }
        let set = BitSet::of(heap.root() as usize + 1, self.ids.iter().copied());
        let classes = heap.group_classes();
        let rest = graph::reachable_without(&heap.graph(&classes)?, &[heap.root()], &set);
        let (dominators, sizes) = (heap.dominators()?, heap.memsizes()?);
        let freed = (0..heap.root()).filter(|&id| dominators.reaches(id) && !rest.contains(id));
        let freed = freed.map(|id| sizes.get(id));
        let unreachable = set.iter().filter(|id| !dominators.reaches(*id));
        let unreachable = unreachable.map(|id| retained.get(id));
        Ok(freed.chain(unreachable).fold(0, u64::saturating_add))
    }

    /// The objects with the largest values; among equal ones the first.
    pub fn top(&self, count: usize, measure: Measure) -> io::Result<Objects<H>> {
        let value = measure.values(&self.heap)?;
        let best = largest(self.ids.iter().copied(), count, |id| Some(value(id)));
        Ok(self.with(best.into_iter().map(|(id, _)| id).collect()))
    }

    /// The name of each class with its objects, the class with the most objects first.
    pub fn by_class(&self) -> io::Result<Vec<(String, Objects<H>)>> {
        let heap = &self.heap;
        let numbers = heap.group_numbers()?;
        let mut classes: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for &id in self.ids.iter() {
            let group = numbers.get(id as usize);
            let group = group.and_then(|&group| heap.groups().get(group as usize));
            let class = group.map_or(NONE, |group| group.shown);
            classes.entry(class).or_default().push(id);
        }
        let named = classes.into_iter().map(|(class, ids)| {
            let class = heap.classes().get(class as usize);
            let name = class.map_or("root", |class| heap.name(class.name));
            (name.to_owned(), self.with(ids))
        });
        let mut named: Vec<_> = named.collect();
        named.sort_by(|one, other| {
            let sizes = other.1.ids.len().cmp(&one.1.ids.len());
            sizes.then_with(|| one.0.cmp(&other.0))
        });
        Ok(named)
    }

    /// Combines these objects with others of the same heap.
    pub fn join(&self, other: &Objects<H>, how: Join) -> Objects<H> {
        let set = |objects: &Objects<H>| {
            BitSet::of(self.heap.root() as usize, objects.ids.iter().copied())
        };
        let mut ids = self.ids.to_vec();
        match how {
            Join::And => {
                let theirs = set(other);
                ids.retain(|id| theirs.contains(*id));
            }
            Join::Not => {
                let theirs = set(other);
                ids.retain(|id| !theirs.contains(*id));
            }
            Join::Or => {
                let ours = set(self);
                ids.extend(other.ids.iter().copied().filter(|id| !ours.contains(*id)));
            }
        }
        self.with(ids)
    }
}

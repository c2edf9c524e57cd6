//! `Memprof::Native::Objects`: some objects of a heap, as numbers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::Arc;

use magnus::{
    Class, DataTypeFunctions, Error, Module, RArray, RClass, RModule, Ruby, TypedData, method,
};
use memprof_analysis::query::Field;
use memprof_analysis::questions::{self, Selection, Words};
use memprof_heap::NONE;
use memprof_heap::graph::{self, BitSet};
use rustc_hash::FxHashMap;

use super::super::exceptions::{of_input, of_question};
use super::super::job;
use super::opened::Opened;
use super::{NativeHeap, field_values};

/// Objects of a heap, in an order.
#[derive(TypedData)]
#[magnus(
    class = "Memprof::Native::Objects",
    free_immediately,
    size,
    frozen_shareable
)]
pub struct NativeObjects {
    opened: Arc<Opened>,
    ids: Vec<u32>,
    relation: Relation,
}

/// What makes labels of references.
#[derive(Clone, Copy)]
enum Relation {
    None,
    /// All that this object refers to, in its order.
    Of(u32),
    /// What refers to this object.
    To(u32),
}

impl DataTypeFunctions for NativeObjects {
    fn size(&self) -> usize {
        size_of::<NativeObjects>() + size_of_val(self.ids.as_slice())
    }
}

pub fn define(ruby: &Ruby, native: RModule, heap: RClass) -> Result<(), Error> {
    heap.define_method("objects", method!(all, 0))?;
    heap.define_method("these", method!(these, 1))?;
    heap.define_method("roots", method!(roots, 0))?;
    heap.define_method("instances", method!(instances, 1))?;
    heap.define_method("references", method!(references, 1))?;
    heap.define_method("referrers", method!(referrers, 1))?;
    heap.define_method("retains", method!(retains, 1))?;
    let objects = native.define_class("Objects", ruby.class_object())?;
    objects.undef_default_alloc_func();
    objects.define_method("size", method!(size, 0))?;
    objects.define_method("slice", method!(slice, 2))?;
    objects.define_method("labels", method!(labels, 2))?;
    objects.define_method("include?", method!(includes, 1))?;
    objects.define_method("where", method!(filter, 1))?;
    objects.define_method("sum", method!(sum, 1))?;
    objects.define_method("retained", method!(retained, 0))?;
    objects.define_method("top", method!(top, 2))?;
    objects.define_method("by_class", method!(by_class, 0))?;
    objects.define_method("combine", method!(combine, 2))
}

impl NativeObjects {
    /// These nodes.
    pub fn new(opened: Arc<Opened>, ids: Vec<u32>) -> NativeObjects {
        NativeObjects {
            opened,
            ids,
            relation: Relation::None,
        }
    }

    /// The nodes.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }
}

/// Makes a collection in a thread of our own.
fn found(
    ruby: &Ruby,
    opened: &Arc<Opened>,
    relation: Relation,
    find: impl FnOnce(&Opened) -> io::Result<Vec<u32>> + Send + 'static,
) -> Result<NativeObjects, Error> {
    let theirs = Arc::clone(opened);
    let ids = job::run(ruby, "objects", move |_| find(&theirs))?;
    let ids = ids.map_err(|error| of_input(ruby, &error))?;
    Ok(NativeObjects {
        opened: Arc::clone(opened),
        ids,
        relation,
    })
}

/// All objects.
fn all(ruby: &Ruby, native: &NativeHeap) -> Result<NativeObjects, Error> {
    found(ruby, &native.0, Relation::None, Opened::all)
}

/// The objects of these numbers.
fn these(native: &NativeHeap, ids: Vec<u32>) -> NativeObjects {
    let nodes = native.0.heap.root();
    let ids = ids.into_iter().filter(|&id| id < nodes).collect();
    NativeObjects::new(Arc::clone(&native.0), ids)
}

/// Root categories.
fn roots(native: &NativeHeap) -> NativeObjects {
    let heap = &native.0.heap;
    NativeObjects::new(Arc::clone(&native.0), (heap.len()..heap.root()).collect())
}

/// Objects whose class this is, singleton classes in between left aside.
fn instances(ruby: &Ruby, native: &NativeHeap, class: u32) -> Result<NativeObjects, Error> {
    found(ruby, &native.0, Relation::None, move |opened| {
        let heap = &opened.heap;
        let groups = heap.groups().iter().map(|group| {
            let shown = heap.classes().get(group.shown as usize);
            group.class == class || shown.is_some_and(|shown| shown.object == class)
        });
        let groups: Vec<bool> = groups.collect();
        let numbers = heap.group_numbers()?;
        let mut ids = opened.all()?;
        ids.retain(|&id| {
            groups
                .get(numbers[id as usize] as usize)
                .copied()
                .unwrap_or(false)
        });
        Ok(ids)
    })
}

/// What an object refers to, besides its class.
fn references(ruby: &Ruby, native: &NativeHeap, id: u32) -> Result<NativeObjects, Error> {
    let graph = native
        .0
        .heap
        .graph(&[])
        .map_err(|error| of_input(ruby, &error))?;
    let ids = graph.row(id).to_vec();
    Ok(NativeObjects {
        opened: Arc::clone(&native.0),
        ids,
        relation: Relation::Of(id),
    })
}

/// What refers to an object, what retains most first.
fn referrers(ruby: &Ruby, native: &NativeHeap, id: u32) -> Result<NativeObjects, Error> {
    found(ruby, &native.0, Relation::To(id), move |opened| {
        let mut referrers = opened.referrers(id)?;
        referrers.retain(|&from| from != opened.heap.root());
        let mut referrers = opened.heap.without_capturing_thread(referrers)?;
        let retained = opened.heap.retained()?;
        referrers.sort_by_key(|&from| Reverse(retained.get(from)));
        Ok(referrers)
    })
}

/// What an object keeps alive, itself first.
fn retains(ruby: &Ruby, native: &NativeHeap, id: u32) -> Result<NativeObjects, Error> {
    found(ruby, &native.0, Relation::None, move |opened| {
        let tree = opened.heap.tree()?;
        if tree.subtree_size(id) == 0 {
            return Ok(vec![id]);
        }
        let flags = opened.heap.flag_words()?;
        let counts = |id: &u32| {
            flags
                .get(*id as usize)
                .is_none_or(|flags| flags & memprof_heap::FOLDED.0 == 0)
        };
        Ok(tree.subtree(id).iter().copied().filter(counts).collect())
    })
}

fn size(objects: &NativeObjects) -> usize {
    objects.ids.len()
}

fn part(objects: &NativeObjects, start: usize, count: usize) -> &[u32] {
    let end = start.saturating_add(count).min(objects.ids.len());
    objects.ids.get(start..end).unwrap_or_default()
}

/// Some of the numbers.
fn slice(ruby: &Ruby, objects: &NativeObjects, start: usize, count: usize) -> RArray {
    ruby.ary_from_iter(part(objects, start, count).iter().copied())
}

/// Their labels; `nil` if these are no references.
fn labels(
    ruby: &Ruby,
    objects: &NativeObjects,
    start: usize,
    count: usize,
) -> Result<Option<RArray>, Error> {
    if matches!(objects.relation, Relation::None) {
        return Ok(None);
    }
    let words = Words::new(&objects.opened.heap).map_err(|error| of_input(ruby, &error))?;
    let ids = part(objects, start, count);
    let labels: Vec<Option<String>> = match objects.relation {
        Relation::To(to) => ids.iter().map(|&from| words.label(from, to)).collect(),
        Relation::Of(from) => {
            let first = words.row(from).map_or(0, |row| row.start) + start;
            (first..first + ids.len())
                .map(|edge| words.label_of(edge))
                .collect()
        }
        Relation::None => Vec::new(),
    };
    Ok(Some(ruby.ary_from_iter(labels)))
}

fn includes(objects: &NativeObjects, id: u32) -> bool {
    objects.ids.contains(&id)
}

/// Those that meet a filter.
fn filter(ruby: &Ruby, objects: &NativeObjects, filter: String) -> Result<NativeObjects, Error> {
    let opened = Arc::clone(&objects.opened);
    let ids = objects.ids.clone();
    let ids = job::run(
        ruby,
        "where",
        move |_| -> Result<Vec<u32>, questions::Error> {
            let selection = Selection::new(&opened.heap, Some(&filter))?;
            Ok(ids
                .into_iter()
                .filter(|&id| selection.contains(id))
                .collect())
        },
    )?;
    let ids = ids.map_err(|error| of_question(ruby, &error))?;
    Ok(NativeObjects::new(Arc::clone(&objects.opened), ids))
}

/// A job on the numbers.
fn on_ids<T: Send + 'static>(
    ruby: &Ruby,
    objects: &NativeObjects,
    work: impl FnOnce(&Opened, Vec<u32>) -> io::Result<T> + Send + 'static,
) -> Result<T, Error> {
    let opened = Arc::clone(&objects.opened);
    let ids = objects.ids.clone();
    let result = job::run(ruby, "objects", move |_| work(&opened, ids))?;
    result.map_err(|error| of_input(ruby, &error))
}

/// A field of all of them, added up.
fn sum(ruby: &Ruby, objects: &NativeObjects, field: String) -> Result<u64, Error> {
    let field = field_values::field(ruby, &field)?;
    if field == Field::Retained {
        return retained(ruby, objects);
    }
    on_ids(ruby, objects, move |opened, ids| {
        let value = field_values::values(&opened.heap, field)?;
        Ok(ids
            .into_iter()
            .fold(0, |sum: u64, id| sum.saturating_add(value(id))))
    })
}

/// What they keep alive, nothing counted twice.
fn retained(ruby: &Ruby, objects: &NativeObjects) -> Result<u64, Error> {
    on_ids(ruby, objects, |opened, ids| {
        let heap = &opened.heap;
        let set = BitSet::of(heap.root() as usize + 1, ids);
        let dominators = heap.dominators()?;
        let sizes = heap.retained()?;
        let tops = graph::top_members(dominators, &set)
            .into_iter()
            .map(|id| sizes.get(id));
        let unreachable = set
            .iter()
            .filter(|id| !dominators.reaches(*id))
            .map(|id| sizes.get(id));
        Ok(tops.chain(unreachable).fold(0, u64::saturating_add))
    })
}

/// Those with the greatest values.
fn top(
    ruby: &Ruby,
    objects: &NativeObjects,
    count: usize,
    field: String,
) -> Result<NativeObjects, Error> {
    let field = field_values::field(ruby, &field)?;
    let ids = on_ids(ruby, objects, move |opened, ids| {
        let value = field_values::values(&opened.heap, field)?;
        let mut best: BinaryHeap<Reverse<(u64, Reverse<u32>)>> = BinaryHeap::new();
        for id in ids {
            best.push(Reverse((value(id), Reverse(id))));
            if best.len() > count {
                best.pop();
            }
        }
        let best = best.into_sorted_vec();
        Ok(best
            .into_iter()
            .map(|Reverse((_, Reverse(id)))| id)
            .collect())
    })?;
    Ok(NativeObjects::new(Arc::clone(&objects.opened), ids))
}

/// Name of each class with its objects, the most objects first.
fn by_class(ruby: &Ruby, objects: &NativeObjects) -> Result<RArray, Error> {
    let groups = on_ids(ruby, objects, |opened, ids| {
        let heap = &opened.heap;
        let numbers = heap.group_numbers()?;
        let mut groups: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for id in ids {
            let group = numbers
                .get(id as usize)
                .and_then(|&group| heap.groups().get(group as usize));
            groups
                .entry(group.map_or(NONE, |group| group.shown))
                .or_default()
                .push(id);
        }
        let groups = groups.into_iter().map(|(class, ids)| {
            let class = heap.classes().get(class as usize);
            (
                class
                    .map_or("root", |class| heap.name(class.name))
                    .to_owned(),
                ids,
            )
        });
        let mut groups: Vec<(String, Vec<u32>)> = groups.collect();
        groups.sort_by(|one, other| {
            other
                .1
                .len()
                .cmp(&one.1.len())
                .then_with(|| one.0.cmp(&other.0))
        });
        Ok(groups)
    })?;
    let rows = ruby.ary_new_capa(groups.len());
    for (name, ids) in groups {
        let ids = NativeObjects::new(Arc::clone(&objects.opened), ids);
        rows.push((name, ids))?;
    }
    Ok(rows)
}

/// `"and"`: those that are in both, `"not"`: those that are in the first only, `"or"`: all.
fn combine(
    ruby: &Ruby,
    objects: &NativeObjects,
    other: &NativeObjects,
    how: String,
) -> Result<NativeObjects, Error> {
    if !Arc::ptr_eq(&objects.opened, &other.opened) {
        return Err(Error::new(
            ruby.exception_arg_error(),
            "these are objects of two heaps",
        ));
    }
    let nodes = objects.opened.heap.root() as usize;
    let theirs = BitSet::of(nodes, other.ids.iter().copied());
    let mut ids: Vec<u32> = objects.ids.clone();
    match how.as_str() {
        "and" => ids.retain(|id| theirs.contains(*id)),
        "not" => ids.retain(|id| !theirs.contains(*id)),
        _ => {
            let ours = BitSet::of(nodes, ids.iter().copied());
            ids.extend(other.ids.iter().copied().filter(|id| !ours.contains(*id)));
        }
    }
    Ok(NativeObjects::new(Arc::clone(&objects.opened), ids))
}

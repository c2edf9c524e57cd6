//! `Memprof::Native::Objects`: objects of a heap, by number ([`memprof_analysis::objects`]).

use std::sync::Arc;

use magnus::{
    Class, DataTypeFunctions, Error, Module, RArray, RClass, RModule, Ruby, TypedData, method,
};
use memprof_analysis::objects::{Join, Measure, Objects};
use memprof_analysis::questions::{self, Words};
use memprof_heap::Heap;

use super::super::exceptions::{of_input, of_question};
use super::super::job;
use super::NativeHeap;
use super::opened::Opened;

type Chosen = Objects<Arc<Heap>>;

/// Objects of a heap, in order.
#[derive(TypedData)]
#[magnus(class = "Memprof::Native::Objects", free_immediately, size, frozen_shareable)]
pub struct NativeObjects {
    opened: Arc<Opened>,
    objects: Chosen,
    relation: Relation,
}

/// The source of reference labels.
#[derive(Clone, Copy)]
enum Relation {
    None,
    /// All outgoing references of this object, in order.
    Of(u32),
    /// Incoming references of this object.
    To(u32),
}

impl DataTypeFunctions for NativeObjects {
    fn size(&self) -> usize {
        size_of::<NativeObjects>() + size_of_val(self.ids())
    }
}

pub fn define(ruby: &Ruby, native: RModule, heap: RClass) -> Result<(), Error> {
    heap.define_method("objects", method!(all, 0))?;
    heap.define_method("where", method!(chosen, 1))?;
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
        let objects = Objects::new(Arc::clone(&opened.heap), ids);
        NativeObjects { opened, objects, relation: Relation::None }
    }

    /// The nodes.
    pub fn ids(&self) -> &[u32] {
        self.objects.ids()
    }

    fn like(&self, objects: Chosen) -> NativeObjects {
        NativeObjects { opened: Arc::clone(&self.opened), objects, relation: Relation::None }
    }
}

/// Computes a set of objects in a separate thread.
fn found(
    ruby: &Ruby,
    opened: &Arc<Opened>,
    relation: Relation,
    find: impl FnOnce(&Opened, Arc<Heap>) -> std::io::Result<Chosen> + Send + 'static,
) -> Result<NativeObjects, Error> {
    let theirs = Arc::clone(opened);
    let objects = job::run(ruby, "objects", move |_| find(&theirs, Arc::clone(&theirs.heap)))?;
    Ok(NativeObjects {
        opened: Arc::clone(opened),
        objects: objects.map_err(|error| of_input(ruby, &error))?,
        relation,
    })
}

/// All objects.
fn all(ruby: &Ruby, native: &NativeHeap) -> Result<NativeObjects, Error> {
    found(ruby, &native.0, Relation::None, |_, heap| Objects::all(heap))
}

/// The objects that match a filter.
fn chosen(ruby: &Ruby, native: &NativeHeap, filter: String) -> Result<NativeObjects, Error> {
    let heap = Arc::clone(&native.0.heap);
    let objects = job::run(ruby, "objects", move |_| Objects::chosen(heap, &filter))?;
    Ok(NativeObjects {
        opened: Arc::clone(&native.0),
        objects: objects.map_err(|error| of_question(ruby, &error))?,
        relation: Relation::None,
    })
}

/// The objects with these numbers.
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

/// Instances of this class, ignoring singleton classes in between.
fn instances(ruby: &Ruby, native: &NativeHeap, class: u32) -> Result<NativeObjects, Error> {
    found(ruby, &native.0, Relation::None, move |_, heap| Objects::instances(heap, class))
}

/// Outgoing references of an object, without its class.
fn references(ruby: &Ruby, native: &NativeHeap, id: u32) -> Result<NativeObjects, Error> {
    let graph = native.0.heap.graph(&[]);
    let graph = graph.map_err(|error| of_input(ruby, &error))?;
    Ok(NativeObjects {
        relation: Relation::Of(id),
        ..NativeObjects::new(Arc::clone(&native.0), graph.row(id).to_vec())
    })
}

/// Referrers of an object, largest retained size first.
fn referrers(ruby: &Ruby, native: &NativeHeap, id: u32) -> Result<NativeObjects, Error> {
    found(ruby, &native.0, Relation::To(id), move |opened, heap| {
        Objects::referrers(heap, opened.referrers(id)?)
    })
}

/// Objects retained by an object, itself first.
fn retains(ruby: &Ruby, native: &NativeHeap, id: u32) -> Result<NativeObjects, Error> {
    found(ruby, &native.0, Relation::None, move |_, heap| Objects::retained_by(heap, id))
}

fn size(native: &NativeObjects) -> usize {
    native.ids().len()
}

/// A range of the numbers.
fn slice(ruby: &Ruby, native: &NativeObjects, start: usize, count: usize) -> RArray {
    ruby.ary_from_iter(native.objects.part(start, count).iter().copied())
}

/// Their labels; `nil` if these are not references.
fn labels(
    ruby: &Ruby,
    native: &NativeObjects,
    start: usize,
    count: usize,
) -> Result<Option<RArray>, Error> {
    if matches!(native.relation, Relation::None) {
        return Ok(None);
    }
    let words = Words::new(&native.opened.heap).map_err(|error| of_input(ruby, &error))?;
    let ids = native.objects.part(start, count);
    let labels: Vec<Option<String>> = match native.relation {
        Relation::To(to) => ids.iter().map(|&from| words.label(from, to)).collect(),
        Relation::Of(from) => {
            let first = words.row(from).map_or(0, |row| row.start) + start;
            (first..first + ids.len()).map(|edge| words.label_of(edge)).collect()
        }
        Relation::None => Vec::new(),
    };
    Ok(Some(ruby.ary_from_iter(labels)))
}

fn includes(native: &NativeObjects, id: u32) -> bool {
    native.ids().contains(&id)
}

/// Works on the objects in a separate thread.
fn put<T: Send + 'static>(
    ruby: &Ruby,
    native: &NativeObjects,
    work: impl FnOnce(&Chosen) -> Result<T, questions::Error> + Send + 'static,
) -> Result<T, Error> {
    let objects = native.objects.clone();
    let answer = job::run(ruby, "objects", move |_| work(&objects))?;
    answer.map_err(|error| of_question(ruby, &error))
}

/// Objects that match a filter.
fn filter(ruby: &Ruby, native: &NativeObjects, filter: String) -> Result<NativeObjects, Error> {
    let chosen = put(ruby, native, move |objects| objects.filter(&filter))?;
    Ok(native.like(chosen))
}

fn measure(ruby: &Ruby, name: &str) -> Result<Measure, Error> {
    Measure::parse(name).map_err(|error| of_question(ruby, &error))
}

/// Sum of a field over all of them.
fn sum(ruby: &Ruby, native: &NativeObjects, field: String) -> Result<u64, Error> {
    let measure = measure(ruby, &field)?;
    put(ruby, native, move |objects| Ok(objects.sum(measure)?))
}

/// Their retained size, each byte counted once.
fn retained(ruby: &Ruby, native: &NativeObjects) -> Result<u64, Error> {
    put(ruby, native, |objects| Ok(objects.retained()?))
}

/// Objects with the greatest values.
fn top(
    ruby: &Ruby,
    native: &NativeObjects,
    count: usize,
    field: String,
) -> Result<NativeObjects, Error> {
    let measure = measure(ruby, &field)?;
    let top = put(ruby, native, move |objects| Ok(objects.top(count, measure)?))?;
    Ok(native.like(top))
}

/// Objects by class name, most objects first.
fn by_class(ruby: &Ruby, native: &NativeObjects) -> Result<RArray, Error> {
    let classes = put(ruby, native, |objects| Ok(objects.by_class()?))?;
    let rows = ruby.ary_new_capa(classes.len());
    for (name, objects) in classes {
        rows.push((name, native.like(objects)))?;
    }
    Ok(rows)
}

/// `"and"`: objects in both, `"not"`: objects in the first only, `"or"`: all.
fn combine(
    ruby: &Ruby,
    native: &NativeObjects,
    other: &NativeObjects,
    how: String,
) -> Result<NativeObjects, Error> {
    if !Arc::ptr_eq(&native.opened, &other.opened) {
        return Err(Error::new(ruby.exception_arg_error(), "these are objects of two heaps"));
    }
    let how = match how.as_str() {
        "and" => Join::And,
        "not" => Join::Not,
        _ => Join::Or,
    };
    Ok(native.like(native.objects.join(&other.objects, how)))
}

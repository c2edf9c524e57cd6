//! `Memprof::Native::Subset`: sets of objects that can be split, joined and rewritten ([`memprof_analysis::subset`]).
//!
//! Most of some thirty operations take no argument, another set, or a node. So there is one method for each of these
//! signatures, which takes the operation by name.

use std::io::{BufWriter, Write};
use std::sync::Arc;

use magnus::{
    Class, DataTypeFunctions, Error, Module, RArray, RClass, RModule, Ruby, TypedData, method,
};
use memprof_analysis::questions;
use memprof_analysis::subset::{Name, Subset};
use memprof_dump::format::{self, Compression, Format};
use memprof_dump::record::Counts;
use memprof_heap::Heap;

use super::super::dump::duplicate;
use super::super::exceptions::of_question;
use super::super::job;
use super::opened::Opened;
use super::{NativeHeap, NativeObjects};
use crate::vm::heap::binding::version;

type Set = Subset<Arc<Heap>>;

#[derive(TypedData)]
#[magnus(class = "Memprof::Native::Subset", free_immediately, size, frozen_shareable)]
struct NativeSubset {
    set: Arc<Set>,
    opened: Arc<Opened>,
}

impl DataTypeFunctions for NativeSubset {
    fn size(&self) -> usize {
        size_of::<Set>() + self.set.members().length() / 8
    }
}

pub fn define(ruby: &Ruby, native: RModule, heap: RClass) -> Result<(), Error> {
    heap.define_method("subset", method!(whole, 0))?;
    heap.define_method("subset_of", method!(of, 1))?;
    let subset = native.define_class("Subset", ruby.class_object())?;
    subset.undef_default_alloc_func();
    subset.define_method("size", method!(size, 0))?;
    subset.define_method("objects", method!(objects, 0))?;
    subset.define_method("include?", method!(includes, 1))?;
    subset.define_method("references", method!(references, 1))?;
    subset.define_method("annotation", method!(annotation, 2))?;
    subset.define_method("group_of", method!(group_of, 1))?;
    subset.define_method("stats", method!(stats, 0))?;
    subset.define_method("out_degree", method!(out_degree, 1))?;
    subset.define_method("plain", method!(plain, 1))?;
    subset.define_method("chosen", method!(chosen, 2))?;
    subset.define_method("with_node", method!(with_node, 3))?;
    subset.define_method("with_set", method!(with_set, 2))?;
    subset.define_method("sample", method!(sample, 2))?;
    subset.define_method("parents_of", method!(parents_of, 3))?;
    subset.define_method("roots_of", method!(roots_of, 2))?;
    subset.define_method("find_path", method!(find_path, 2))?;
    subset.define_method("group", method!(group, 2))?;
    subset.define_method("interface_with", method!(interface_with, 1))?;
    subset.define_method("remove_invalid_references", method!(remove_invalid_references, 0))?;
    subset.define_method("depth_first", method!(depth_first, 1))?;
    subset.define_method("nearest_common_dominator", method!(nearest_common_dominator, 1))?;
    subset.define_method("to_gml", method!(to_gml, 1))?;
    subset.define_method("save", method!(save, 2))
}

type Answer<T> = Result<T, Error>;

/// Works on the set in a separate thread.
fn put<T: Send + 'static>(
    ruby: &Ruby,
    native: &NativeSubset,
    work: impl FnOnce(&Set) -> Result<T, questions::Error> + Send + 'static,
) -> Answer<T> {
    let set = Arc::clone(&native.set);
    let answer = job::run(ruby, "subset", move |_| work(&set))?;
    answer.map_err(|error| of_question(ruby, &error))
}

/// An operation that returns another set of the same heap.
fn made(
    ruby: &Ruby,
    native: &NativeSubset,
    work: impl FnOnce(&Set) -> Result<Set, questions::Error> + Send + 'static,
) -> Answer<NativeSubset> {
    Ok(native.like(put(ruby, native, work)?))
}

impl NativeSubset {
    fn like(&self, set: Set) -> NativeSubset {
        NativeSubset { set: Arc::new(set), opened: Arc::clone(&self.opened) }
    }
}

/// Raises unless both sets are of the same heap.
fn check(ruby: &Ruby, one: &NativeSubset, other: &NativeSubset) -> Answer<Arc<Set>> {
    if Arc::ptr_eq(&one.opened, &other.opened) {
        return Ok(Arc::clone(&other.set));
    }
    Err(Error::new(ruby.exception_arg_error(), "these are objects of two heaps"))
}

fn unknown(operation: &str) -> questions::Error {
    questions::Error::Question(format!("no such operation: {operation:?}"))
}

/// All objects and roots.
fn whole(ruby: &Ruby, native: &NativeHeap) -> Answer<NativeSubset> {
    let set = Subset::all(Arc::clone(&native.0.heap)).map_err(|error| of_question(ruby, &error))?;
    Ok(NativeSubset { set: Arc::new(set), opened: Arc::clone(&native.0) })
}

fn of(native: &NativeHeap, objects: &NativeObjects) -> NativeSubset {
    let set = Subset::of(Arc::clone(&native.0.heap), objects.ids().iter().copied());
    NativeSubset { set: Arc::new(set), opened: Arc::clone(&native.0) }
}

fn size(native: &NativeSubset) -> usize {
    native.set.len()
}

/// The members that are objects or roots.
fn objects(native: &NativeSubset) -> NativeObjects {
    let last = native.set.heap().root();
    NativeObjects::new(
        Arc::clone(&native.opened),
        native.set.iter().filter(|&node| node < last).collect(),
    )
}

fn includes(native: &NativeSubset, node: u32) -> bool {
    native.set.contains(node)
}

/// The members referenced by a member.
fn references(ruby: &Ruby, native: &NativeSubset, node: u32) -> Answer<NativeObjects> {
    let children = native.set.children(node).map_err(|error| of_question(ruby, &error))?;
    Ok(NativeObjects::new(Arc::clone(&native.opened), children))
}

fn annotation(native: &NativeSubset, name: String, node: u32) -> Option<u64> {
    native.set.annotation(&name, node)
}

/// Name and number of objects of a group node.
fn group_of(native: &NativeSubset, node: u32) -> Option<(String, u64)> {
    native.set.grouped(node).map(|group| (group.name.clone(), group.count))
}

/// Members without a type, and numbers of members by class name, most first.
fn stats(ruby: &Ruby, native: &NativeSubset) -> Answer<(u64, Vec<(String, u64)>)> {
    let stats = put(ruby, native, |set| set.stats())?;
    Ok((stats.unknown, stats.counts))
}

fn out_degree(ruby: &Ruby, native: &NativeSubset, least: usize) -> Answer<Vec<(u32, usize)>> {
    put(ruby, native, move |set| set.out_degree(least))
}

/// Operations without arguments.
fn plain(ruby: &Ruby, native: &NativeSubset, operation: String) -> Answer<NativeSubset> {
    made(ruby, native, move |set| match operation.as_str() {
        "roots" => set.roots(),
        "common_cleanup" => set.common_cleanup(),
        "with_class_references" => set.with_class_references(),
        _ => Err(unknown(&operation)),
    })
}

/// Members of a class or type, or members that match a filter.
fn chosen(
    ruby: &Ruby,
    native: &NativeSubset,
    operation: String,
    text: String,
) -> Answer<NativeSubset> {
    let set = Arc::clone(&native.set);
    let answer = job::run(ruby, "subset", move |_| match operation.as_str() {
        "of_class" => set.of_class(&Name::parse(&text)?),
        "of_type" => set.of_type(&Name::parse(&text)?),
        "find_all" => set.find_all(&text),
        _ => Err(unknown(&operation)),
    })?;
    answer.map(|set| native.like(set)).map_err(|error| of_question(ruby, &error))
}

/// Operations on a node or a number.
fn with_node(
    ruby: &Ruby,
    native: &NativeSubset,
    operation: String,
    node: u32,
    depth: u32,
) -> Answer<NativeSubset> {
    made(ruby, native, move |set| match operation.as_str() {
        "root_of" => set.root_of(node),
        "subgraph_of" => set.subgraph_of(node, depth),
        "remove_node" => set.remove_node(node),
        "remove_small_components" => set.remove_small_components(u64::from(node)),
        _ => Err(unknown(&operation)),
    })
}

/// Operations on another set.
fn with_set(
    ruby: &Ruby,
    native: &NativeSubset,
    operation: String,
    other: &NativeSubset,
) -> Answer<NativeSubset> {
    // Objects of two heaps are compared as one process at different times.
    if operation == "diff" {
        let to = Arc::clone(&other.set);
        let set = put(ruby, native, move |set| set.diff(&to))?;
        return Ok(other.like(set));
    }
    let other = check(ruby, native, other)?;
    made(ruby, native, move |set| match operation.as_str() {
        "without" => Ok(set.without(&other)),
        "collapse" => set.collapse(&other),
        "reachable_from" => set.reachable_from(&other),
        "add_children" => set.add_children(&other),
        "common_ancestors" => set.common_ancestors(&other),
        "minimum_spanning_tree" => set.minimum_spanning_tree(&other),
        "update_keepalive_count" => set.update_keepalive_count(&other),
        "union" => set.union(&other),
        "intersection" => Ok(set.intersection(&other)),
        "difference" => Ok(set.difference(&other)),
        _ => Err(unknown(&operation)),
    })
}

fn sample(ruby: &Ruby, native: &NativeSubset, ratio: f64, seed: u64) -> Answer<NativeSubset> {
    made(ruby, native, move |set| Ok(set.sample(ratio, seed)))
}

fn parents_of(
    ruby: &Ruby,
    native: &NativeSubset,
    other: &NativeSubset,
    min: usize,
    exclude: bool,
) -> Answer<NativeSubset> {
    let other = check(ruby, native, other)?;
    made(ruby, native, move |set| set.parents_of(&other, min, exclude))
}

fn roots_of(
    ruby: &Ruby,
    native: &NativeSubset,
    wanted: &NativeSubset,
    from: Option<&NativeSubset>,
) -> Answer<NativeSubset> {
    let wanted = check(ruby, native, wanted)?;
    let from = from.map(|from| check(ruby, native, from)).transpose()?;
    made(ruby, native, move |set| set.roots_of(&wanted, from.as_deref()))
}

/// Objects on a shortest path, including both ends.
fn find_path(ruby: &Ruby, native: &NativeSubset, from: u32, to: u32) -> Answer<NativeObjects> {
    let path = put(ruby, native, move |set| set.find_path(from, to))?;
    Ok(NativeObjects::new(Arc::clone(&native.opened), path))
}

/// Replaces the members of a set by one node; returns its number, too.
fn group(
    ruby: &Ruby,
    native: &NativeSubset,
    name: String,
    other: &NativeSubset,
) -> Answer<(NativeSubset, u32)> {
    let other = check(ruby, native, other)?;
    let (set, node) = put(ruby, native, move |set| set.group(&name, &other))?;
    Ok((native.like(set), node))
}

fn interface_with(
    ruby: &Ruby,
    native: &NativeSubset,
    other: &NativeSubset,
) -> Answer<(NativeSubset, NativeSubset)> {
    let other = check(ruby, native, other)?;
    let interface = put(ruby, native, move |set| set.interface_with(&other))?;
    Ok((native.like(interface.border), native.like(interface.inside)))
}

/// Removes references to nonmembers; returns the objects these led to, and addresses without an object.
fn remove_invalid_references(
    ruby: &Ruby,
    native: &NativeSubset,
) -> Answer<(NativeSubset, NativeObjects, Vec<u64>)> {
    let (set, missing) = put(ruby, native, |set| set.remove_invalid_references())?;
    let nodes = missing.nodes.iter().collect();
    let objects = NativeObjects::new(Arc::clone(&native.opened), nodes);
    Ok((native.like(set), objects, missing.addresses))
}

/// Members reachable from a member, depth first, itself first.
fn depth_first(ruby: &Ruby, native: &NativeSubset, node: u32) -> Answer<NativeObjects> {
    let visits = put(ruby, native, move |set| set.depth_first(node))?;
    let nodes = visits.into_iter().map(|visit| visit.node).collect();
    Ok(NativeObjects::new(Arc::clone(&native.opened), nodes))
}

fn nearest_common_dominator(
    ruby: &Ruby,
    native: &NativeSubset,
    other: &NativeSubset,
) -> Answer<Option<u32>> {
    let other = check(ruby, native, other)?;
    put(ruby, native, move |set| set.nearest_common_dominator(&other))
}

fn to_gml(ruby: &Ruby, native: &NativeSubset, descriptor: i32) -> Answer<()> {
    let file = duplicate(ruby, descriptor)?;
    put(ruby, native, move |set| {
        let mut out = BufWriter::new(file);
        set.to_gml(&mut out)?;
        Ok(out.flush()?)
    })
}

/// Writes a dump; returns its numbers of objects and references.
fn save(ruby: &Ruby, native: &NativeSubset, descriptor: i32, words: RArray) -> Answer<(u64, u64)> {
    let argument = |message: String| Error::new(ruby.exception_arg_error(), message);
    let file = duplicate(ruby, descriptor)?;
    let options = format::Options {
        format: words.entry::<String>(0)?.parse::<Format>().map_err(argument)?,
        compression: words.entry::<String>(1)?.parse::<Compression>().map_err(argument)?,
        ruby: version(ruby),
    };
    let counts: Counts = put(ruby, native, move |set| {
        let mut dump = format::create(file, options)?;
        set.save(&mut dump)
    })?;
    Ok((counts.objects, counts.references))
}

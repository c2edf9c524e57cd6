//! Queries on a single object, by number.

use std::sync::Arc;

use magnus::{Error, Module, RArray, RClass, RString, Ruby, Value, method};
use memprof_analysis::questions::{self, Words};
use memprof_dump::record::Kind;
use memprof_heap::{NONE, Object};

use super::super::exceptions::{of_input, of_question};
use super::super::job;
use super::NativeHeap;
use crate::vm::heap::binding::address;

pub fn define(heap: RClass) -> Result<(), Error> {
    heap.define_method("at", method!(at, 1))?;
    heap.define_method("find", method!(find, 1))?;
    heap.define_method("address", method!(address_of, 1))?;
    heap.define_method("type", method!(type_of, 1))?;
    heap.define_method("class_name", method!(class_name, 1))?;
    heap.define_method("class_number", method!(class_number, 1))?;
    heap.define_method("superclass_number", method!(superclass_number, 1))?;
    heap.define_method("memsize", method!(memsize, 1))?;
    heap.define_method("retained", method!(retained, 1))?;
    heap.define_method("slot_size", method!(slot_size, 1))?;
    heap.define_method("length", method!(length, 1))?;
    heap.define_method("value", method!(value, 1))?;
    heap.define_method("site", method!(site, 1))?;
    heap.define_method("generation", method!(generation, 1))?;
    heap.define_method("age", method!(age, 1))?;
    heap.define_method("shape", method!(shape, 1))?;
    heap.define_method("object_id_of", method!(object_id, 1))?;
    heap.define_method("flags", method!(flags, 1))?;
    heap.define_method("facts", method!(facts, 1))?;
    heap.define_method("words", method!(words, 1))?;
    heap.define_method("name", method!(name, 1))?;
    heap.define_method("dominator", method!(dominator, 1))?;
    heap.define_method("reachable?", method!(is_reachable, 1))?;
    heap.define_method("path", method!(path, 1))
}

type Answer<T> = Result<T, Error>;

/// File, line and method.
type Place = (String, Option<u32>, Option<String>);

/// All data of an object; `None` for a root.
fn known(ruby: &Ruby, native: &NativeHeap, id: u32) -> Answer<Option<Object>> {
    native.0.heap.object(id).map_err(|error| of_input(ruby, &error))
}

fn number(native: &NativeHeap, id: u32) -> Option<u32> {
    let heap = &native.0.heap;
    (id < heap.root()).then_some(id)
}

/// The object at an address.
fn at(native: &NativeHeap, address: u64) -> Option<u32> {
    native.0.heap.at(address)
}

/// The number of an object of this process at the time of capture.
fn find(native: &NativeHeap, object: Value) -> Option<u32> {
    native.0.heap.at(address(object))
}

fn address_of(native: &NativeHeap, id: u32) -> Option<u64> {
    let heap = &native.0.heap;
    (id < heap.len()).then(|| heap.addresses().of(id))
}

fn type_of(ruby: &Ruby, native: &NativeHeap, id: u32) -> Answer<&'static str> {
    let kind = native.0.heap.kind(id).map_err(|error| of_input(ruby, &error))?;
    Ok(kind.map_or("root", Kind::name))
}

fn class_name(ruby: &Ruby, native: &NativeHeap, id: u32) -> Answer<String> {
    let name = native.0.heap.class_name(id).map_err(|error| of_input(ruby, &error))?;
    Ok(name.to_owned())
}

/// The class returned by Ruby's `class`.
fn class_number(ruby: &Ruby, native: &NativeHeap, id: u32) -> Answer<Option<u32>> {
    let object = known(ruby, native, id)?;
    Ok(object.and_then(|object| number(native, object.class.object)))
}

/// The superclass returned by Ruby's `superclass`, which skips included modules.
fn superclass_number(native: &NativeHeap, id: u32) -> Option<u32> {
    questions::class::superclass(&native.0.heap, id)
}

fn memsize(ruby: &Ruby, native: &NativeHeap, id: u32) -> Answer<u64> {
    let sizes = native.0.heap.memsizes().map_err(|error| of_input(ruby, &error))?;
    Ok(sizes.get(id))
}

fn retained(ruby: &Ruby, native: &NativeHeap, id: u32) -> Answer<u64> {
    let sizes = native.0.heap.retained().map_err(|error| of_input(ruby, &error))?;
    Ok(sizes.get(id))
}

fn slot_size(native: &NativeHeap, id: u32) -> Option<u16> {
    let heap = &native.0.heap;
    (id < heap.len()).then(|| heap.slot_size(id)).filter(|&size| size > 0)
}

fn length(ruby: &Ruby, native: &NativeHeap, id: u32) -> Answer<Option<u32>> {
    Ok(known(ruby, native, id)?.and_then(|object| object.length))
}

/// Contents of a string, symbol or regexp, as far as known.
fn value(ruby: &Ruby, native: &NativeHeap, id: u32) -> Answer<Option<RString>> {
    let text = known(ruby, native, id)?.and_then(|object| object.text);
    let bytes = text.as_ref().and_then(|text| text.bytes());
    Ok(bytes.map(|bytes| match std::str::from_utf8(bytes) {
        Ok(text) => ruby.str_new(text),
        Err(_) => ruby.str_from_slice(bytes),
    }))
}

/// Its allocation site.
fn site(ruby: &Ruby, native: &NativeHeap, id: u32) -> Answer<Option<Place>> {
    let heap = &native.0.heap;
    let site = known(ruby, native, id)?.and_then(|object| object.site);
    Ok(site.map(|site| {
        let line = (site.line != 0).then_some(site.line);
        (heap.name(site.file).to_owned(), line, site.method.map(|name| heap.name(name).to_owned()))
    }))
}

fn generation(ruby: &Ruby, native: &NativeHeap, id: u32) -> Answer<Option<u32>> {
    Ok(known(ruby, native, id)?.and_then(|object| object.generation))
}

fn age(ruby: &Ruby, native: &NativeHeap, id: u32) -> Answer<Option<u8>> {
    Ok(known(ruby, native, id)?.and_then(|object| object.age))
}

fn shape(ruby: &Ruby, native: &NativeHeap, id: u32) -> Answer<Option<u32>> {
    Ok(known(ruby, native, id)?.and_then(|object| object.shape))
}

fn object_id(native: &NativeHeap, id: u32) -> Option<u64> {
    native.0.heap.object_id(id)
}

fn flags(ruby: &Ruby, native: &NativeHeap, id: u32) -> Answer<Vec<&'static str>> {
    let object = known(ruby, native, id)?;
    Ok(object.map_or_else(Vec::new, |object| object.flags.names().collect()))
}

/// Other facts, as JSON.
fn facts(native: &NativeHeap, id: u32) -> String {
    let heap = &native.0.heap;
    let facts = heap
        .facts()
        .of(id)
        .map(|(name, value)| (heap.name(name).to_owned(), questions::json(heap, value)));
    serde_json::Value::Object(facts.collect()).to_string()
}

/// Description of an object for display.
fn words(ruby: &Ruby, native: &NativeHeap, id: u32) -> Answer<String> {
    let words = Words::new(&native.0.heap).map_err(|error| of_input(ruby, &error))?;
    Ok(words.object(id))
}

/// Name of a class or module, type of data, kind of imemo.
fn name(ruby: &Ruby, native: &NativeHeap, id: u32) -> Answer<Option<String>> {
    let heap = &native.0.heap;
    let of_class = heap.class_object(id).map(|class| class.name);
    let name = match of_class {
        Some(name) => name,
        None => known(ruby, native, id)?.and_then(|object| object.group.name),
    };
    Ok(name.map(|name| heap.name(name).to_owned()))
}

/// The immediate dominator; none if that is the set of all roots.
fn dominator(ruby: &Ruby, native: &NativeHeap, id: u32) -> Answer<Option<u32>> {
    let dominators = native.0.heap.dominators().map_err(|error| of_input(ruby, &error))?;
    Ok(dominators.parent_of(id).filter(|&parent| parent != NONE && parent != native.0.heap.root()))
}

/// Whether it is reachable from a root.
fn is_reachable(ruby: &Ruby, native: &NativeHeap, id: u32) -> Answer<bool> {
    let dominators = native.0.heap.dominators().map_err(|error| of_input(ruby, &error))?;
    Ok(dominators.reaches(id))
}

/// Numbers on the path from a root, labels between them, and a description; `nil` if the object is unreachable.
fn path(ruby: &Ruby, native: &NativeHeap, id: u32) -> Answer<Option<(RArray, RArray, String)>> {
    let opened = Arc::clone(&native.0);
    let found = job::run(ruby, "path", move |_| -> Result<_, questions::Error> {
        let nodes = questions::path::to(&opened.heap, id)?;
        let words = Words::new(&opened.heap)?;
        let labels = nodes.windows(2).map(|pair| words.label(pair[0], pair[1]));
        let labels: Vec<Option<String>> = labels.collect();
        let sentence = words.path(&nodes).to_string();
        Ok((nodes, labels, sentence))
    })?;
    let (nodes, labels, sentence) = found.map_err(|error| of_question(ruby, &error))?;
    if nodes.is_empty() {
        return Ok(None);
    }
    Ok(Some((ruby.ary_from_iter(nodes), ruby.ary_from_iter(labels), sentence)))
}

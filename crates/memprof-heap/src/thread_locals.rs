//! Names of thread-locals (`Thread.current[:user]`). The VM only reports that a thread, or its current fiber, references a value.
//! The key is a fact about the thread, queried before the dump.

use std::io;

use serde_json::{Map, Value as Json};

use super::label::{Label, Packed};
use super::{Heap, NONE};
use memprof_dump::record::{Kind, NameId, Value};

/// The fact with keys and values.
const VARIABLES: &str = "variables";

/// Labels references of threads to their locals with the keys.
pub(super) fn name(heap: &mut Heap) -> io::Result<()> {
    let found = found(heap)?;
    if found.is_empty() {
        return Ok(());
    }
    let mut labels = heap.columns.labels.get()?.to_vec();
    labels.resize(heap.columns.targets.get()?.len(), Packed::NONE.0);
    for (edge, key) in found {
        let key = heap.names.own(&key);
        labels[edge] = Packed::new(Label::Under(key)).0;
    }
    heap.columns.labels = labels.into();
    Ok(())
}

/// Unlabeled references to a local, with its key.
fn found(heap: &Heap) -> io::Result<Vec<(usize, String)>> {
    let mut found = Vec::new();
    let Some(fact) = heap.names.find(VARIABLES) else {
        return Ok(found);
    };
    let is_fiber: Vec<bool> = heap
        .groups
        .iter()
        .map(|group| group.kind == Kind::DATA && named(heap, group.name) == "fiber")
        .collect();
    let groups = heap.columns.group.get()?;
    let is_fiber = |node: u32| {
        let group = groups.get(node as usize);
        group.is_some_and(|&group| is_fiber.get(group as usize) == Some(&true))
    };
    let offsets = heap.columns.offsets.get()?;
    let targets = heap.columns.targets.get()?;
    let labels = heap.columns.labels.get()?;
    let row = |node: u32| offsets[node as usize] as usize..offsets[node as usize + 1] as usize;
    for (thread, json) in heap.facts.named(fact) {
        let Value::Json(json) = json else { continue };
        let locals = locals(heap, heap.names.name(json));
        let fibers = row(thread).map(|edge| targets[edge]);
        let fibers = fibers.filter(|&node| is_fiber(node));
        for holder in std::iter::once(thread).chain(fibers) {
            for edge in row(holder) {
                let has_label = labels.get(edge).is_some_and(|&label| label != Packed::NONE.0);
                let local = locals.iter().find(|(local, _)| *local == targets[edge]);
                if let Some((_, key)) = local.filter(|_| !has_label) {
                    found.push((edge, key.clone()));
                }
            }
        }
    }
    Ok(found)
}

fn named(heap: &Heap, name: Option<NameId>) -> &str {
    name.map_or("", |name| heap.names.name(name))
}

/// The objects that are values, with their keys.
fn locals(heap: &Heap, json: &str) -> Vec<(u32, String)> {
    let variables: Map<String, Json> = serde_json::from_str(json).unwrap_or_default();
    let locals = variables.into_iter().filter_map(|(key, value)| {
        let digits = value.as_str()?.strip_prefix("0x")?;
        let address = u64::from_str_radix(digits, 16).ok()?;
        let id = heap.addresses.find(address)?;
        (id != NONE).then_some((id, key))
    });
    locals.collect()
}

//! One object: its properties, references and referrers.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::describe::{Described, Describer, Named};
use super::leaked::leaked;
use super::path::{self, Path};
use super::{Error, Limit};
use crate::order;
use memprof_dump::record::{Kind, Value};
use memprof_heap::graph;
use memprof_heap::{Heap, Known, NONE};

/// `object`: everything about one object.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The object.
    pub of: Named,
    /// Maximum number of references shown in each direction.
    #[serde(default)]
    pub limit: Limit<20>,
    /// References to skip (default: none).
    #[serde(default)]
    pub references_offset: usize,
    /// Referrers to skip (default: none).
    #[serde(default)]
    pub referrers_offset: usize,
}

/// A reference with its label.
#[derive(Clone, Debug, Serialize)]
pub struct Reference {
    /// Label of the reference.
    pub label: Option<String>,
    /// The other object.
    #[serde(flatten)]
    pub object: Described,
}

/// Objects of one class that an object retains.
#[derive(Clone, Debug, Serialize)]
pub struct Held {
    /// Class.
    pub class: String,
    /// Objects.
    pub count: u64,
    /// Sum of their memsizes.
    pub size: u64,
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// The object.
    #[serde(flatten)]
    pub object: Described,
    /// Bytes of its slot.
    pub slot_size: u16,
    /// Number of elements, or bytes of a text.
    pub length: Option<u32>,
    /// Contents of a string, symbol or regexp, as far as the dump has them.
    pub value: Option<String>,
    /// Flags that are set, such as `frozen`.
    pub flags: Vec<&'static str>,
    /// Number of GC runs survived, as counted by the GC.
    pub age: Option<u8>,
    /// Number of its shape.
    pub shape: Option<u32>,
    /// `object_id`, if the program ever called it (Ruby 4.0 and later).
    pub object_id: Option<u64>,
    /// Start of the generation in which it was allocated, in microseconds since the epoch.
    pub time: Option<u64>,
    /// Other facts.
    pub facts: Vec<(String, serde_json::Value)>,
    /// The first references.
    pub references: Vec<Reference>,
    /// Number of references.
    pub references_count: usize,
    /// The first referrers.
    pub referrers: Vec<Reference>,
    /// Number of referrers.
    pub referrers_count: usize,
    /// Path from a GC root.
    pub path: Path,
    /// Dominators, the nearest first.
    pub dominators: Vec<Described>,
    /// Memory freed together with it, by class.
    pub retains: Vec<Held>,
    /// No root reaches it: garbage that was not yet freed.
    pub unreachable: bool,
    /// Of a block of malloc that no root reaches: whether C code leaked it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaked: Option<bool>,
}

/// Maximum number of dominators shown.
const ABOVE: usize = 20;

impl Question {
    /// The answer.
    ///
    /// # Errors
    /// If the object does not exist.
    pub fn answer(&self, heap: &Heap) -> Result<Answer, Error> {
        let node = self.of.find(heap)?;
        let limit = self.limit.0;
        let describer = Describer::new(heap)?;
        let facts = heap.object(node)?;
        let facts = facts.as_ref();
        let classes = heap.group_classes();
        let graph = heap.graph(&classes)?;
        let words = &describer.words;
        let row = words.row(node).unwrap_or(0..0);
        let references: Vec<Reference> = row
            .clone()
            .skip(self.references_offset)
            .take(limit)
            .map(|edge| Reference {
                label: words.label_of(edge),
                object: describer.describe(words.target(edge)),
            })
            .collect();
        let mut referrers = graph::referrers_of(&graph, node);
        referrers.retain(|&from| from != heap.root());
        let retained = heap.retained()?;
        order::sort_by_key(&mut referrers, |&from| std::cmp::Reverse(retained.get(from)));
        let dominators = heap.dominators()?;
        let above = dominators.ancestors(node).filter(|&node| node != heap.root()).take(ABOVE);
        let nodes = path::to(heap, node)?;
        let is_block = heap.kind(node)? == Some(Kind::BLOCK);
        Ok(Answer {
            slot_size: if is_block { 0 } else { heap.slot_size(node) },
            length: facts.and_then(|facts| facts.length),
            value: facts.and_then(|facts| facts.text.as_ref()).map(|text| match &text.known {
                Known::Mark(mark) => format!("{mark:#018x}"),
                _ => String::from_utf8_lossy(text.bytes().unwrap_or(b"")).into_owned(),
            }),
            flags: facts.map_or_else(Vec::new, |facts| facts.flags.names().collect()),
            age: facts.and_then(|facts| facts.age),
            shape: facts.and_then(|facts| facts.shape),
            object_id: heap.object_id(node),
            time: facts
                .and_then(|facts| facts.generation)
                .and_then(|generation| heap.time(generation)),
            facts: heap
                .facts()
                .of(node)
                .map(|(name, value)| (heap.name(name).to_owned(), json(heap, value)))
                .collect(),
            references,
            references_count: row.len(),
            referrers: referrers
                .iter()
                .skip(self.referrers_offset)
                .take(limit)
                .map(|&from| Reference {
                    label: words.label(from, node),
                    object: describer.describe(from),
                })
                .collect(),
            referrers_count: referrers.len(),
            unreachable: nodes.is_empty(),
            leaked: match is_block && nodes.is_empty() {
                true => leaked(heap, |id| dominators.reaches(id))?.map(|set| set.contains(node)),
                false => None,
            },
            path: path::described(&describer, &nodes),
            dominators: above.map(|node| describer.describe(node)).collect(),
            retains: held(heap, node, limit)?,
            object: describer.describe(node),
        })
    }
}

/// A value of a record as JSON: symbols with a colon, addresses in hexadecimal.
pub fn json(heap: &Heap, value: Value) -> serde_json::Value {
    match value {
        Value::Nil | Value::Undef => serde_json::Value::Null,
        Value::True => true.into(),
        Value::False => false.into(),
        Value::Int(number) => number.into(),
        Value::Float(number) => number.into(),
        Value::Symbol(name) => format!(":{}", heap.name(name)).into(),
        Value::Address(address) => format!("{address:#x}").into(),
        Value::Name(name) => heap.name(name).into(),
        Value::Json(name) => serde_json::from_str(heap.name(name)).unwrap_or_default(),
    }
}

/// Memory freed together with an object, by class, the largest first.
fn held(heap: &Heap, node: u32, limit: usize) -> Result<Vec<Held>, Error> {
    let groups = heap.group_numbers()?;
    let memsizes = heap.memsizes()?;
    let tree = heap.tree()?;
    // Unreachable objects are not in the tree, and are freed alone.
    let subtree = match tree.subtree(node) {
        [] => std::slice::from_ref(&node),
        subtree => subtree,
    };
    let mut classes: FxHashMap<u32, (u64, u64)> = FxHashMap::default();
    for &node in subtree {
        let group = groups.get(node as usize).and_then(|&group| heap.groups().get(group as usize));
        let (count, size) = classes.entry(group.map_or(NONE, |group| group.shown)).or_default();
        *count += 1;
        *size += memsizes.get(node);
    }
    let mut held: Vec<Held> = classes
        .into_iter()
        .filter_map(|(class, (count, size))| {
            let class = heap.classes().get(class as usize)?;
            Some(Held { class: heap.name(class.name).to_owned(), count, size })
        })
        .collect();
    order::sort_by(&mut held, |one, other| {
        other.size.cmp(&one.size).then_with(|| one.class.cmp(&other.class))
    });
    held.truncate(limit);
    Ok(held)
}

#[cfg(test)]
mod tests;

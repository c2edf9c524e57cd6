//! Referrers of groups of objects, most frequent first: `Session@name`, `Array[*]`.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::io;

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::words::{ANY, Words};
use memprof_dump::record::Kind;
use memprof_heap::graph::{PART, in_parts};
use memprof_heap::{Heap, Label, NONE, Packed};

/// Objects of a class that reference a group in the same way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// Class of the referrers; the name of a referring class or module itself; `root vm`.
    pub class: String,
    /// Label of the references, such as `@name`; elements and values are `[*]`; null if they have none.
    pub label: Option<String>,
    /// References.
    pub count: u64,
}

/// All elements have the same label, as only index or key differ.
const ELEMENT: u32 = 1;

struct Found {
    count: u64,
    from: u32,
    edge: usize,
}

/// By group, class and label.
type ByKey = FxHashMap<(u32, u64, u32), Found>;

impl Found {
    /// Adds the results of another thread. The first example of all remains.
    fn join(&mut self, other: &Found) {
        self.count += other.count;
        if other.edge < self.edge {
            (self.from, self.edge) = (other.from, other.edge);
        }
    }
}

/// The most frequent referrers of each group. `of` returns an object's group, [`NONE`] if it has none.
pub(super) fn holders(
    heap: &Heap,
    words: &Words<'_>,
    groups: usize,
    of: impl Fn(u32) -> u32 + Sync,
    limit: usize,
) -> io::Result<Vec<Vec<Holder>>> {
    let graph = heap.graph(&[])?;
    let labels = heap.labels()?;
    let numbers = heap.group_numbers()?;
    let nodes = heap.root() as usize;
    let parts = in_parts(nodes, PART, ByKey::default, |found, part| {
        for from in part.start as u32..part.end as u32 {
            let mut class = None;
            let begin = graph.offsets.get(from as usize).map_or(0, |&begin| begin as usize);
            for (&target, edge) in graph.row(from).iter().zip(begin..) {
                let group = of(target);
                // Self-references do not retain an object.
                if group == NONE || target == from {
                    continue;
                }
                let class = *class.get_or_insert_with(|| holder(heap, numbers, from));
                let key = (group, class, label(labels.get(edge)));
                let first = || Found { count: 0, from, edge };
                found.entry(key).or_insert_with(first).count += 1;
            }
        }
    });
    let mut parts = parts.into_iter();
    let mut found = parts.next().unwrap_or_default();
    for (key, other) in parts.flatten() {
        match found.entry(key) {
            Entry::Vacant(place) => {
                place.insert(other);
            }
            Entry::Occupied(mut known) => known.get_mut().join(&other),
        }
    }
    let mut all: Vec<Vec<(Found, u32)>> = (0..groups).map(|_| Vec::new()).collect();
    for ((group, _, label), found) in found {
        if let Some(list) = all.get_mut(group as usize) {
            list.push((found, label));
        }
    }
    let described = all.into_iter().map(|mut list| {
        list.sort_unstable_by_key(|(found, _)| (Reverse(found.count), found.edge));
        list.truncate(limit);
        let holder = |(found, label): (Found, u32)| Holder {
            class: words.short(found.from),
            label: match label {
                ELEMENT => Some(ANY.to_owned()),
                _ => words.label_of(found.edge),
            },
            count: found.count,
        };
        list.into_iter().map(holder).collect()
    });
    Ok(described.collect())
}

/// The class that represents a referrer; classes and roots represent themselves.
fn holder(heap: &Heap, numbers: &[u32], from: u32) -> u64 {
    let group = numbers.get(from as usize).and_then(|&group| heap.groups().get(group as usize));
    match group {
        Some(group) if !matches!(group.kind, Kind::CLASS | Kind::MODULE | Kind::ICLASS) => {
            u64::from(group.shown)
        }
        _ => 1 << 32 | u64::from(from),
    }
}

fn label(packed: Option<&u32>) -> u32 {
    match packed.map(|&packed| Packed(packed).label()) {
        Some(Label::Index(_) | Label::Entry | Label::Under(_)) => ELEMENT,
        _ => packed.copied().unwrap_or(0),
    }
}

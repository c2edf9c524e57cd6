//! References from old objects to new ones, which retain the objects allocated in between.

use std::cmp::Reverse;
use std::ops::Deref;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::Diff;
use crate::order;
use crate::questions::describe::{Described, Describer};
use crate::questions::list::{List, Measure, Measured};
use crate::questions::words::ANY;
use crate::questions::{Error, Limit, Phrase, Remark, path};
use crate::subset::Subset;
use memprof_dump::record::Kind;
use memprof_heap::graph::{BitSet, Tree};
use memprof_heap::{Heap, Label, NONE, Packed, Sizes};

/// Maximum number of nodes visited to count the objects that new ones reach. Counts beyond that are unknown.
const VISITS: u64 = 50_000_000;

/// `interface`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// Only references to these new objects.
    pub r#where: Option<String>,
    /// Maximum number of rows and of objects.
    pub limit: Limit<20>,
}

/// References from old objects of one class to new ones of one class, with one label.
#[derive(Clone, Debug, Serialize)]
pub struct Crossing {
    /// Class of the old objects; classes, modules and roots have their own name.
    pub from: String,
    /// Label of the references; `[*]` for elements.
    pub label: Option<String>,
    /// Class of the new objects.
    pub class: String,
    /// References.
    pub references: u64,
    /// Number of old objects.
    pub holders: u64,
    /// Number of new objects.
    pub count: u64,
    /// Memory freed together with these new objects.
    pub retained: u64,
    /// Maximum number of new objects that one of these reaches; null if not counted.
    pub keepalive_count: Option<u64>,
    /// One of the references, with the path to it.
    pub example: String,
    /// The same, with source locations as separate parts.
    pub phrase: Phrase,
}

/// A new object that an old one references.
#[derive(Clone, Debug, Serialize)]
pub struct Kept {
    /// The new object.
    #[serde(flatten)]
    pub object: Described,
    /// Number of new objects that it reaches, including itself; null if not counted.
    pub keepalive_count: Option<u64>,
    /// References from old objects.
    pub references: u64,
    /// The first old object that references it.
    pub holder: Described,
    /// Label of that reference.
    pub label: Option<String>,
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
pub struct Interface {
    /// Possible errors of the comparison.
    pub warnings: Vec<Remark>,
    /// By class and label, those that retain most first.
    pub crossings: Vec<Crossing>,
    /// Crossings that are not returned.
    pub more: usize,
    /// New objects that old ones reference, those that reach most first.
    pub objects: Vec<Kept>,
    /// Number of old objects that reference new ones.
    pub border: u64,
    /// Number of new objects that old ones reference.
    pub count: u64,
}

/// From, label, to.
type Key = (u32, u32, u32);

struct Reference {
    from: u32,
    to: u32,
    edge: usize,
}

impl Question {
    pub(super) fn answer<H: Deref<Target = Heap>>(
        &self,
        diff: &Diff<H>,
    ) -> Result<Interface, Error> {
        let mut chosen = diff.chosen(self.r#where.as_deref())?.after.clone();
        chosen.intersect(&diff.changes.new);
        let heap: &Heap = &diff.after;
        let describer = Describer::new(heap)?;
        let references = references(heap, &describer, &diff.changes.new, &chosen);
        let retained = heap.retained()?;
        let mut inside: Vec<u32> = references.iter().map(|reference| reference.to).collect();
        inside.sort_unstable();
        inside.dedup();
        order::sort_by_key(&mut inside, |&node| Reverse(retained.get(node)));
        let new = Subset::of(heap, diff.changes.new.iter());
        let keepalive = new.keepalive_within(&inside, VISITS)?;
        let crossings = crossings(heap, &describer, &references, &keepalive)?;
        let rows = Measured(|row: u32, measure| {
            let crossing = &crossings[row as usize];
            let retained = measure == Measure::Retained;
            Some(if retained { crossing.retained } else { crossing.references })
        });
        let list = List::new(&rows, &[Measure::Retained, Measure::Count]);
        let page = list.page(0..crossings.len() as u32, self.limit, 0);
        let (crossings, more) = (page.of(crossings), page.more);
        let mut border: Vec<u32> = references.iter().map(|reference| reference.from).collect();
        border.dedup();
        let count = inside.len() as u64;
        order::sort_by_key(&mut inside, |node| (Reverse(keepalive.get(node).copied()), *node));
        inside.truncate(self.limit.0);
        let mut holders: FxHashMap<u32, Vec<&Reference>> =
            inside.iter().map(|&node| (node, Vec::new())).collect();
        for reference in &references {
            if let Some(holders) = holders.get_mut(&reference.to) {
                holders.push(reference);
            }
        }
        let objects = inside.iter().filter_map(|node| {
            let holders = holders.get(node)?;
            let first = holders.first()?;
            Some(Kept {
                object: describer.describe(*node),
                keepalive_count: keepalive.get(node).copied(),
                references: holders.len() as u64,
                holder: describer.describe(first.from),
                label: describer.words.label_of(first.edge),
            })
        });
        Ok(Interface {
            warnings: diff.warnings.clone(),
            crossings,
            more,
            objects: objects.collect(),
            border: border.len() as u64,
            count,
        })
    }
}

/// References from old objects to the requested ones, ordered by old object. Roots count as old.
fn references(
    heap: &Heap,
    describer: &Describer<'_>,
    new: &BitSet,
    chosen: &BitSet,
) -> Vec<Reference> {
    let words = &describer.words;
    let old = (0..heap.root()).filter(|&node| !new.contains(node));
    let rows = old.filter_map(|from| Some((from, words.row(from)?)));
    let edges = rows.flat_map(|(from, row)| row.map(move |edge| (from, edge)));
    let references = edges.map(|(from, edge)| Reference { from, to: words.target(edge), edge });
    references.filter(|reference| chosen.contains(reference.to)).collect()
}

fn crossings(
    heap: &Heap,
    describer: &Describer<'_>,
    references: &[Reference],
    keepalive: &FxHashMap<u32, u64>,
) -> Result<Vec<Crossing>, Error> {
    let groups = heap.group_numbers()?;
    let labels = heap.labels()?;
    let mut rows: FxHashMap<Key, Vec<&Reference>> = FxHashMap::default();
    for reference in references {
        let key = (
            holder(heap, groups, reference.from),
            label(labels.get(reference.edge).copied()),
            class(heap, groups, reference.to),
        );
        rows.entry(key).or_default().push(reference);
    }
    let tree = heap.tree()?;
    let retained = heap.retained()?;
    let mut crossings = Vec::with_capacity(rows.len());
    for references in rows.into_values() {
        let Some(example) = references.iter().max_by_key(|reference| retained.get(reference.to))
        else {
            continue;
        };
        let mut inside: Vec<u32> = references.iter().map(|reference| reference.to).collect();
        inside.sort_unstable();
        inside.dedup();
        let mut holders: Vec<u32> = references.iter().map(|reference| reference.from).collect();
        holders.dedup();
        let label = describer.words.label_of(example.edge);
        let mut path = path::to(heap, example.from)?;
        path.push(example.to);
        let phrase = describer.words.path(&path);
        crossings.push(Crossing {
            from: describer.words.short(example.from),
            label: label.map(|label| if label.starts_with('[') { ANY.to_owned() } else { label }),
            class: describer.words.class(example.to).to_owned(),
            references: references.len() as u64,
            holders: holders.len() as u64,
            count: inside.len() as u64,
            keepalive_count: inside.iter().filter_map(|node| keepalive.get(node)).max().copied(),
            retained: retained_together(tree, retained, inside),
            example: phrase.to_string(),
            phrase,
        });
    }
    Ok(crossings)
}

/// Total retained size of nodes, except those that another one dominates.
fn retained_together(tree: &Tree, retained: &Sizes, mut nodes: Vec<u32>) -> u64 {
    nodes.sort_unstable_by_key(|&node| tree.place(node));
    let mut end = 0;
    let mut sum = 0_u64;
    for node in nodes {
        if tree.place(node).is_some_and(|place| place >= end) {
            end = tree.subtree_end(node);
            sum = sum.saturating_add(retained.get(node));
        }
    }
    sum
}

/// Classes, modules and roots represent themselves, other objects are represented by their class.
fn holder(heap: &Heap, groups: &[u32], node: u32) -> u32 {
    let group = groups.get(node as usize).and_then(|&group| heap.groups().get(group as usize));
    match group {
        Some(group) if ![Kind::CLASS, Kind::MODULE, Kind::ICLASS].contains(&group.kind) => {
            group.shown
        }
        _ => heap.classes().len() as u32 + node,
    }
}

fn class(heap: &Heap, groups: &[u32], node: u32) -> u32 {
    let group = groups.get(node as usize).and_then(|&group| heap.groups().get(group as usize));
    group.map_or(NONE, |group| group.shown)
}

/// All elements have the same label, whatever their index or key.
fn label(packed: Option<u32>) -> u32 {
    let packed = Packed(packed.unwrap_or(0));
    match packed.label() {
        Label::Index(_) | Label::Entry | Label::Under(_) => 1,
        Label::None => 0,
        _ => packed.0,
    }
}

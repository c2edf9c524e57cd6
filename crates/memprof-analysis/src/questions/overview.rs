//! `overview`: the heap in numbers, its origin, and the limits of its dump.

pub(super) mod process_facts;
#[cfg(test)]
mod tests;
mod warnings;

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::histogram::{self, Row};
use super::tally::percent;
use super::{Error, Limit, Remark, Selection, leaked};
use crate::order;
use memprof_dump::record::{Flags, Kind};
use memprof_heap::graph::BitSet;
use memprof_heap::{FOLDED, Group, Heap, NONE};

/// `overview`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// Maximum number of largest classes.
    pub limit: Limit<5>,
}

/// Origin and completeness of the heap.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Source {
    /// File of the dump.
    pub path: Option<String>,
    /// Format of the dump.
    pub format: String,
    /// The dump is truncated.
    pub truncated: bool,
    /// Number of invalid lines or blocks that were skipped.
    pub skipped: u64,
    /// Line or block number of the first of them.
    pub first_skipped: Option<u64>,
    /// References to objects missing in the dump.
    pub missing: u64,
}

/// Objects, and the sum of their memsizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sum {
    /// Objects.
    pub count: u64,
    /// Sum of their memsizes.
    pub size: u64,
    /// Percentage of the whole heap's memsize.
    pub percent: f64,
}

impl Sum {
    fn add(&mut self, size: u64) {
        self.count += 1;
        self.size = self.size.saturating_add(size);
    }

    fn of(mut self, whole: u64) -> Sum {
        self.percent = percent(self.size, whole);
        self
    }
}

/// Objects of a type.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfType {
    /// Type.
    pub r#type: &'static str,
    /// Objects.
    #[serde(flatten)]
    pub sum: Sum,
}

/// Counts of common kinds of objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Counts {
    /// Classes, without singleton classes.
    pub classes: u64,
    /// Singleton classes.
    pub singleton_classes: u64,
    /// Modules.
    pub modules: u64,
    /// Methods that are objects.
    pub methods: u64,
    /// Pieces of compiled code.
    pub iseqs: u64,
    /// Strings.
    pub strings: u64,
    /// Symbols that are objects.
    pub symbols: u64,
    /// Arrays.
    pub arrays: u64,
    /// Hashes.
    pub hashes: u64,
    /// Structs.
    pub structs: u64,
    /// Procs.
    pub procs: u64,
    /// Threads.
    pub threads: u64,
    /// Fibers.
    pub fibers: u64,
    /// Objects with open files and sockets.
    pub files: u64,
    /// Files with lines that allocated objects.
    pub source_files: u64,
    /// Shapes.
    pub shapes: u64,
}

/// A root category.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Root {
    /// Name.
    pub root: String,
    /// References from it.
    pub references: u64,
    /// Bytes reachable only through it.
    pub retained: u64,
    /// Percentage of the whole heap's memsize.
    pub percent: f64,
}

/// Slots that are in use.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Slots {
    /// Bytes of the slots of all objects.
    pub size: u64,
    /// Bytes outside the slots.
    pub outside: u64,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Where the heap comes from.
    pub source: Source,
    /// The process, from the dump: ruby, pid, time and more.
    pub process: Map<String, Value>,
    /// GC statistics, from the dump.
    pub gc: Map<String, Value>,
    /// All objects.
    pub objects: Sum,
    /// References between objects.
    pub references: u64,
    /// By type, the largest first.
    pub types: Vec<OfType>,
    /// Counts of common kinds of objects.
    pub counts: Counts,
    /// Slots; null if their sizes are unknown.
    pub slots: Option<Slots>,
    /// Unreachable objects, garbage that was not yet freed; null if the dump has no roots.
    pub unreachable: Option<Sum>,
    /// Objects that each root category alone retains, the largest first.
    pub roots: Vec<Root>,
    /// Bytes that several root categories retain; null if the dump has no roots.
    pub shared_by_roots: Option<u64>,
    /// Objects with a known allocation site.
    pub tracked: Sum,
    /// First generation in which an object was allocated.
    pub first_generation: Option<u32>,
    /// Last such generation.
    pub last_generation: Option<u32>,
    /// The largest classes.
    pub classes: Vec<Row>,
    /// Missing information and its consequences.
    pub warnings: Vec<Remark>,
}

impl Question {
    /// The answer.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn answer(&self, heap: &Heap) -> Result<Answer, Error> {
        let header = process_facts::header(heap);
        let whole = heap.size()?;
        let selection = Selection::new(heap, None)?;
        let memsizes = heap.memsizes()?;
        let groups = heap.group_numbers()?;
        let sites = heap.site_numbers()?;
        let (mut objects, mut tracked) = (Sum::default(), Sum::default());
        let mut by_group = vec![Sum::default(); heap.groups().len()];
        for id in selection.iter() {
            let size = memsizes.get(id);
            objects.add(size);
            if let Some(sum) =
                groups.get(id as usize).and_then(|&group| by_group.get_mut(group as usize))
            {
                sum.add(size);
            }
            if sites.get(id as usize).is_some_and(|&site| site != NONE) {
                tracked.add(size);
            }
        }
        let generations =
            heap.generations()?.iter().copied().filter(|&generation| generation != NONE);
        let (first, last) = generations.fold((NONE, 0), |(first, last), generation| {
            (generation.min(first), generation.max(last))
        });
        let largest = histogram::Question { limit: Limit(self.limit.0), ..Default::default() };
        let roots = roots(heap, whole)?;
        let rooted = !heap.categories().is_empty();
        let mut answer = Answer {
            source: source(heap),
            process: process_facts::process(&header),
            gc: process_facts::collector(&header),
            objects: objects.of(whole),
            references: references(heap)?,
            types: types(heap, &by_group, whole),
            counts: counts(heap, &by_group)?,
            slots: used_slots(heap, objects.size)?,
            unreachable: unreachable(heap, &selection)?.map(|sum| sum.of(whole)),
            shared_by_roots: match rooted {
                true => Some(roots.iter().fold(heap.retained()?.get(heap.root()), |rest, root| {
                    rest.saturating_sub(root.retained)
                })),
                false => None,
            },
            roots,
            tracked: tracked.of(whole),
            first_generation: (first != NONE).then_some(first),
            last_generation: (first != NONE).then_some(last),
            classes: largest.answer(heap)?.rows,
            warnings: Vec::new(),
        };
        answer.warnings = warnings::of(heap, &answer, &header);
        Ok(answer)
    }
}

fn source(heap: &Heap) -> Source {
    let source = &heap.source;
    Source {
        path: source.path.as_ref().map(|path| path.to_string_lossy().into_owned()),
        format: source.format.clone(),
        truncated: source.truncated,
        skipped: source.skipped,
        first_skipped: source.first_skipped,
        missing: source.missing,
    }
}

fn references(heap: &Heap) -> Result<u64, Error> {
    let graph = heap.graph(&[])?;
    Ok(graph.offsets.get(heap.len() as usize).map_or(0, |&end| u64::from(end)))
}

fn types(heap: &Heap, by_group: &[Sum], whole: u64) -> Vec<OfType> {
    let mut types: Vec<OfType> = Vec::new();
    for (group, sum) in heap.groups().iter().zip(by_group) {
        let name = group.kind.name();
        let index = types.iter().position(|of| of.r#type == name).unwrap_or_else(|| {
            types.push(OfType { r#type: name, sum: Sum::default() });
            types.len() - 1
        });
        types[index].sum.count += sum.count;
        types[index].sum.size = types[index].sum.size.saturating_add(sum.size);
    }
    types.retain(|of| of.sum.count > 0);
    types.iter_mut().for_each(|of| of.sum = of.sum.of(whole));
    order::sort_by_key(&mut types, |of| std::cmp::Reverse((of.sum.size, of.sum.count)));
    types
}

fn counts(heap: &Heap, by_group: &[Sum]) -> Result<Counts, Error> {
    let mut counts = Counts { shapes: heap.shapes().len() as u64, ..Counts::default() };
    for (group, sum) in heap.groups().iter().zip(by_group) {
        let name = group.name.map_or("", |name| heap.name(name));
        let count = match (group.kind, name) {
            (Kind::CLASS, _) => &mut counts.classes,
            (Kind::MODULE, _) => &mut counts.modules,
            (Kind::STRING, _) => &mut counts.strings,
            (Kind::SYMBOL, _) => &mut counts.symbols,
            (Kind::ARRAY, _) => &mut counts.arrays,
            (Kind::HASH, _) => &mut counts.hashes,
            (Kind::STRUCT, _) => &mut counts.structs,
            (Kind::FILE, _) => &mut counts.files,
            (Kind::IMEMO, "ment") => &mut counts.methods,
            (Kind::IMEMO, "iseq") => &mut counts.iseqs,
            (Kind::DATA, "proc") => &mut counts.procs,
            (Kind::DATA, "VM/thread" | "thread") => &mut counts.threads,
            (Kind::DATA, "fiber") => &mut counts.fibers,
            _ => continue,
        };
        *count += sum.count;
    }
    let flags = heap.flag_words()?;
    let singleton = |id: u32| {
        let flags = flags.get(id as usize).copied().unwrap_or(0);
        flags & Flags::SINGLETON.0 != 0 && flags & FOLDED.0 == 0
    };
    let singletons =
        heap.class_objects().iter().filter(|class| singleton(class.object)).count() as u64;
    counts.singleton_classes = singletons;
    counts.classes = counts.classes.saturating_sub(singletons);
    let files: FxHashSet<_> = heap.sites().iter().map(|site| site.file).collect();
    counts.source_files = files.len() as u64;
    Ok(counts)
}

/// Slot sizes are those of pages. Objects folded into their owner have their own slot; memprof's objects never count.
fn used_slots(heap: &Heap, size: u64) -> Result<Option<Slots>, Error> {
    let (groups, flags) = (heap.group_numbers()?, heap.flag_words()?);
    let name = |group: &Group| group.name.map(|name| heap.name(name));
    let folded = heap.groups().iter();
    let folded = folded.map(|group| group.kind == Kind::IMEMO && name(group) == Some("fields"));
    let folded: Vec<bool> = folded.collect();
    let counts = |id: usize| {
        let is_folded = |group: &u32| folded.get(*group as usize) == Some(&true);
        flags[id] & FOLDED.0 == 0 || groups.get(id).is_some_and(is_folded)
    };
    let all = leaked::slots(heap)?.into_iter().enumerate();
    let sum = all.filter(|&(id, _)| counts(id)).fold(0_u64, |sum, (_, slot)| sum + u64::from(slot));
    Ok((sum > 0).then(|| Slots { size: sum, outside: size.saturating_sub(sum) }))
}

fn unreachable(heap: &Heap, selection: &Selection<'_>) -> Result<Option<Sum>, Error> {
    if heap.categories().is_empty() {
        return Ok(None);
    }
    let dominators = heap.dominators()?;
    let reached = BitSet::of(heap.len() as usize, dominators.order.iter().copied());
    let memsizes = heap.memsizes()?;
    let mut sum = Sum::default();
    selection.iter().filter(|&id| !reached.contains(id)).for_each(|id| sum.add(memsizes.get(id)));
    Ok(Some(sum))
}

fn roots(heap: &Heap, whole: u64) -> Result<Vec<Root>, Error> {
    let graph = heap.graph(&[])?;
    let retained = heap.retained()?;
    let categories = heap.categories().iter().zip(0..);
    let mut roots: Vec<Root> = categories
        .map(|(category, index)| {
            let node = heap.category_node(index);
            Root {
                root: category.name.clone(),
                references: graph.row(node).len() as u64,
                retained: retained.get(node),
                percent: percent(retained.get(node), whole),
            }
        })
        .collect();
    order::sort_by_key(&mut roots, |root| std::cmp::Reverse(root.retained));
    Ok(roots)
}

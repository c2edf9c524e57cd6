//! GC roots: global variables, registers, stacks, variables of libraries, other mappings, and C blocks reachable from these.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use memprof_dump::Writer;
use memprof_dump::record::{Edge, Kind, Label, Value};
use memprof_heap::graph::BitSet;
use rustc_hash::FxHashMap;

use super::Dump;
use super::edges::plain;
use super::sizes::exact;
use crate::memory_map::Anchor;
use crate::ranges;
use crate::ruby_heap::RubyHeap;

/// The category of global variables, named as in other dumps.
const GLOBALS: &str = "global_tbl";
/// Other categories, most meaningful first. Stacks and registers are named as in other dumps, where they can be ignored.
const CATEGORIES: [&str; 5] = ["static", "native", "external", "machine_context", "registers"];
const STATIC: usize = 0;
const NATIVE: usize = 1;
const BATCH: usize = 2048;
/// Contents of objects outside of blocks are in one range of this size (the transient heap of Ruby 3.1). Otherwise, only the
/// pieces of size `PIECE` that contain some belong to objects.
const ARENA: u64 = 32 << 20;
const PIECE: u64 = 32 << 10;
/// No process has memory above this address.
const HIGHEST: u64 = 1 << 56;

impl<W: Writer> Dump<'_, '_, W> {
    pub(super) fn roots(&mut self) -> io::Result<()> {
        let with_blocks = self.contents_of_objects.is_some();
        let globals = self.globals()?;
        let (mut roots, files, taken) = roots(self.heap, with_blocks);
        self.taken = taken;
        roots.iter_mut().for_each(|category| category.subtract(&globals));
        for (number, nodes) in roots.iter().enumerate() {
            // Variables of each library form a category.
            let mut categories: BTreeMap<String, Vec<u32>> = BTreeMap::new();
            for node in nodes.iter() {
                let name = match files.get(&node).filter(|_| number == STATIC) {
                    Some(file) => format!("{} {file}", CATEGORIES[STATIC]),
                    None => CATEGORIES[number].to_owned(),
                };
                categories.entry(name).or_default().push(node);
            }
            for (category, nodes) in categories {
                self.category(&category, &nodes)?;
            }
        }
        Ok(())
    }

    /// Writes the objects in global variables; returns their nodes.
    fn globals(&mut self) -> io::Result<BitSet> {
        let heap = self.heap;
        let mut nodes = BitSet::new(heap.analysis.references().graph().len());
        let mut edges = Vec::new();
        for (name, object) in heap.global_variables() {
            let Some((node, _)) = heap.slot(object) else {
                continue;
            };
            if nodes.insert(node) {
                let label = Label::Global(self.tables.intern(&name));
                edges.push(plain(label, Value::Address(object)));
            }
        }
        if !edges.is_empty() {
            self.writer.roots(&self.tables, GLOBALS, &edges)?;
        }
        Ok(nodes)
    }

    fn category(&mut self, category: &str, nodes: &[u32]) -> io::Result<()> {
        for nodes in nodes.chunks(BATCH) {
            self.check_stop()?;
            let edges = nodes.iter().map(|&node| Edge {
                label: Label::None,
                value: Value::Address(self.address_of(node)),
                preview: None,
            });
            let edges: Vec<Edge<'_>> = edges.collect();
            self.writer.roots(&self.tables, category, &edges)?;
        }
        Ok(())
    }
}

impl<W: Writer> Dump<'_, '_, W> {
    fn address_of(&self, node: u32) -> u64 {
        match self.heap.analysis.block(node) {
            Some(block) => block.address,
            None => self.heap.address(node),
        }
    }
}

fn category(anchor: Anchor) -> usize {
    match anchor {
        Anchor::Static => STATIC,
        Anchor::External => 2,
        Anchor::Stack => 3,
        Anchor::Register => 4,
    }
}

/// Roots by category, each only in the first one. With blocks, root blocks replace the objects that they reach. Also returns the
/// libraries whose variables reference the roots in [`STATIC`], and the blocks whose references are among the roots.
fn roots<'a>(
    heap: &RubyHeap<'a>,
    with_blocks: bool,
) -> ([BitSet; CATEGORIES.len()], FxHashMap<u32, &'a str>, BitSet) {
    let analysis = heap.analysis;
    let references = analysis.references();
    let graph = references.graph();
    let blocks = references.slots().start;
    let mut roots = CATEGORIES.map(|_| BitSet::new(graph.len()));
    let mut next = Vec::new();
    let mut add = |category: usize, node: u32, next: &mut Vec<u32>| {
        let root = if node >= blocks {
            heap.kind_of_node(node).map(|_| node)
        } else if let Some(owner) = owner(heap, node) {
            // The block is part of that object.
            Some(owner)
        } else if with_blocks {
            Some(node)
        } else {
            next.push(node);
            None
        };
        root.inspect(|&root| {
            roots[category].insert(root);
        })
    };
    let mut files = FxHashMap::default();
    for point in &references.anchor_points {
        if point.anchor == Anchor::External {
            continue;
        }
        let root = add(category(point.anchor), point.node, &mut next);
        if let Some(root) = root.filter(|_| point.anchor == Anchor::Static) {
            if let Some(file) = analysis.library_of(point.from) {
                files.entry(root).or_insert(file);
            }
        }
    }
    for range in ranges::without(&analysis.map.external, &contents(heap)) {
        analysis.image.each_word(range, |_, word| {
            if let Some(node) = analysis.node_at(word) {
                add(category(Anchor::External), node, &mut next);
            }
        });
    }
    let mut reached = BitSet::new(graph.len());
    while let Some(block) = next.pop() {
        if !reached.insert(block) {
            continue;
        }
        for target in graph.edges(block) {
            add(NATIVE, target, &mut next);
        }
    }
    for number in 1..roots.len() {
        let (before, rest) = roots.split_at_mut(number);
        before.iter().for_each(|other| rest[0].subtract(other));
    }
    (roots, files, reached)
}

/// The object that owns a block. If its type determines its blocks, this is one of them: another one it seems to own by remains
/// in its memory.
fn owner(heap: &RubyHeap<'_>, number: u32) -> Option<u32> {
    let analysis = heap.analysis;
    let owner = analysis.owner_node(number)?;
    let block = analysis.block(number)?.address;
    let object = heap.object(heap.address(owner))?;
    let is_its = exact(heap, &object).is_none_or(|mut blocks| blocks.any(|own| own == block));
    is_its.then_some(owner)
}

/// Memory outside of blocks with contents of objects, which is not a root.
fn contents(heap: &RubyHeap<'_>) -> Vec<Range<u64>> {
    let external = &heap.analysis.map.external;
    let mut found: Vec<Vec<Range<u64>>> = vec![Vec::new(); external.len()];
    for object in heap.objects() {
        let range = match object.kind() {
            Kind::ARRAY => heap.array(&object).map(|array| array.elements.range()),
            Kind::STRUCT => heap.structure(&object).map(|cells| cells.range()),
            Kind::OBJECT => heap.values(&object).map(|values| values.range()),
            Kind::HASH => heap.hash(&object).map(|hash| hash.entries.range()),
            _ => None,
        };
        let range = range.filter(|range| !range.is_empty() && range.end < HIGHEST);
        let place = range.as_ref().and_then(|range| ranges::containing(external, range.start));
        if let (Some(range), Some(place)) = (range, place) {
            let last = found[place].last();
            // Pieces, not ranges: many objects share one.
            let piece = range.start & !(PIECE - 1)..range.end.next_multiple_of(PIECE);
            if last != Some(&piece) {
                found[place].push(piece);
            }
        }
    }
    let mut all = Vec::new();
    for pieces in found.into_iter().map(ranges::sorted) {
        match (pieces.first(), pieces.last()) {
            (Some(first), Some(last)) if last.end - first.start <= ARENA => {
                all.push(first.start..last.end);
            }
            _ => all.extend(pieces),
        }
    }
    ranges::sorted(all)
}

//! What anchors objects: registers, stacks, variables of libraries, other mappings, and blocks of C code that these reach.

use std::io;
use std::ops::Range;

use memprof_dump::Writer;
use memprof_dump::record::{Edge, Kind, Label, Value};
use memprof_heap::graph::BitSet;

use super::Dump;
use crate::image::WORD;
use crate::memory_map::Anchor;
use crate::ranges;
use crate::ruby_heap::RubyHeap;

/// Categories, those that say most first. What is on stacks is called as in other dumps, where it may be left out.
const CATEGORIES: [&str; 4] = ["static", "native", "external", "machine_context"];
const NATIVE: usize = 1;
const BATCH: usize = 2048;
/// Contents of objects outside of blocks lie within so many bytes (the transient heap of Ruby 3.1), else only the pieces
/// of this size are theirs in which some lie.
const ARENA: u64 = 32 << 20;
const PIECE: u64 = 32 << 10;
/// No process has memory above.
const HIGHEST: u64 = 1 << 56;

impl Dump<'_, '_> {
    pub(super) fn roots(&mut self) -> io::Result<()> {
        let with_blocks = self.contents_of_objects.is_some();
        for (category, nodes) in CATEGORIES.into_iter().zip(roots(self.heap, with_blocks)) {
            let mut batch = Vec::new();
            let mut left = nodes.count();
            for node in nodes.iter() {
                batch.push(Edge {
                    label: Label::None,
                    value: Value::Address(self.address_of(node)),
                    preview: None,
                });
                left -= 1;
                if batch.len() == BATCH || left == 0 {
                    self.check_stop()?;
                    self.writer.roots(&self.tables, category, &batch)?;
                    batch.clear();
                }
            }
        }
        Ok(())
    }
}

impl Dump<'_, '_> {
    fn address_of(&self, node: u32) -> u64 {
        match self.heap.analysis.block(node) {
            Some(block) => block.address,
            None => self.heap.address(node),
        }
    }
}

fn category(anchor: Anchor) -> usize {
    match anchor {
        Anchor::Static => 0,
        Anchor::External => 2,
        Anchor::Stack | Anchor::Register => 3,
    }
}

/// Objects by category, each in the first one only. With blocks, these too, in place of what they reach.
fn roots(heap: &RubyHeap<'_>, with_blocks: bool) -> [BitSet; CATEGORIES.len()] {
    let analysis = heap.analysis;
    let references = analysis.references();
    let graph = references.graph();
    let blocks = references.slots().start;
    let mut roots = CATEGORIES.map(|_| BitSet::new(graph.len()));
    let mut reached = BitSet::new(graph.len());
    let mut next = Vec::new();
    let mut add = |category: usize, node: u32, next: &mut Vec<u32>| {
        if node >= blocks {
            if heap.kind_of_node(node).is_some() {
                roots[category].insert(node);
            }
        } else if let Some(owner) = analysis.owner_node(node) {
            // It is part of that object.
            roots[category].insert(owner);
        } else if with_blocks {
            roots[category].insert(node);
        } else if reached.insert(node) {
            next.push(node);
        }
    };
    for point in &references.anchor_points {
        if point.anchor != Anchor::External {
            add(category(point.anchor), point.node, &mut next);
        }
    }
    for range in ranges::without(&analysis.map.external, &contents(heap)) {
        analysis.image.each_word(range, |_, word| {
            if let Some(node) = analysis.node_at(word) {
                add(category(Anchor::External), node, &mut next);
            }
        });
    }
    while let Some(block) = next.pop() {
        if is_mark_stack(heap, block) {
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
    roots
}

/// Whether a block is a piece of the collector's mark stack, which has what it marked last: 500 objects and the next piece.
pub(super) fn is_mark_stack(heap: &RubyHeap<'_>, number: u32) -> bool {
    const OBJECTS: u64 = 500;
    const SIZE: u64 = (OBJECTS + 1) * WORD;
    let Some(block) = heap
        .analysis
        .block(number)
        .filter(|block| block.size == SIZE)
    else {
        return false;
    };
    let next = heap.memory.word(block.address + OBJECTS * WORD);
    next.is_some_and(|next| next == 0 || heap.block(next) == Some(SIZE))
}

/// Memory outside of blocks that has contents of objects: what lies there is no root.
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
        let place = range
            .as_ref()
            .and_then(|range| ranges::containing(external, range.start));
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

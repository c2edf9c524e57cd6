//! Chrome's `.heapsnapshot`, for DevTools (Memory, Load) and tools such as memlab.
//!
//! Source of truth: `v8/src/profiler/heap-snapshot-generator.cc` (V8's writer) and the DevTools loader,
//! `front_end/entrypoints/heap_snapshot_worker/HeapSnapshotLoader.ts` and `HeapSnapshot.ts`.
//!
//! Nodes and edges are flat arrays of numbers. Edges are ordered by their nodes, which have the number of their edges; an
//! edge names its target by its position in the node array. DevTools computes dominators from the edges, so references to
//! classes are included. It uses 32-bit numbers: ids are the lower half of `address >> 3`, and an object of more than 4
//! GiB is shown as 4 GiB.

mod snapshot_edges;
mod snapshot_nodes;
mod snapshot_strings;

use std::io::{self, Write};

use super::choice::Choice;
use super::naming::Naming;
use super::out::Out;
use super::{Counts, Options};
use memprof_heap::graph::{Dominators, Graph};
use memprof_heap::{Heap, NONE};
use snapshot_strings::Strings;

/// Objects that DevTools can still load.
const LIMIT: usize = 5_000_000;
/// The header, which defines the meaning of the numbers.
const META: &str = r#"{"snapshot":{"meta":{"node_fields":["type","name","id","self_size","edge_count","trace_node_id","detachedness"],"node_types":[["hidden","array","string","object","code","closure","regexp","number","native","synthetic","concatenated string","sliced string","symbol","bigint","object shape","wasm object"],"string","number","number","number","number","number"],"edge_fields":["type","name_or_index","to_node"],"edge_types":[["context","element","property","internal","hidden","shortcut","weak"],"string_or_number","node"],"trace_function_info_fields":["function_id","name","script_name","script_id","line","column"],"trace_node_fields":["id","function_info_index","count","size","children"],"sample_fields":["timestamp_us","last_assigned_id"],"location_fields":["object_index","script_id","line","column"]},"#;

/// Writes the snapshot.
pub(super) fn write(heap: &Heap, options: &Options<'_>, out: &mut dyn Write) -> io::Result<Counts> {
    let choice = Choice::new(heap, options, LIMIT)?;
    let classes = heap.group_classes();
    let mut snapshot = Snapshot {
        heap,
        graph: heap.graph(&classes)?,
        tree: heap.dominators()?,
        naming: Naming::new(heap)?,
        positions: vec![NONE; choice.nodes.length()],
        degrees: Vec::new(),
        names: Vec::new(),
        strings: Strings::default(),
        out: Out::new(out),
        choice: &choice,
    };
    snapshot.number();
    let references = snapshot.count();
    snapshot.nodes()?;
    snapshot.edges()?;
    snapshot.out.push("],\n\"trace_function_infos\":[],\n\"trace_tree\":[],\n\"samples\":[],\n\"locations\":[],\n\"strings\":[");
    for (text, index) in snapshot.strings.iter().zip(0..) {
        snapshot.out.push(if index == 0 { "" } else { ",\n" });
        snapshot.out.text.extend_from_slice(text);
        snapshot.out.flush_if_full()?;
    }
    snapshot.out.push("]}\n");
    snapshot.out.finish()?;
    Ok(Counts { references, ..choice.counts() })
}

struct Snapshot<'h, 'o> {
    heap: &'h Heap,
    graph: Graph<'h>,
    tree: &'h Dominators,
    choice: &'h Choice,
    naming: Naming<'h>,
    /// Position of each node of the graph in the file.
    positions: Vec<u32>,
    /// Number of edges of each node, in file order.
    degrees: Vec<u32>,
    /// Names of the objects, in file order.
    names: Vec<u32>,
    strings: Strings,
    out: Out<'o>,
}

impl Snapshot<'_, '_> {
    /// True if the roots are included, not only some objects.
    fn has_roots(&self) -> bool {
        self.choice.nodes.contains(self.heap.root())
    }

    fn categories(&self) -> u32 {
        if self.has_roots() { self.heap.categories().len() as u32 } else { 0 }
    }

    /// The node of unreachable objects.
    fn loose(&self) -> u32 {
        2 + self.categories()
    }

    fn first_object(&self) -> u32 {
        self.loose() + 1
    }

    fn first_more(&self) -> u32 {
        self.first_object() + self.choice.objects as u32
    }

    /// Positions: root, `(GC roots)`, categories, unreachable objects, objects, summaries of others.
    fn number(&mut self) {
        let (mut next, objects) = (self.first_object(), self.heap.len());
        for node in self.choice.nodes.iter() {
            self.positions[node as usize] = match node.checked_sub(objects) {
                None => {
                    next += 1;
                    next - 1
                }
                Some(category) if node < self.heap.root() => 2 + category,
                Some(_) => 0,
            };
        }
    }

    /// The targets of a node that are in the file, with their places among the edges; the place is [`NONE`] for the class.
    fn targets(&self, node: u32) -> impl Iterator<Item = (u32, u32)> {
        let start = self.graph.offsets.get(node as usize).copied().unwrap_or(0);
        let row = self.graph.row(node).iter().copied().zip(start..);
        let class = self.graph.extra_of(node).map(|(_, class)| (class, NONE));
        row.chain(class)
            .map(|(target, edge)| (self.positions[target as usize], edge))
            .filter(|&(at, _)| at != NONE)
    }

    /// Counts the edges of each node; returns how many are references of the heap.
    fn count(&mut self) -> u64 {
        let mut degrees = vec![0; self.first_more() as usize + self.choice.more.len()];
        let mut references = 0;
        for node in self.choice.nodes.iter().filter(|&node| node != self.heap.root()) {
            let degree = self.targets(node).count() as u32;
            degrees[self.positions[node as usize] as usize] = degree;
            references += u64::from(degree);
        }
        degrees[0] = 2;
        degrees[1] = self.categories();
        degrees[self.loose() as usize] = self.choice.tops.len() as u32;
        for &(owner, _) in &self.choice.links {
            degrees[self.positions[owner as usize] as usize] += 1;
        }
        for more in &self.choice.more {
            degrees[self.positions[more.owner as usize] as usize] += 1;
        }
        self.degrees = degrees;
        references
    }
}

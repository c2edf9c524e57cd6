//! A loader as strict as that of DevTools: whatever it rejects fails here, and retained sizes match the heap's.

use serde_json::Value as Json;

use super::super::hostile_heaps::{hostile, parsed};
use super::super::{Counts, Format, Options};
use memprof_heap::Heap;
use memprof_heap::graph::{self, BitSet, Graph};

const WEAK: u64 = 6;

struct Loaded {
    nodes: Vec<[u64; 7]>,
    /// Type, name, number of the target.
    edges: Vec<Vec<(u64, u64, u32)>>,
    strings: Vec<String>,
}

fn numbers(json: &Json) -> Vec<u64> {
    let array = json.as_array().expect("an array");
    array.iter().map(|number| number.as_u64().expect("a number")).collect()
}

fn load(json: &Json) -> Loaded {
    let head = &json["snapshot"];
    let strings: Vec<String> = serde_json::from_value(json["strings"].clone()).expect("texts");
    let flat = numbers(&json["nodes"]);
    assert_eq!(flat.len() as u64, head["node_count"].as_u64().expect("a count") * 7);
    let nodes: Vec<[u64; 7]> =
        flat.chunks_exact(7).map(|node| node.try_into().expect("seven")).collect();
    let flat = numbers(&json["edges"]);
    assert_eq!(flat.len() as u64, head["edge_count"].as_u64().expect("a count") * 3);
    assert_eq!(flat.len() as u64 / 3, nodes.iter().map(|node| node[4]).sum::<u64>());
    assert!(flat.iter().chain(nodes.iter().flatten()).all(|&number| number <= u64::from(u32::MAX)));
    let mut rest = flat.chunks_exact(3);
    let mut edges = Vec::new();
    for node in &nodes {
        assert!(node[0] < 16 && node[1] < strings.len() as u64);
        let own = rest.by_ref().take(node[4] as usize).map(|edge| {
            assert!(edge[2] % 7 == 0 && edge[2] / 7 < nodes.len() as u64, "no node");
            assert!(matches!(edge[0], 1 | 4) || edge[1] < strings.len() as u64, "no text");
            (edge[0], edge[1], (edge[2] / 7) as u32)
        });
        edges.push(own.collect());
    }
    for empty in ["samples", "locations", "trace_tree", "trace_function_infos"] {
        assert_eq!(json[empty], serde_json::json!([]));
    }
    Loaded { nodes, edges, strings }
}

impl Loaded {
    fn retained(&self) -> Vec<u64> {
        let mut offsets = vec![0];
        let mut targets = Vec::new();
        for edges in &self.edges {
            targets.extend(edges.iter().filter(|edge| edge.0 != WEAK).map(|edge| edge.2));
            offsets.push(targets.len() as u32);
        }
        let graph = Graph { offsets: &offsets, targets: &targets, ..Graph::default() };
        let tree = graph::dominators(&graph, 0);
        assert_eq!(tree.order.len(), self.nodes.len(), "all nodes are reachable");
        graph::retained(&tree, |node| self.nodes[node as usize][3])
    }

    fn named(&self, name: &str) -> usize {
        let found = self.nodes.iter().position(|node| self.strings[node[1] as usize] == name);
        found.expect("a node of this name")
    }
}

/// Loads the snapshot and compares retained sizes.
fn compare(heap: &Heap, options: &Options<'_>) -> (Loaded, Counts) {
    let (json, counts) = parsed(heap, Format::HeapSnapshot, options);
    let loaded = load(&json);
    let sizes = heap.memsizes().expect("sizes");
    let known = |node| sizes.get(node).min(u64::from(u32::MAX));
    let expected = graph::retained(heap.dominators().expect("a tree"), known);
    let mut compared = 0;
    for (node, sum) in loaded.nodes.iter().zip(loaded.retained()).filter(|(node, _)| node[0] != 9) {
        let address = 0x7f00_0000_0000_u64 | node[2] << 3 & 0xffff_ffff;
        let id = heap.at(address).expect("an object");
        assert!(options.members.is_some() || sum == expected[id as usize], "{address:#x}");
        compared += 1;
    }
    assert_eq!(compared, counts.objects);
    (loaded, counts)
}

#[test]
fn has_the_retained_sizes_of_the_heap() {
    for seed in 0..20 {
        let heap = hostile(300, seed);
        let (loaded, counts) = compare(&heap, &Options::default());
        assert_eq!(counts.objects, 300);
        assert_eq!((counts.folded, counts.left_out), (0, 0));
        assert_eq!(loaded.strings[loaded.nodes[0][1] as usize], "");
        assert_eq!(loaded.edges[1].len(), heap.categories().len());
        let tree = heap.dominators().expect("a tree");
        let garbage = (0..heap.len()).filter(|&id| !tree.reaches(id)).count();
        assert_eq!(loaded.edges[loaded.named("(unreachable)")].len(), garbage);
    }
}

#[test]
fn keeps_retained_sizes_right_when_most_is_dropped() {
    for seed in (1..20).step_by(2) {
        let heap = hostile(300, seed);
        for limit in [0, 1, 10, 100, 299] {
            let options = Options { limit: Some(limit), ..Options::default() };
            let (_, counts) = compare(&heap, &options);
            assert_eq!(counts.objects, limit as u64);
            assert_eq!(counts.objects + counts.folded + counts.left_out, 300);
        }
        compare(&heap, &Options { min_retained: 500, ..Options::default() });
        compare(&heap, &Options { depth: Some(3), ..Options::default() });
    }
}

#[test]
fn writes_only_some_objects_without_roots() {
    let heap = hostile(300, 3);
    let members = BitSet::of(300, (0..300).filter(|id| id % 3 == 0));
    let options = Options { members: Some(&members), ..Options::default() };
    let (loaded, counts) = compare(&heap, &options);
    assert_eq!(counts.objects, 100);
    assert!(loaded.edges[1].is_empty());
    assert!(!loaded.edges[loaded.named("(held by others)")].is_empty());
    let (_, fewer) = compare(&heap, &Options { limit: Some(7), ..options });
    assert_eq!((fewer.objects, fewer.folded + fewer.left_out), (7, 93));
}

#[test]
fn writes_an_empty_heap() {
    let heap = hostile(0, 0);
    assert_eq!(compare(&heap, &Options::default()).1, Counts::default());
}

mod hostile;
mod index;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;

use serde_json::Value as Json;

use super::{Heap, NONE, Options, Sizes};
use memprof_dump::format::Format;
use memprof_dump::testing::{made, options};

/// A heap without an index.
pub(super) fn read(dump: &[u8]) -> Heap {
    let input = Cursor::new(dump.to_vec());
    Heap::read(Box::new(input), None, &Options::default()).expect("a dump")
}

/// The objects of a dump in memprof's JSON, the first at each address.
fn lines(dump: &[u8]) -> BTreeMap<u64, Json> {
    let mut objects = BTreeMap::new();
    for line in dump.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        let line: Json = serde_json::from_slice(line).expect("JSON");
        if let Some(address) = address(&line["_id"]) {
            objects.entry(address).or_insert(line);
        }
    }
    objects
}

fn address(json: &Json) -> Option<u64> {
    u64::from_str_radix(json.as_str()?.strip_prefix("0x")?, 16).ok()
}

fn size(sizes: &Sizes, id: u32) -> Json {
    sizes.get(id).into()
}

#[test]
fn columns_say_what_the_lines_say() {
    for seed in 1..40 {
        let dump = made(options(Format::Memprof), seed, 300);
        let objects = lines(&dump);
        let heap = read(&dump);
        assert_eq!(heap.len() as usize, objects.len());
        for (address, line) in &objects {
            let id = heap.at(*address).expect("an object");
            let object = heap.object(id).expect("columns").expect("an object");
            assert_eq!(object.address, *address);
            assert_eq!(line["type"], object.group.kind.name());
            assert_eq!(line["memsize"], size(heap.memsizes().expect("a column"), id));
            assert_eq!(line["generation"].as_u64(), object.generation.map(u64::from));
            let file = object.site.map(|site| heap.name(site.file));
            assert_eq!(line["file"].as_str(), file, "{line}");
            assert_eq!(line["shape_id"].as_u64(), object.shape.map(u64::from));
        }
    }
}

#[test]
fn references_are_those_of_the_lines_that_lead_to_objects() {
    for seed in 1..40 {
        let dump = made(options(Format::Memprof), seed, 300);
        let objects = lines(&dump);
        let heap = read(&dump);
        let classes = heap.group_classes();
        let graph = heap.graph(&classes).expect("a graph");
        assert!(graph.is_sound());
        let mut missing = 0;
        for (address_of, line) in &objects {
            let id = heap.at(*address_of).expect("an object");
            let empty = Vec::new();
            let references = line["references"].as_array().unwrap_or(&empty);
            let all: Vec<u64> = references.iter().filter_map(address).collect();
            let there = all.iter().copied().filter(|address| objects.contains_key(address));
            let there: Vec<u64> = there.collect();
            missing += all.len() - there.len();
            let row = graph.row(id).iter().map(|&target| heap.addresses().of(target));
            assert_eq!(row.collect::<Vec<u64>>(), there);
            // The `class` of an imemo is not a class.
            let class = match line["type"].as_str() {
                Some("imemo" | "zombie") => None,
                _ => address(&line["class"]).and_then(|class| heap.at(class)),
            };
            assert_eq!(graph.extra_of(id).map(|(_, class)| class), class);
        }
        assert!(heap.source.missing >= missing as u64);
    }
}

#[test]
fn every_format_makes_the_same_heap() {
    for seed in 1..20 {
        let one = read(&made(options(Format::Memprof), seed, 300));
        let other = read(&made(options(Format::Binary), seed, 300));
        let graph = |heap: &Heap| {
            let classes = heap.group_classes();
            let graph = heap.graph(&classes).expect("a graph");
            (graph.offsets.to_vec(), graph.targets.to_vec())
        };
        assert_eq!(graph(&one), graph(&other));
        assert_eq!(one.retained().expect("sizes"), other.retained().expect("sizes"));
        for id in 0..one.len() {
            assert_eq!(
                one.class_name(id).expect("a class"),
                other.class_name(id).expect("a class")
            );
        }
    }
}

#[test]
fn what_no_root_reaches_retains_no_more_than_itself() {
    let heap = read(&made(options(Format::Memprof), 7, 300));
    let steps = heap.steps().expect("steps");
    let tree = heap.dominators().expect("dominators");
    let reached: BTreeSet<u32> = tree.order.iter().copied().collect();
    for id in 0..heap.len() {
        assert_eq!(steps[id as usize] != NONE, reached.contains(&id));
        if !reached.contains(&id) {
            assert_eq!(
                heap.retained().expect("sizes").get(id),
                heap.memsizes().expect("sizes").get(id)
            );
        }
    }
    let sum: u64 = reached.iter().map(|&id| heap.memsizes().expect("sizes").get(id)).sum();
    assert_eq!(heap.retained().expect("sizes").get(heap.root()), sum);
}

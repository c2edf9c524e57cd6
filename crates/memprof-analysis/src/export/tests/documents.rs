//! Each line is a document, and together they match the heap's figures.

use serde_json::Value as Json;

use super::super::hostile_heaps::{hostile, written};
use super::super::{Format, Options};
use memprof_heap::graph::BitSet;

fn documents(text: &str) -> Vec<Json> {
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn has_a_document_for_each_object_and_root() {
    let heap = hostile(300, 2);
    let (text, counts) = written(&heap, Format::Documents, &Options::default());
    let all = documents(&text);
    assert_eq!((all.len(), counts.objects), (300 + heap.categories().len(), 300));
    let (objects, roots) = all.split_at(300);
    let (retained, tree) = (heap.retained().expect("sizes"), heap.dominators().expect("a tree"));
    for (json, id) in objects.iter().zip(0..) {
        assert_eq!(json["_id"], format!("{:#x}", heap.addresses().of(id)));
        assert_eq!(json["retained"], retained.get(id));
        assert_eq!(json["dominator"].is_null(), !tree.reaches(id));
        assert_eq!(json["class_name"], heap.class_name(id).expect("a class"));
    }
    let references: usize =
        all.iter().map(|json| json["references"].as_array().map_or(0, Vec::len)).sum();
    let classes = heap.group_classes();
    let graph = heap.graph(&classes).expect("a graph");
    let expected = (0..heap.root()).map(|node| graph.row(node).len()).sum::<usize>();
    assert_eq!((references, counts.references), (expected, expected as u64));
    assert_eq!(roots[0]["_id"], "root:vm");
    for json in all.iter().filter(|json| json.get("labels").is_some()) {
        assert_eq!(
            json["labels"].as_array().map(Vec::len),
            json["references"].as_array().map(Vec::len)
        );
    }
}

#[test]
fn writes_only_some_objects() {
    let heap = hostile(300, 2);
    let members = BitSet::of(300, 0..10);
    let options = Options { members: Some(&members), limit: Some(8), ..Options::default() };
    let (text, counts) = written(&heap, Format::Documents, &options);
    assert_eq!(
        (documents(&text).len(), counts.objects, counts.folded, counts.left_out),
        (8, 8, 0, 2)
    );
}

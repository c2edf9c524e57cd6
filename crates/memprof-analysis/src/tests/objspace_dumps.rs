//! Values in `ObjectSpace.dump_all` that are not objects, classes or references.

use std::io::Cursor;

use memprof_heap::{Heap, Options};
use serde_json::Value as Json;

use crate::tests::ask;

/// A class `Session`, two instances, a class `Order` with its origin, and the VM objects around them, as Ruby 3.1
/// writes them.
const DUMP: &str = r#"{"type":"ROOT", "root":"vm", "references":["0x10000", "0x10028", "0x10050"]}
{"address":"0x10000", "type":"CLASS", "class":"0x10000", "name":"Object", "references":["0x10078"], "memsize":500}
{"address":"0x10028", "type":"IMEMO", "class":"0x10078", "imemo_type":"callcache", "references":["0x100c8"], "memsize":40}
{"address":"0x10050", "type":"ARRAY", "class":"0x10000", "length":1, "references":["0x100a0"], "memsize":40}
{"address":"0x10078", "type":"CLASS", "class":"0x10000", "name":"Session", "references":["0x100c8"], "memsize":500}
{"address":"0x100a0", "type":"OBJECT", "class":"0x10078", "ivars":1, "memsize":40}
{"address":"0x100c8", "type":"IMEMO", "class":"0x10078", "imemo_type":"ment", "references":["0x10000"], "memsize":48}
{"address":"0x100f0", "type":"IMEMO", "class":"0x10118", "imemo_type":"constcache", "memsize":40}
{"address":"0x10118", "type":"STRING", "class":"0x10000", "bytesize":4, "value":"text", "memsize":40}
{"address":"0x10140", "type":"IMEMO", "class":"0x15", "imemo_type":"constcache", "memsize":40}
{"address":"0x10168", "type":"ICLASS", "class":"0x10078", "memsize":100}
{"address":"0x10190", "type":"IMEMO", "class":"0x10078", "imemo_type":"callcache", "memsize":40}
"#;

fn read(dump: &str) -> Heap {
    let input = Cursor::new(dump.as_bytes().to_vec());
    Heap::read(Box::new(input), None, &Options::default()).expect("a dump")
}

fn count(heap: &Heap, filter: &str) -> Json {
    let answer = ask(heap, "top", serde_json::json!({ "where": filter }));
    answer.expect("an answer")["count"].clone()
}

fn targets(heap: &Heap, address: u64) -> Vec<u64> {
    let classes = heap.group_classes();
    let graph = heap.graph(&classes).expect("a graph");
    let id = heap.at(address).expect("an object");
    let mut targets: Vec<u64> = graph.edges(id).map(|id| heap.addresses().of(id)).collect();
    targets.sort_unstable();
    targets
}

#[test]
fn imemos_and_iclasses_are_no_instances_of_what_their_class_word_names() {
    let heap = read(DUMP);
    assert_eq!(count(&heap, "class = Session"), 1);
    let id = |address| heap.at(address).expect("an object");
    let class = |address| heap.class_name(id(address)).expect("a name");
    assert_eq!(class(0x100c8), "<ment>");
    assert_eq!(class(0x10028), "<callcache>");
    assert_eq!(class(0x10168), "<iclass>");
    // It references the class that it stands for.
    assert_eq!(targets(&heap, 0x10168), [0x10078]);
}

#[test]
fn a_call_cache_does_not_hold_its_class() {
    let heap = read(DUMP);
    assert_eq!(targets(&heap, 0x10190), [0_u64; 0]);
    assert_eq!(targets(&heap, 0x10028), [0x100c8]);
}

#[test]
fn other_imemos_mark_what_is_in_the_place_of_their_class() {
    let heap = read(DUMP);
    assert_eq!(targets(&heap, 0x100c8), [0x10000, 0x10078]);
    assert_eq!(targets(&heap, 0x100f0), [0x10118]);
    // A number is not an object, and nothing is missing.
    assert_eq!(targets(&heap, 0x10140), [0_u64; 0]);
    assert_eq!(heap.source.missing, 0);
}

#[test]
fn a_reference_that_is_listed_twice_is_one() {
    let twice = DUMP.replace(
        r#""references":["0x10000"], "memsize":48"#,
        r#""references":["0x10078", "0x10000"], "memsize":48"#,
    );
    let heap = read(&twice);
    assert_eq!(targets(&heap, 0x100c8), [0x10000, 0x10078]);
}

#[test]
fn the_class_of_fields_is_their_owners() {
    let dump = DUMP.replace("\"callcache\"", "\"fields\"");
    assert_eq!(targets(&read(&dump), 0x10190), [0x10078]);
}

#[test]
fn free_slots_are_no_objects() {
    let free = r#"{"address":"0x101b8", "type":"NONE"}
{"address":"0x101e0", "type":"NONE", "class":"0x101b8", "references":["0x10078"]}
"#;
    let (plain, full) = (read(DUMP), read(&format!("{DUMP}{free}")));
    assert_eq!(full.len(), plain.len());
    assert_eq!(full.source.missing, 0);
    let asked = |heap: &Heap, question| ask(heap, question, serde_json::json!({}));
    for question in ["overview", "slots", "histogram", "leaks"] {
        let answers = [&plain, &full].map(|heap| asked(heap, question).expect("an answer"));
        assert_eq!(answers[0], answers[1]);
    }
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_line() {
    let marked = read(&format!("\u{feff}{DUMP}"));
    let plain = read(DUMP);
    assert_eq!(marked.source, plain.source);
    assert_eq!(marked.categories(), plain.categories());
    assert_eq!(marked.retained().expect("sizes"), plain.retained().expect("sizes"));
}

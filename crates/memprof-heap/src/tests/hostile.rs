//! Malformed dumps.

use super::{Heap, Options, read};
use crate::testing::{heap_of, thing};
use crate::{FOLDED, NONE};
use memprof_dump::record::Kind;

fn heap(lines: &[&str]) -> Heap {
    read(lines.join("\n").as_bytes())
}

#[test]
fn addresses_out_of_order_and_twice_are_put_in_order() {
    let heap = heap(&[
        r#"{"address":"0x2000", "type":"ARRAY", "length":2, "references":["0x1000", "0x3000"], "memsize":50}"#,
        r#"{"address":"0x3000", "type":"STRING", "value":"three", "bytesize":5, "memsize":70}"#,
        r#"{"address":"0x1000", "type":"STRING", "value":"one", "bytesize":3, "memsize":60}"#,
        r#"{"address":"0x2000", "type":"STRING", "references":["0x2000"], "memsize":99}"#,
        r#"{"type":"ROOT", "root":"vm", "references":["0x2000", "0x9000"]}"#,
    ]);
    assert_eq!(heap.len(), 3);
    let sizes = heap.memsizes().expect("sizes");
    assert_eq!([0, 1, 2].map(|id| sizes.get(id)), [60, 50, 70]);
    let classes = heap.group_classes();
    let graph = heap.graph(&classes).expect("a graph");
    assert_eq!(graph.row(1), [0, 2]);
    assert_eq!(graph.row(heap.category_node(0)), [1]);
    assert_eq!(heap.retained().expect("sizes").get(1), 180);
    let text = heap.object(0).expect("columns").and_then(|object| object.text);
    assert_eq!(text.expect("a text").bytes(), Some(&b"one"[..]));
    assert_eq!(heap.source.missing, 0);
}

#[test]
fn classes_that_go_in_circles_or_are_missing_have_a_name() {
    let heap = heap(&[
        r#"{"address":"0x1000", "type":"CLASS", "class":"0x1000", "superclass":"0x1028", "singleton":true}"#,
        r#"{"address":"0x1028", "type":"CLASS", "class":"0x1000", "superclass":"0x1000", "singleton":true}"#,
        r#"{"address":"0x1050", "type":"OBJECT", "ivars":0, "class":"0x1028"}"#,
        r#"{"address":"0x1078", "type":"OBJECT", "ivars":0, "class":"0x7777"}"#,
        r#"{"address":"0x10a0", "type":"IMEMO", "imemo_type":"iseq"}"#,
        r#"{"address":"0x10c8", "type":"CLASS"}"#,
        r#"{"address":"0x10f0", "type":"OBJECT", "ivars":0, "class":"0x10c8"}"#,
    ]);
    let names: Vec<&str> = (0..heap.len()).map(|id| heap.class_name(id).expect("a name")).collect();
    assert_eq!(names[2], "<object>");
    assert_eq!(names[3], "<unknown class>");
    assert_eq!(names[4], "<iseq>");
    assert_eq!(names[6], "#<Class:0x10c8>");
}

#[test]
fn a_dump_without_objects_is_an_empty_heap() {
    let heap = heap(&[r#"{"type":"ROOT", "root":"vm", "references":["0x2000"]}"#]);
    assert_eq!((heap.len(), heap.root()), (0, 1));
    assert_eq!(heap.retained().expect("sizes").get(heap.root()), 0);
    assert!(heap.object(0).expect("columns").is_none());
}

#[test]
fn a_chain_of_a_million_is_no_deeper_than_the_stack() {
    let mut dump =
        String::from("{\"type\":\"ROOT\", \"root\":\"vm\", \"references\":[\"0x100000\"]}\n");
    let count = 1_000_000_u64;
    for number in 0..count {
        let address = 0x100000 + 40 * number;
        let next = address + 40;
        dump.push_str(&format!(
            "{{\"address\":\"{address:#x}\", \"type\":\"OBJECT\", \"ivars\":1, \"references\":[\"{next:#x}\"], \"memsize\":40}}\n"
        ));
    }
    let heap = read(dump.as_bytes());
    assert_eq!(heap.retained().expect("sizes").get(0), 40 * count);
}

#[test]
fn variables_that_have_an_object_of_their_own_belong_to_their_owner() {
    let heap = heap(&[
        r#"{"type":"ROOT", "root":"vm", "references":["0x1000"]}"#,
        r#"{"address":"0x1000", "type":"STRING", "references":["0x1028", "0x1050"], "memsize":40}"#,
        r#"{"address":"0x1028", "type":"IMEMO", "imemo_type":"fields", "references":["0x1050", "0x1078"], "memsize":80}"#,
        r#"{"address":"0x1050", "type":"STRING", "memsize":40}"#,
        r#"{"address":"0x1078", "type":"STRING", "memsize":40}"#,
    ]);
    let classes = heap.group_classes();
    let graph = heap.graph(&classes).expect("a graph");
    assert!(graph.is_sound());
    assert_eq!(graph.row(0), [2, 3]);
    assert!(graph.row(1).is_empty());
    assert_eq!(heap.memsizes().expect("sizes").get(0), 120);
    assert_eq!(heap.flag_words().expect("flags")[1] & FOLDED.0, FOLDED.0);
    assert_eq!(heap.steps().expect("steps")[1], NONE);
    assert_eq!(heap.retained().expect("sizes").get(0), 200);
}

#[test]
fn variables_belong_to_who_says_so_though_a_cache_refers_to_them_first() {
    let heap = heap_of(
        "{}",
        &[("vm", &[0x1000, 0x2000])],
        &[
            thing(0x1000, Kind::DATA, "").to("", 0x3000),
            thing(0x2000, Kind::STRING, "").size(40).to("fields", 0x3000),
            thing(0x3000, Kind::IMEMO, "").named("fields").size(80).to("@tag", 0x4000),
            thing(0x4000, Kind::STRING, "").size(40),
        ],
    );
    let classes = heap.group_classes();
    let graph = heap.graph(&classes).expect("a graph");
    assert_eq!((graph.row(0), graph.row(1)), (&[2][..], &[3][..]));
    assert_eq!(heap.memsizes().expect("sizes").get(1), 120);
}

#[test]
fn a_path_through_the_stack_is_the_last_resort() {
    let heap = heap(&[
        r#"{"type":"ROOT", "root":"machine_context", "references":["0x1050", "0x1078"]}"#,
        r#"{"type":"ROOT", "root":"vm", "references":["0x1000"]}"#,
        r#"{"address":"0x1000", "type":"ARRAY", "length":1, "references":["0x1028"]}"#,
        r#"{"address":"0x1028", "type":"ARRAY", "length":1, "references":["0x1050"]}"#,
        r#"{"address":"0x1050", "type":"STRING"}"#,
        r#"{"address":"0x1078", "type":"ARRAY", "length":1, "references":["0x10a0"]}"#,
        r#"{"address":"0x10a0", "type":"STRING"}"#,
    ]);
    let steps = heap.steps().expect("steps");
    assert_eq!((steps[2], steps[4], steps[3]), (1, 3, heap.category_node(0)));
}

#[test]
fn what_is_no_dump_is_refused() {
    for dump in [&b""[..], b"\n\n", b"hello", b"{\"a\":1}", b"\x1f\x8b\x08broken"] {
        let input = std::io::Cursor::new(dump.to_vec());
        assert!(Heap::read(Box::new(input), None, &Options::default()).is_err());
    }
}

//! Answers exclude memprof's own objects.

use memprof_dump::record::Kind;
use memprof_heap::testing::{Fact, Thing, address, class, heap, heap_of, random, string, thing};
use memprof_heap::{FOLDED, Heap, Own};
use serde_json::json;

use crate::questions::path;
use crate::tests::ask;

fn module(at: u64, name: &str) -> Thing {
    thing(address(at), Kind::MODULE, "Module").named(name)
}

/// A program whose application is behind memprof's middleware, with a native object and a thread of memprof.
fn tracked() -> Heap {
    let things = [
        class(address(0), "Object", 0).to("Memprof", address(1)).to("App", address(4)),
        module(1, "Memprof").to("Middleware", address(2)).to("", address(9)),
        class(address(2), "Memprof::Middleware", 0).to("", address(20)),
        thing(address(3), Kind::OBJECT, "Memprof::Middleware")
            .to("@app", address(5))
            .to("@options", address(8)),
        class(address(4), "App", 0),
        thing(address(5), Kind::OBJECT, "App").to("@cache", address(6)).to("@title", address(10)),
        thing(address(6), Kind::ARRAY, "Array").size(5000),
        thing(address(7), Kind::DATA, "Memprof::Native::Guard")
            .named("Memprof::Native::Guard")
            .size(90_000),
        thing(address(8), Kind::HASH, "Hash").to("", address(10)),
        thing(address(9), Kind::IMEMO, "").named("iseq").size(700),
        string(address(10), "shared"),
        thing(address(11), Kind::DATA, "Thread")
            .named("VM/thread")
            .fact("name", Fact::Text("memprof".to_owned()))
            .size(1 << 20)
            .to("", address(12))
            .to("", address(19)),
        thing(address(12), Kind::DATA, "Fiber").named("fiber").size(1 << 18),
        thing(address(13), Kind::DATA, "Thread")
            .named("VM/thread")
            .size(1000)
            .fact("name", Fact::Text("memprofiler".to_owned()))
            .to("", address(14)),
        thing(address(14), Kind::DATA, "Proc").named("proc").to("self", address(3)),
        thing(address(15), Kind::DATA, "Thread").named("VM/thread").size(2000).to("", address(16)),
        thing(address(16), Kind::DATA, "Proc").named("proc").to("self", address(5)),
        class(address(17), "MemprofLookalike", 0),
        thing(address(18), Kind::OBJECT, "MemprofLookalike"),
        string(address(19), "on the stack"),
        thing(address(20), Kind::DATA, "").named("VM/cc_table").size(300),
    ];
    let roots =
        [address(0), address(3), address(7), address(11), address(13), address(15), address(18)];
    heap(&[("vm", &roots)], &things)
}

fn is_left_out(heap: &Heap, number: u64) -> bool {
    let id = heap.at(address(number)).expect("an object");
    heap.flag_words().expect("flags")[id as usize] & FOLDED.0 != 0
}

#[test]
fn own_objects_are_known_by_class_data_name_and_what_only_they_hold() {
    let heap = tracked();
    let left_out: Vec<u64> = (0..21).filter(|&id| is_left_out(&heap, id)).collect();
    assert_eq!(left_out, [1, 2, 3, 7, 8, 9, 11, 12, 20]);
}

#[test]
fn they_are_in_no_total_and_their_sum_is_known() {
    let heap = tracked();
    // Only a part of a thread's or fiber's stack counts.
    let own = [40, 40, 40, 90_000, 40, 700, 16 << 10, 16 << 10, 300];
    assert_eq!(
        heap.source.own,
        Own { count: 9, size: own.iter().sum(), outside: own.iter().map(|size| size - 40).sum() }
    );
    let whole = 9 * 40 + 5000 + 1000 + 2000;
    assert_eq!(heap.memsizes().expect("sizes").sum(), whole);
    let overview = ask(&heap, "overview", json!({})).expect("an answer");
    assert_eq!(overview["objects"]["size"], whole);
    assert_eq!(overview["objects"]["count"], 12);
    let rows = ask(&heap, "histogram", json!({ "sort": "size" })).expect("an answer");
    let names = rows["rows"].as_array().expect("rows").iter();
    assert!(!names.map(|row| row["key"].to_string()).any(|name| name.contains("Memprof::")));
    let tree = ask(&heap, "tree", json!({ "min": 1, "depth": 1 })).expect("an answer");
    assert!(!tree.to_string().contains("Guard"));
}

#[test]
fn they_are_in_no_list() {
    let heap = tracked();
    let listed = |question: &str, parameters, rows: &str| {
        let answer = ask(&heap, question, parameters).expect("an answer");
        let rows = answer[rows].as_array().expect("rows").iter();
        let mut listed: Vec<String> = rows.map(|row| row["address"].to_string()).collect();
        listed.sort_unstable();
        listed
    };
    let quoted = |id: u64| format!("\"{:#x}\"", address(id));
    assert_eq!(listed("threads", json!({}), "rows"), [13, 15].map(quoted));
    let others = (0..21).filter(|&id| !is_left_out(&heap, id));
    assert_eq!(
        listed("top", json!({ "limit": 100 }), "objects"),
        others.map(quoted).collect::<Vec<_>>()
    );
}

#[test]
fn what_the_program_handed_over_is_still_held() {
    let heap = tracked();
    let cache = heap.at(address(6)).expect("an object");
    let path = path::to(&heap, cache).expect("a path");
    assert!(path.contains(&heap.at(address(3)).expect("an object")));
    let retained = heap.retained().expect("sizes");
    let app = heap.at(address(5)).expect("an object");
    assert!(retained.get(app) >= 5000);
}

#[test]
fn blocks_are_those_of_the_file_that_they_were_written_in() {
    const OWN: &str = "/gems/memprof-1.0/lib/memprof/signal.rb";
    let code = |at: u64, file: &str| {
        let code = thing(address(at), Kind::IMEMO, "").named("iseq");
        code.written(file, 3)
    };
    let block = |at: u64, file: &str| {
        let block = thing(address(at), Kind::DATA, "Proc").named("proc");
        block.written(file, 4).to("env", address(at + 1))
    };
    let env = |at: u64| thing(address(at), Kind::IMEMO, "").named("env");
    let method = |at: u64| thing(address(at), Kind::IMEMO, "").named("ment");
    let things = [
        class(address(0), "Object", 0).to("Memprof", address(1)),
        module(1, "Memprof").to("", address(2)).to("", address(9)).to("@block", address(6)),
        method(2).to("", address(3)),
        code(3, OWN),
        block(4, OWN),
        env(5).to("", address(3)).to("local text", address(8)),
        block(6, "app.rb"),
        env(7).to("", address(11)).to("local cache", address(12)),
        string(address(8), "a text of memprof's"),
        // Methods that the standard library defines in classes on request.
        method(9).to("", address(10)),
        code(10, "/lib/ruby/forwardable.rb"),
        code(11, "app.rb"),
        string(address(12), "a text of the program's"),
        block(13, "/lib/ruby/forwardable.rb"),
        env(14),
    ];
    // A trap references memprof's block, too.
    let heap = heap(&[("vm", &[address(0), address(4), address(13)])], &things);
    let left_out: Vec<u64> = (0..15).filter(|&id| is_left_out(&heap, id)).collect();
    assert_eq!(left_out, [1, 2, 3, 4, 5, 8, 9, 10]);
}

#[test]
fn what_the_header_lists_is_left_out() {
    let things = [
        class(address(0), "Object", 0).to("CACHE", address(1)),
        thing(address(1), Kind::ARRAY, "Array").to("", address(2)),
        string(address(2), "the program's"),
        string(address(3), "of the copy"),
        thing(address(4), Kind::ARRAY, "Array").to("", address(2)),
    ];
    let listed = [3, 4, 99].map(|number| format!("{:#x}", address(number)));
    let header = json!({ "own_objects": listed }).to_string();
    let heap = heap_of(&header, &[("vm", &[address(0)])], &things);
    let left_out: Vec<u64> = (0..5).filter(|&id| is_left_out(&heap, id)).collect();
    assert_eq!(left_out, [3, 4]);
}

#[test]
fn a_heap_without_memprof_has_nothing_left_out() {
    let (_, heap) = random(3, 200);
    assert_eq!(heap.source.own, Own::default());
    assert!(heap.flag_words().expect("flags").iter().all(|flags| flags & FOLDED.0 == 0));
}

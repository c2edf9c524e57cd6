use serde_json::{Value, json};

use crate::tests::ask;
use memprof_dump::record::Kind;
use memprof_heap::Heap;
use memprof_heap::testing::{address, class, heap, random, string, thing};

fn shop() -> Heap {
    let mut module = thing(address(2), Kind::MODULE, "Module").named("Priced");
    module.size = 80;
    let mut included = thing(address(3), Kind::ICLASS, "Priced");
    included.superclass = address(0);
    heap(
        &[("vm", &[address(0), address(1), address(2), address(4), address(5)])],
        &[
            class(address(0), "Object", 0)
                .to("Order", address(1))
                .to("Priced", address(2))
                .to("LIMITS", address(6)),
            class(address(1), "Order", address(3)).to("@cache", address(7)),
            module,
            included,
            class(address(4), "Refund", address(1)),
            class(address(5), "Order", address(0)),
            thing(address(6), Kind::ARRAY, "Array").size(200),
            string(address(7), "cached").size(60),
            thing(address(8), Kind::OBJECT, "Order").size(100),
            thing(address(9), Kind::OBJECT, "Order").size(50),
            thing(address(10), Kind::OBJECT, "Refund"),
        ],
    )
}

fn put(heap: &Heap, of: &str) -> Value {
    ask(heap, "class", json!({ "of": of })).expect("an answer")
}

fn texts(rows: &Value) -> Vec<&str> {
    let rows = rows.as_array().expect("a list").iter();
    rows.filter_map(|row| row["text"].as_str()).collect()
}

#[test]
fn a_class_is_found_by_its_name_and_by_its_address() {
    let heap = shop();
    assert_eq!(put(&heap, "Refund"), put(&heap, &format!("{:#x}", address(4))));
    for (of, message) in [
        ("Basket", "no class or module is called \"Basket\""),
        ("cached", "no class or module is called \"cached\""),
        ("0x1", "no object has the address 0x1"),
    ] {
        let error = ask(&heap, "class", json!({ "of": of })).expect_err("an error");
        assert_eq!(error.to_string(), message);
    }
    let array = format!("{:#x}", address(6));
    let error = ask(&heap, "class", json!({ "of": array })).expect_err("an error");
    assert!(error.to_string().ends_with("is not a class or module"));
}

#[test]
fn other_classes_of_the_same_name_are_listed() {
    let order = put(&shop(), &format!("{:#x}", address(1)));
    assert_eq!(order["name"], "Order");
    assert_eq!(order["versions"][0]["address"], format!("{:#x}", address(5)));
    assert_eq!(put(&shop(), "Refund")["versions"], json!([]));
}

#[test]
fn the_place_of_a_class_is_described() {
    let heap = shop();
    let order = put(&heap, &format!("{:#x}", address(1)));
    assert_eq!(order["superclass"]["text"], "class Object");
    assert_eq!(texts(&order["ancestors"]).last(), Some(&"class Object"));
    assert_eq!(order["ancestors"].as_array().map(Vec::len), Some(2));
    assert_eq!(texts(&order["subclasses"]), ["class Refund"]);
    assert_eq!(order["subclasses"][0]["instances"], 1);
    let object = put(&heap, "Object");
    assert_eq!(object["subclasses_count"], 2);
    assert_eq!(object["superclass"], Value::Null);
}

/// `module M; prepend P; end`, `class C; include M; prepend Q; def call; end; end`, `class D < C; prepend M; end`.
fn prepending() -> Heap {
    let module = |at: u64, name: &str, above: u64| {
        let mut module = thing(address(at), Kind::MODULE, "Module").named(name);
        module.superclass = above;
        module
    };
    let included = |at: u64, name: &str, above: u64| {
        let mut included = thing(address(at), Kind::ICLASS, name);
        included.superclass = above;
        included
    };
    let all: Vec<u64> = (0..20).map(address).collect();
    heap(
        &[("vm", &all)],
        &[
            class(address(0), "Object", 0),
            module(1, "P", 0),
            module(2, "M", address(3)),
            included(3, "P", address(4)),
            included(4, "M", 0),
            module(5, "Q", 0),
            class(address(6), "C", address(7)),
            included(7, "Q", address(8)),
            included(8, "C", address(9)).to("#call", address(19)).to("#call", address(18)),
            included(9, "M", address(10)),
            included(10, "P", address(11)),
            included(11, "M", address(0)),
            class(address(12), "D", address(13)),
            included(13, "M", address(14)),
            included(14, "P", address(15)),
            included(15, "M", address(16)),
            included(16, "D", address(6)),
            thing(address(18), Kind::IMEMO, "").size(40),
            thing(address(19), Kind::IMEMO, "").size(80),
        ],
    )
}

#[test]
fn ancestors_are_in_rubys_order() {
    let heap = prepending();
    let names = |of: &str| {
        let answer = put(&heap, of);
        let names = texts(&answer["ancestors"]).join(" ");
        names.replace("class ", "").replace("module ", "")
    };
    assert_eq!(names("C"), "Q C P M Object");
    assert_eq!(names("D"), "P M D Q C P M Object");
    assert_eq!(names("M"), "P M");
    assert_eq!(names("Object"), "");
    let superclass = |of: &str| put(&heap, of)["superclass"]["text"].clone();
    assert_eq!(superclass("C"), "class Object");
    assert_eq!(superclass("D"), "class C");
    assert_eq!(superclass("M"), Value::Null);
}

#[test]
fn methods_are_those_of_the_class_each_once() {
    let methods = &put(&prepending(), "C")["methods"];
    assert_eq!(methods["count"], 1);
    assert_eq!(methods["rows"][0]["address"], format!("{:#x}", address(19)));
    assert_eq!(methods["retained"], methods["rows"][0]["retained"]);
}

#[test]
fn instances_and_contents_of_a_class_are_described() {
    let heap = shop();
    let object = put(&heap, "Object");
    let constants = &object["constants"];
    assert_eq!(constants["count"], 3);
    assert_eq!(constants["rows"][0]["label"], "LIMITS");
    assert_eq!(object["methods"]["count"], 0);
    let refund = put(&heap, "Refund");
    assert_eq!(refund["instances"]["count"], 1);
    assert_eq!(refund["where"], "class = \"Refund\"");
    let order = put(&heap, &format!("{:#x}", address(1)));
    assert_eq!(order["variables"]["rows"][0]["label"], "@cache");
    assert_eq!(order["variables"]["retained"], 60);
}

#[test]
fn instances_are_those_that_the_filter_chooses() {
    for seed in 1..10 {
        let (_, heap) = random(seed, 200);
        for class in heap.classes() {
            let name = heap.name(class.name);
            let Ok(answer) = ask(&heap, "class", json!({ "of": name })) else {
                continue;
            };
            let found = ask(&heap, "top", json!({ "where": answer["where"], "limit": 0 }));
            let found = found.expect("an answer");
            assert_eq!(answer["instances"]["count"], found["count"], "{name}");
            assert_eq!(answer["instances"]["size"], found["size"], "{name}");
        }
    }
}

#[test]
fn an_included_module_is_called_by_the_name_of_the_module() {
    let heap = prepending();
    let text = |at: u64| {
        let of = json!({ "of": format!("{:#x}", address(at)) });
        ask(&heap, "object", of).expect("an answer")["text"].clone()
    };
    assert_eq!(text(9), "#<included M>");
    assert_eq!(text(13), "#<included M>");
    assert_eq!(text(8), "#<origin of C>");
}

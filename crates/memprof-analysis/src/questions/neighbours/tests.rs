use serde_json::{Value, json};

use crate::questions::Error;
use crate::tests::ask;
use memprof_dump::record::Kind;
use memprof_heap::Heap;
use memprof_heap::graph::referrers_of;
use memprof_heap::testing::{address, class, heap, random, string, thing};

/// Shop has a cart of 30 strings; an order references the first of them, too.
fn shop() -> Heap {
    let mut cart = thing(address(1), Kind::ARRAY, "Array").length(30);
    for number in 0..30 {
        cart = cart.to(&format!("[{number}]"), address(3 + number));
    }
    let order =
        thing(address(2), Kind::OBJECT, "Order").to("@first", address(3)).to("@best", address(3));
    let strings = (0..30).map(|number| string(address(3 + number), "x").size(1000 - number));
    let shop = class(address(0), "Shop", 0).to("@cart", address(1)).to("@order", address(2));
    let mut things = vec![shop, cart, order];
    things.extend(strings);
    heap(&[("vm", &[address(0)])], &things)
}

fn around(heap: &Heap, parameters: Value) -> Value {
    ask(heap, "neighbours", parameters).expect("an answer")
}

fn hex(number: u64) -> String {
    format!("{:#x}", address(number))
}

fn node<'a>(answer: &'a Value, address: &str) -> &'a Value {
    let nodes = answer["nodes"].as_array().expect("nodes");
    let found = nodes.iter().find(|node| node["address"] == address);
    found.unwrap_or_else(|| panic!("no {address} in {nodes:?}"))
}

#[test]
fn has_what_refers_to_an_object_and_what_it_refers_to() {
    let answer = around(&shop(), json!({ "of": hex(1), "each": 3 }));
    assert_eq!(answer["nodes"][0]["address"], json!(hex(1)));
    assert_eq!(node(&answer, &hex(0))["level"], json!(-1));
    // The largest ones.
    for number in 3..6 {
        assert_eq!(node(&answer, &hex(number))["level"], json!(1));
    }
    assert_eq!(node(&answer, &hex(1))["more_references"], json!(27));
    assert_eq!(node(&answer, &hex(1))["more_referrers"], json!(0));
    // The order is not in the graph, and references the first string.
    assert_eq!(node(&answer, &hex(3))["more_referrers"], json!(1));
    let root = answer["nodes"].as_array().expect("nodes").iter().find(|node| node["level"] == -2);
    assert_eq!(root.expect("a root")["text"], json!("root vm"));
}

#[test]
fn lists_references_with_names_and_counts() {
    let answer = around(&shop(), json!({ "of": hex(3) }));
    let edges = answer["edges"].as_array().expect("edges");
    let (order, first) = (&node(&answer, &hex(2))["id"], &node(&answer, &hex(3))["id"]);
    let edge = edges.iter().find(|edge| edge["from"] == *order && edge["to"] == *first);
    let edge = edge.expect("an edge");
    assert_eq!((&edge["label"], &edge["references"]), (&json!("@first"), &json!(2)));
    let cart = &node(&answer, &hex(1))["id"];
    let edge = edges.iter().find(|edge| edge["from"] == *cart && edge["to"] == *first);
    assert_eq!(edge.expect("an edge")["label"], json!("[0]"));
}

#[test]
fn an_object_that_is_expanded_brings_its_neighbours() {
    let heap = shop();
    let few = around(&heap, json!({ "of": hex(1), "each": 3, "limit": 5 }));
    assert_eq!(few["nodes"].as_array().expect("nodes").len(), 5);
    let more = around(&heap, json!({ "of": hex(1), "each": 3, "limit": 5, "expand": [hex(3)] }));
    let order = node(&more, &hex(2));
    assert_eq!(order["level"], json!(0));
    assert_eq!(node(&more, &hex(3))["expanded"], json!(true));
    assert_eq!(node(&more, &hex(3))["more_referrers"], json!(0));
    // An object outside the graph cannot be expanded.
    let none = around(&heap, json!({ "of": hex(1), "each": 3, "limit": 5, "expand": [hex(20)] }));
    assert_eq!(none, few);
}

#[test]
fn agrees_with_the_references_of_the_heap() {
    for seed in 1..20 {
        let (_, heap) = random(seed, 150);
        let graph = heap.graph(&[]).expect("a graph");
        for of in (0..heap.len()).step_by(7) {
            let answer = around(&heap, json!({ "of": of, "each": 4, "limit": 20 }));
            let nodes = answer["nodes"].as_array().expect("nodes");
            assert!(nodes.len() <= 20);
            let edges = answer["edges"].as_array().expect("edges");
            for node in nodes {
                let id = node["id"].as_u64().expect("a number") as u32;
                let to = |name: &str| edges.iter().filter(|edge| edge[name] == id).count() as u64;
                let mut targets = graph.row(id).to_vec();
                targets.sort_unstable();
                targets.dedup();
                targets.retain(|&target| target != id);
                let more = node["more_references"].as_u64().expect("a number");
                assert_eq!(to("from") + more, targets.len() as u64, "{seed} {of} {id}");
                let mut sources = referrers_of(&graph, id);
                sources.retain(|&from| from != id && from != heap.root());
                let more = node["more_referrers"].as_u64().expect("a number");
                assert_eq!(to("to") + more, sources.len() as u64, "{seed} {of} {id}");
            }
        }
    }
}

#[test]
fn is_bounded() {
    let expand: Vec<String> = (0..13).map(hex).collect();
    let error = ask(&shop(), "neighbours", json!({ "of": hex(0), "expand": expand }));
    assert!(matches!(error, Err(Error::Question(text)) if text.contains("at most 12")));
    let answer = around(&shop(), json!({ "of": hex(1), "limit": 0 }));
    assert_eq!(answer["nodes"].as_array().expect("nodes").len(), 1);
}

use serde_json::json;

use super::*;
use crate::tests::ask;
use memprof_dump::record::Kind;
use memprof_heap::graph::Graph;
use memprof_heap::testing::{address, class, heap, random, string, thing};

fn chain(length: u64) -> Heap {
    let things: Vec<_> = (0..length)
        .map(|number| thing(address(number), Kind::OBJECT, "Node").to("@next", address(number + 1)))
        .collect();
    heap(&[("vm", &[address(0)])], &things)
}

fn one(heap: &Heap, at: u64) -> Path {
    let question = Question { to: Some(Named::Address(format!("{at:#x}"))), ..Question::default() };
    match question.answer(heap).expect("an answer") {
        Answer::One(path) => path,
        Answer::Merged { .. } => panic!("one was asked for"),
    }
}

#[test]
fn a_path_is_said_as_a_person_would() {
    let heap = heap(
        &[("vm", &[address(0)]), ("global_tbl", &[])],
        &[
            class(address(0), "Object", 0).to("Shop", address(1)),
            class(address(1), "Shop", 0).to("@carts", address(2)),
            thing(address(2), Kind::ARRAY, "Array").length(1).to("[0]", address(3)),
            thing(address(3), Kind::OBJECT, "Cart").to("@owner", address(4)),
            string(address(4), "Ann"),
        ],
    );
    let path = one(&heap, address(4));
    assert_eq!(path.sentence, "Shop@carts -> Array[0] -> Cart@owner -> String \"Ann\"");
    let labels: Vec<Option<&str>> = path.steps.iter().map(|step| step.label.as_deref()).collect();
    assert_eq!(labels, [None, None, Some("Shop"), Some("@carts"), Some("[0]"), Some("@owner")]);
}

/// Distance of each node from the roots: relaxes each edge once per node, the simplest algorithm.
fn distances(graph: &Graph<'_>, root: u32) -> Vec<Option<u32>> {
    let mut distances = vec![None; graph.len()];
    distances[root as usize] = Some(0);
    for _ in 0..graph.len() {
        for node in graph.nodes() {
            let Some(far) = distances[node as usize].map(|far: u32| far + 1) else {
                continue;
            };
            for target in graph.edges(node) {
                let known = distances[target as usize].unwrap_or(far);
                distances[target as usize] = Some(known.min(far));
            }
        }
    }
    distances
}

#[test]
fn every_path_is_as_short_as_can_be_without_the_stack_if_that_can_be() {
    for seed in 1..30 {
        let (_, heap) = random(seed, 100);
        let classes = heap.group_classes();
        let graph = heap.graph(&classes).expect("a graph");
        let stack =
            heap.categories().iter().position(|category| category.name == "machine_context");
        let stack: Vec<u32> = stack.map(|stack| heap.category_node(stack)).into_iter().collect();
        let through_any = distances(&graph, heap.root());
        let without_stack = distances(&graph.without_edges_of(&stack), heap.root());
        for node in 0..heap.len() {
            let path = to(&heap, node).expect("steps");
            let far = without_stack[node as usize].or(through_any[node as usize]);
            assert_eq!(path.len() as u32, far.unwrap_or(0));
            for pair in path.windows(2) {
                assert!(graph.edges(pair[0]).any(|target| target == pair[1]));
            }
        }
    }
}

#[test]
fn a_long_path_is_shown_by_its_ends() {
    let heap = chain(5_000);
    let path = one(&heap, address(4_999));
    assert_eq!(path.steps.len(), 2 * ENDS);
    assert_eq!(path.omitted, 5_001 - 2 * ENDS);
    assert_eq!(path.sentence, "root vm -> Node@next -> … 4998 more … -> Node");
}

#[test]
fn equal_steps_in_a_row_are_folded_in_words() {
    assert_eq!(
        one(&chain(5), address(4)).sentence,
        "root vm -> Node@next -> Node@next -> Node@next -> Node@next -> Node"
    );
    let path = one(&chain(40), address(39));
    assert_eq!(path.steps.len(), 41);
    assert_eq!(path.sentence, "root vm -> Node@next -> … 38 more Node@next … -> Node");
}

#[test]
fn paths_of_many_objects_are_merged() {
    let mut things = vec![class(address(0), "Cache", 0).to("STORE", address(1))];
    let mut list = thing(address(1), Kind::ARRAY, "Array").length(50);
    for number in 0..50 {
        list = list.to(&format!("[{number}]"), address(10 + number));
    }
    things.push(list);
    things.extend(
        (0..50).map(|number| thing(address(10 + number), Kind::OBJECT, "Session").size(100)),
    );
    things.push(thing(address(90), Kind::OBJECT, "Session"));
    let heap = heap(&[("vm", &[address(0)])], &things);
    let answer = ask(&heap, "path", json!({ "where": "class = \"Session\"" })).expect("an answer");
    assert_eq!((&answer["objects"], &answer["unreachable"]), (&json!(51), &json!(1)));
    let mut branch = &answer["branches"][0];
    for (text, objects) in [("root vm", 1), ("Cache", 1), ("Array", 1), ("Session", 50)] {
        assert_eq!(
            (&branch["text"], &branch["objects"], &branch["paths"]),
            (&json!(text), &json!(objects), &json!(50))
        );
        assert_eq!(branch["retained"], json!(5000));
        branch = &branch["branches"][0];
    }
}

#[test]
fn merged_paths_count_what_their_ends_retain_once() {
    let answer =
        ask(&chain(10), "path", json!({ "where": "class = \"Node\"" })).expect("an answer");
    let mut branch = &answer["branches"][0];
    let whole = branch["retained"].as_u64().expect("bytes");
    for number in 0..10 {
        branch = &branch["branches"][0];
        assert_eq!(branch["paths"], json!(10 - number));
        assert_eq!(branch["retained"], json!(whole / 10 * (10 - number)));
    }
}

#[test]
fn merged_paths_end_somewhere() {
    let heap = chain(5000);
    let answer =
        ask(&heap, "path", json!({ "where": "class = \"Node\"", "limit": 3 })).expect("an answer");
    let mut depth = 0;
    let mut branch = &answer["branches"][0];
    while branch.is_object() {
        depth += 1;
        branch = &branch["branches"][0];
    }
    assert_eq!(depth, DEEPEST);
}

#[test]
fn what_is_not_there_has_no_path() {
    let heap = chain(3);
    for parameters in
        [json!({}), json!({ "to": "0x5" }), json!({ "to": "nonsense" }), json!({ "to": 99 })]
    {
        assert!(ask(&heap, "path", parameters).is_err());
    }
}

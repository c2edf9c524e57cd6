use serde_json::{Value, json};

use crate::tests::ask;
use memprof_dump::record::Kind;
use memprof_heap::testing::{Fact, address, heap, string, thing};

fn threads(parameters: Value) -> Value {
    let heap = heap(
        &[("vm", &[address(0), address(1)])],
        &[
            thing(address(0), Kind::DATA, "Thread")
                .named("VM/thread")
                .fact("name", Fact::Text("worker".to_owned()))
                .to("env", address(2))
                .to("env", address(2))
                .to("", address(3))
                .to("", address(3))
                .to("", address(4))
                .to("", address(5)),
            thing(address(1), Kind::DATA, "Thread").named("VM/thread").size(30),
            thing(address(2), Kind::IMEMO, "").named("env").to("local queue", address(4)),
            string(address(3), "on the stack").size(500),
            thing(address(4), Kind::ARRAY, "Array").size(300),
            thing(address(5), Kind::IMEMO, "").named("iseq").size(900),
            thing(address(6), Kind::DATA, "Proc").named("proc"),
        ],
    );
    ask(&heap, "threads", parameters).expect("an answer")
}

#[test]
fn threads_are_listed_with_what_their_stacks_reference() {
    let answer = threads(json!({}));
    assert_eq!((&answer["count"], &answer["size"]), (&json!(2), &json!(70)));
    let worker = &answer["rows"][0];
    assert_eq!(worker["facts"], json!([["name", "worker"]]));
    assert_eq!(worker["locals_count"], 1);
    assert_eq!(worker["locals"][0]["label"], "local queue");
    assert_eq!(worker["locals"][0]["text"], "Array");
    assert_eq!(worker["held_count"], 1);
    assert_eq!(worker["held"][0]["text"], "String \"on the stack\"");
    assert_eq!(answer["rows"][1]["held_count"], 0);
}

#[test]
fn threads_can_be_chosen_and_passed_over() {
    let answer = threads(json!({ "limit": 1 }));
    assert_eq!((&answer["count"], &answer["more"]), (&json!(2), &json!(1)));
    let second = threads(json!({ "limit": 1, "offset": 1 }));
    assert_eq!(second["rows"][0]["size"], 30);
    assert_eq!(second["more"], 0);
    assert_eq!(threads(json!({ "where": "name = worker" }))["count"], 1);
    assert_eq!(threads(json!({ "held_limit": 0 }))["rows"][0]["held"], json!([]));
}

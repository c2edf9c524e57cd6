use serde_json::json;

use crate::tests::ask;
use memprof_dump::record::{Flags, Kind};
use memprof_heap::testing::{Fact, address, class, heap, random, string, thing};

#[test]
fn everything_about_an_object_is_described() {
    let heap = heap(
        &[("vm", &[address(0)])],
        &[
            class(address(0), "Shop", 0).to("@carts", address(1)),
            thing(address(1), Kind::OBJECT, "Cart")
                .at("cart.rb", 3, "new", 9)
                .to("@owner", address(2))
                .to("@owner", address(2)),
            string(address(2), "Ann")
                .size(60)
                .flags(Flags::FROZEN)
                .fact("note", Fact::Text("hello".to_owned())),
            string(address(3), "garbage").to("", address(2)),
        ],
    );
    let answer =
        ask(&heap, "object", json!({ "of": format!("{:#x}", address(2)) })).expect("an answer");
    assert_eq!(answer["text"], "String \"Ann\"");
    assert_eq!(
        (&answer["value"], &answer["length"], &answer["size"]),
        (&json!("Ann"), &json!(3), &json!(60))
    );
    assert_eq!(answer["flags"], json!(["frozen"]));
    assert_eq!(answer["facts"], json!([["note", "hello"]]));
    assert_eq!(answer["referrers_count"], 2);
    assert_eq!(answer["referrers"][0]["label"], "@owner");
    assert_eq!(answer["path"]["sentence"], "Shop@carts -> Cart@owner -> String \"Ann\"");
    assert_eq!(answer["unreachable"], false);
    let above: Vec<&str> = answer["dominators"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|node| node["class"].as_str())
        .collect();
    assert_eq!(above, ["Cart", "Class", "vm"]);

    let cart = ask(&heap, "object", json!({ "of": 1 })).expect("an answer");
    assert_eq!(cart["references_count"], 2);
    assert_eq!(
        cart["retains"],
        json!([{ "class": "String", "count": 1, "size": 60 }, { "class": "Cart", "count": 1, "size": 40 }])
    );
    assert_eq!(cart["site"], json!({ "file": "cart.rb", "line": 3, "method": "new" }));

    let garbage = ask(&heap, "object", json!({ "of": 3 })).expect("an answer");
    assert_eq!((&garbage["unreachable"], &garbage["path"]["steps"]), (&json!(true), &json!([])));
}

#[test]
fn roots_can_be_asked_for_too() {
    let (_, heap) = random(3, 100);
    for node in [heap.root(), heap.category_node(0)] {
        let answer = ask(&heap, "object", json!({ "of": node })).expect("an answer");
        assert_eq!(answer["type"], "root");
        assert_eq!(answer["address"], json!(null));
    }
    assert!(ask(&heap, "object", json!({ "of": heap.root() + 1 })).is_err());
}

#[test]
fn what_an_object_retains_adds_up() {
    for seed in 1..20 {
        let (_, heap) = random(seed, 100);
        for node in 0..heap.len() {
            let answer =
                ask(&heap, "object", json!({ "of": node, "limit": 1000 })).expect("an answer");
            let held = answer["retains"]
                .as_array()
                .expect("a list")
                .iter()
                .filter_map(|held| held["size"].as_u64());
            assert_eq!(held.sum::<u64>(), answer["retained"].as_u64().expect("a size"));
        }
    }
}

#[test]
fn references_can_be_passed_over() {
    let (_, heap) = random(5, 100);
    for node in 0..heap.len() {
        let put = |parameters| ask(&heap, "object", parameters).expect("an answer");
        let whole = put(json!({ "of": node, "limit": 1000 }));
        let part =
            put(json!({ "of": node, "limit": 2, "references_offset": 1, "referrers_offset": 2 }));
        for (name, offset) in [("references", 1), ("referrers", 2)] {
            let all = whole[name].as_array().expect("a list");
            let expected: Vec<_> = all.iter().skip(offset).take(2).cloned().collect();
            assert_eq!(part[name], json!(expected));
        }
    }
}

use serde_json::json;

use crate::tests::ask;
use memprof_dump::record::Kind;
use memprof_heap::Heap;
use memprof_heap::testing::{address, class, heap, random, string, thing};

fn shop() -> Heap {
    let mut cart = thing(address(1), Kind::ARRAY, "Array").length(3);
    for number in 0..3 {
        cart = cart.to(&format!("[{number}]"), address(2 + number));
    }
    let strings = (0..3).map(|number| string(address(2 + number), "x").size(100 * (number + 1)));
    let mut things = vec![class(address(0), "Shop", 0).to("@cart", address(1)), cart];
    things.extend(strings);
    heap(&[("vm", &[address(0)])], &things)
}

#[test]
fn shows_the_largest_first_with_their_labels() {
    let answer = ask(&shop(), "tree", json!({ "of": address_of(1), "limit": 2, "depth": 1 }))
        .expect("an answer");
    let labels: Vec<&str> = answer["branches"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|branch| branch["label"].as_str())
        .collect();
    assert_eq!(labels, ["[2]", "[1]"]);
    assert_eq!(answer["more"], json!([1, 100]));
    assert_eq!(answer["sum"], json!(640));
}

#[test]
fn objects_of_one_class_can_be_taken_together() {
    let answer =
        ask(&shop(), "tree", json!({ "of": address_of(1), "by_class": true })).expect("an answer");
    let branch = &answer["branches"][0];
    assert_eq!(
        (&branch["class"], &branch["count"], &branch["sum"]),
        (&json!("String"), &json!(3), &json!(600))
    );
}

#[test]
fn branches_and_what_is_not_shown_make_up_the_whole() {
    for seed in 1..20 {
        let (_, heap) = random(seed, 200);
        for by_class in [false, true] {
            let answer =
                ask(&heap, "tree", json!({ "by_class": by_class, "depth": 6, "limit": 3 }))
                    .expect("an answer");
            let mut open = vec![&answer];
            while let Some(branch) = open.pop() {
                let branches = branch["branches"].as_array().expect("a list");
                let shown: u64 = branches.iter().filter_map(|branch| branch["sum"].as_u64()).sum();
                let below = shown + branch["more"][1].as_u64().expect("a sum");
                assert!(below <= branch["sum"].as_u64().expect("a sum"));
                open.extend(branches);
            }
        }
    }
}

fn address_of(number: u64) -> String {
    format!("{:#x}", address(number))
}

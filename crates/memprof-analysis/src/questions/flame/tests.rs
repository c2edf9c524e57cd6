use serde_json::{Value, json};

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

fn named(answer: &Value, name: &str) -> Value {
    let names = answer["names"].as_array().expect("names");
    let number = names.iter().position(|known| known == name);
    let number = number.unwrap_or_else(|| panic!("no {name} in {names:?}"));
    let frames = answer["frames"].as_array().expect("frames");
    let frame = frames.iter().find(|frame| frame[1] == number);
    frame.expect("a frame of this name").clone()
}

#[test]
fn strings_of_one_array_are_one_frame_with_the_largest_of_them() {
    let answer = ask(&shop(), "flame", json!({})).expect("an answer");
    let frame = named(&answer, "String@[]");
    assert_eq!(
        (&frame[2], &frame[3], &frame[4], &frame[5]),
        (&json!(600), &json!(600), &json!(3), &json!(format!("{:#x}", address(4))))
    );
    assert_eq!(named(&answer, "Array@cart")[3], json!(640));
    assert_eq!(named(&answer, "root")[5], Value::Null);
}

#[test]
fn values_of_a_hash_are_one_frame_whatever_their_keys_are() {
    let mut store = thing(address(1), Kind::HASH, "Hash").length(3);
    for (number, key) in (0..).zip(["[:first]", "[42]", "[nil]"]) {
        store = store.to(key, address(10 + number));
    }
    let strings = [10, 11, 12].map(|number| string(address(number), "x").size(100));
    let things: Vec<_> = [store].into_iter().chain(strings).collect();
    let heap = heap(&[("vm", &[address(1)])], &things);
    let answer = ask(&heap, "flame", json!({})).expect("an answer");
    assert_eq!(named(&answer, "String@[]")[4], json!(3));
}

#[test]
fn under_an_object_is_what_it_retains() {
    for seed in 1..20 {
        let (_, heap) = random(seed, 200);
        let retained = heap.retained().expect("sizes");
        for of in 0..heap.len() {
            let answer = ask(&heap, "flame", json!({ "of": of })).expect("an answer");
            assert_eq!(answer["frames"][0][3], json!(retained.get(of)), "{seed} {of}");
        }
    }
}

#[test]
fn all_frames_have_all_bytes_however_few_they_are() {
    for seed in 1..20 {
        let (_, heap) = random(seed, 300);
        for limit in [1, 2, 10, 1000] {
            let answer = ask(&heap, "flame", json!({ "limit": limit })).expect("an answer");
            let frames = answer["frames"].as_array().expect("frames");
            let own: u64 = frames.iter().filter_map(|frame| frame[2].as_u64()).sum();
            assert_eq!(json!(own), answer["whole"]);
            assert_eq!(frames[0][3], answer["whole"]);
        }
    }
}

#[test]
fn asks_for_an_object_that_is_there() {
    let error = ask(&shop(), "flame", json!({ "of": "0x1" })).expect_err("no object");
    assert!(error.to_string().contains("no object has the address 0x1"));
}

#[test]
fn what_the_heap_keeps_of_the_whole_graph_is_what_is_found_computed() {
    for seed in 1..20 {
        let (_, heap) = random(seed, 300);
        for limit in [1, 2, 7, 50, 1000, 2] {
            let kept = ask(&heap, "flame", json!({ "limit": limit })).expect("an answer");
            // The default depth, explicitly: this answer is not cached.
            let computed = json!({ "limit": limit, "depth": 128 });
            let computed = ask(&heap, "flame", computed).expect("an answer");
            assert_eq!(kept, computed, "{seed} {limit}");
        }
    }
}

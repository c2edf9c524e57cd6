use serde_json::{Value, json};

use crate::analysis::ask;
use crate::dump::record::Kind;
use crate::heap::Heap;
use crate::heap::testing::{address, class, heap, random, string, thing};

fn shop() -> Heap {
    let mut module = thing(address(2), Kind::MODULE, "Module").named("Priced");
    module.size = 80;
    let mut included = thing(address(3), Kind::ICLASS, "Priced");
    included.superclass = address(0);
    heap(
        &[(
            "vm",
            &[address(0), address(1), address(2), address(4), address(5)],
        )],
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
    assert_eq!(
        put(&heap, "Refund"),
        put(&heap, &format!("{:#x}", address(4)))
    );
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
    assert!(error.to_string().ends_with("is no class or module"));
}

#[test]
fn other_classes_of_the_same_name_are_told() {
    let order = put(&shop(), &format!("{:#x}", address(1)));
    assert_eq!(order["name"], "Order");
    assert_eq!(
        order["versions"][0]["address"],
        format!("{:#x}", address(5))
    );
    assert_eq!(put(&shop(), "Refund")["versions"], json!([]));
}

#[test]
fn where_a_class_stands_is_told() {
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

#[test]
fn instances_and_what_is_in_a_class_are_told() {
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
            let found = ask(
                &heap,
                "top",
                json!({ "where": answer["where"], "limit": 0 }),
            );
            let found = found.expect("an answer");
            assert_eq!(answer["instances"]["count"], found["count"], "{name}");
            assert_eq!(answer["instances"]["size"], found["size"], "{name}");
        }
    }
}

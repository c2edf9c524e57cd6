use super::*;

/// A program of one class with so many methods, and so many strings that the class gathers without a collection.
fn program(methods: u64, strings: u64) -> Heap {
    let mut loaded = class(address(1), "Billing", 0);
    let mut things = vec![class(address(0), "Object", 0).to("Billing", address(1))];
    for number in 0..methods {
        let at = address(100 + number);
        loaded = loaded.to("", at);
        things.push(thing(at, Kind::IMEMO, "").named("iseq").size(10_000));
    }
    for number in 0..strings {
        let at = address(1000 + number);
        loaded = loaded.to("@@note", at);
        things.push(string(at, "note").size(10_000));
    }
    things.push(loaded);
    heap(&[("vm", &[address(0)])], &things)
}

#[test]
fn code_that_was_loaded_is_no_suspect() {
    assert!(suspects(&program(100, 0)).is_empty());
}

#[test]
fn a_class_that_gathers_objects_is_one() {
    let found = suspects(&program(100, 100));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].object.class, "Class");
}

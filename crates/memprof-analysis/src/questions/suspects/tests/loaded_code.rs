use super::*;

/// A module with so many classes, each with a method, and with so many methods of its own.
fn program(classes: u64, methods: u64) -> Heap {
    let mut loaded = class(address(1), "Billing", 0);
    let mut things = vec![class(address(0), "Object", 0).to("Billing", address(1))];
    for number in 0..classes {
        let [inner, method] = [100, 101].map(|at| address(at + 2 * number));
        loaded = loaded.to("", inner);
        things.push(class(inner, "Billing::Rule", 0).to("", method));
        things.push(thing(method, Kind::IMEMO, "").named("iseq").size(10_000));
    }
    for number in 0..methods {
        let at = address(1000 + number);
        loaded = loaded.to("", at);
        things.push(thing(at, Kind::IMEMO, "").named("iseq").size(10_000));
    }
    things.push(loaded);
    heap(&[("vm", &[address(0)])], &things)
}

#[test]
fn classes_that_were_loaded_are_no_suspect() {
    assert!(suspects(&program(100, 0)).is_empty());
}

#[test]
fn a_module_whose_methods_are_generated_is_one() {
    let found = suspects(&program(100, 100));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].object.class, "Class");
}

//! Thread variables are named in references from threads and fibers.

use memprof_dump::record::Kind;
use memprof_heap::testing::{Fact, address, heap, string, thing};

use crate::questions::{Words, path};

#[test]
fn a_local_is_named_by_its_key_on_the_thread_and_on_its_fiber() {
    let facts = format!(
        "{{\":user\":\"{:#x}\",\":other\":\"{:#x}\",\":count\":3,\":gone\":\"0x8\"}}",
        address(2),
        address(3)
    );
    let thread = thing(address(0), Kind::DATA, "Thread")
        .named("VM/thread")
        .fact("variables", Fact::Json(facts))
        .to("", address(1))
        .to("", address(2))
        .to("", address(4));
    let things = [
        thread,
        thing(address(1), Kind::DATA, "Fiber").named("fiber").to("", address(3)),
        string(address(2), "Ann"),
        string(address(3), "Bob"),
        string(address(4), "neither"),
    ];
    let heap = heap(&[("vm", &[address(0)])], &things);
    let words = Words::new(&heap).expect("words");
    let path_to = |number| {
        let node = heap.at(address(number)).expect("an object");
        let nodes = path::to(&heap, node).expect("a path");
        words.path(&nodes).to_string()
    };
    assert_eq!(path_to(2), "root vm -> Thread[:user] -> String \"Ann\"");
    assert_eq!(path_to(3), "root vm -> Thread -> Fiber[:other] -> String \"Bob\"");
    assert_eq!(path_to(4), "root vm -> Thread -> String \"neither\"");
}

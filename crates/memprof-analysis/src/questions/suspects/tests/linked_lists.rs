use super::*;

/// A list whose elements are these classes in turn, the newest first, each with a text.
fn list(classes: &[&str], elements: u64) -> Vec<Suspect> {
    let mut things = vec![class(address(0), "App", 0).to("@head", address(1))];
    for (number, name) in (0..elements).zip(classes.iter().cycle()) {
        let of = 1 + 2 * number;
        let mut element = thing(address(of), Kind::OBJECT, name)
            .at("app/list.rb", 3, "push", 1)
            .to("@text", address(of + 1));
        if number + 1 < elements {
            element = element.to("@next", address(of + 2));
        }
        things.push(element);
        things.push(string(address(of + 1), "text").size(60));
    }
    suspects(&heap(&[("vm", &[address(0)])], &things))
}

#[test]
fn a_linked_list_is_named_by_its_first_element() {
    let found = list(&["Node"], 3000);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].kind, Nature::List);
    assert_eq!(found[0].object.address, Some(format!("{:#x}", address(1))));
    assert_eq!(
        found[0].sentence,
        "Node retains 293.0 KiB (100.0 %), in a list of 3,000 Node instances, allocated at app/list.rb:3, each retained by \
         the one before. It is retained by App@head."
    );
    let held = &found[0].accumulated;
    assert_eq!((held.len(), held[0].retained), (1, 3000 * 100));
    let own = found[0].own.as_ref().expect("a line");
    assert_eq!((own.line, own.count, own.retained), (3, 3000, 3000 * 100));
}

#[test]
fn objects_between_the_elements_of_a_list_are_no_elements() {
    let found = list(&["Promise", "Callback"], 3000);
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].kind, found[0].accumulated[0].count),
        (Nature::List, 1500)
    );
    assert_eq!(found[0].accumulated[0].class, "Promise");
    assert_eq!(found[0].accumulated[0].retained, 3000 * 100);
}

#[test]
fn a_few_objects_in_each_other_are_no_list() {
    let found = list(&["Node"], 50);
    assert!(found.iter().all(|suspect| suspect.kind == Nature::Object));
}

use super::*;

fn thread(number: u64) -> Thing {
    thing(address(number), Kind::DATA, "Thread")
        .named("VM/thread")
        .size(1 << 20)
}

/// So many threads, and strings of 1,000 bytes that an array holds.
fn server(threads: u64, strings: u64) -> Heap {
    let texts: Vec<u64> = (0..strings).map(|number| address(1000 + number)).collect();
    let mut list = thing(address(900), Kind::ARRAY, "Array");
    for &text in &texts {
        list = list.to("", text);
    }
    let texts = texts.iter().map(|&text| string(text, "text").size(1000));
    let stacks = (0..threads).map(thread);
    let things: Vec<Thing> = stacks.chain([list]).chain(texts).collect();
    let mut roots: Vec<u64> = (0..threads).map(address).collect();
    roots.push(address(900));
    heap(&[("vm", &roots)], &things)
}

#[test]
fn idle_threads_hide_no_leak_and_are_none() {
    let found = suspects(&server(64, 10_000));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].object.class, "Array");
}

#[test]
fn many_threads_are_a_suspect() {
    let found = suspects(&server(500, 10_000));
    let sentences: Vec<&str> = found.iter().map(|one| one.sentence.as_str()).collect();
    assert!(
        sentences
            .iter()
            .any(|one| one.starts_with("500 Thread instances retain 7.8 MiB")),
        "{sentences:?}"
    );
}

#[test]
fn a_thread_that_gathers_is_a_suspect() {
    let things = [
        thread(0).to("", address(1)),
        string(address(1), "local").size(1 << 20),
    ];
    let found = suspects(&heap(&[("vm", &[address(0)])], &things));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].object.class, "String");
}

use super::*;

fn thread(number: u64) -> Thing {
    thing(address(number), Kind::DATA, "Thread").named("VM/thread")
}

fn pool(threads: u64) -> Heap {
    let things: Vec<Thing> = (0..threads)
        .map(|number| thread(number).size(1 << 20))
        .collect();
    let roots: Vec<u64> = things.iter().map(|thing| thing.address).collect();
    heap(&[("vm", &roots)], &things)
}

#[test]
fn stacks_of_threads_are_no_leak_unless_there_are_more_than_a_pool_has() {
    for threads in [1, 5, 16] {
        assert!(suspects(&pool(threads)).is_empty());
    }
    let found = suspects(&pool(500));
    assert_eq!(found.len(), 1);
    assert!(
        found[0].sentence.starts_with("500 Thread instances retain"),
        "{}",
        found[0].sentence
    );
}

#[test]
fn stacks_that_are_no_leak_are_in_a_remark() {
    let answer = Question::default().answer(&pool(2));
    let remarks = answer.expect("an answer").remarks;
    assert_eq!(
        remarks[0],
        "No single object or class retains more than the threshold, except for stacks of threads and fibers (2, 2.0 MiB)."
    );
}

#[test]
fn the_main_thread_makes_no_leak_of_a_pool() {
    let stacks = (0..9).map(|number| thread(number).size(1 << 20));
    let main = thread(20).size(500).to("", address(21));
    let things: Vec<Thing> = stacks
        .chain([main, string(address(21), "local").size(400)])
        .collect();
    let roots: Vec<u64> = things.iter().map(|thing| thing.address).collect();
    assert!(suspects(&heap(&[("vm", &roots[..10])], &things)).is_empty());
}

#[test]
fn a_thread_that_gathers_is_a_suspect() {
    let things = [
        thread(0).size(1 << 20).to("", address(1)),
        string(address(1), "local").size(1 << 20),
    ];
    let found = suspects(&heap(&[("vm", &[address(0)])], &things));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].object.class, "String");
}

//! Two dumps (D2): objects that are only in one.

use super::{all, nodes};
use crate::subset::sample_subsets::{heap, made};

#[test]
fn finds_new_objects_and_not_reused_slots() {
    let before = heap(
        &[0x10],
        &[made(0x10, "Cache", &[0x20, 0x30]).allocated(1, 1), made(0x20, "A", &[]).allocated(2, 5)],
    );
    let after = heap(
        &[0x10],
        &[
            made(0x10, "Cache", &[0x20, 0x40]).allocated(1, 1),
            made(0x20, "A", &[]).allocated(7, 5),
            made(0x40, "A", &[]).allocated(7, 5),
        ],
    );
    let new = all(&before).diff(&all(&after)).expect("in memory");
    assert_eq!(nodes(&new), [1, 2]);
    let part = all(&before).filter(|&node| node != 0);
    assert_eq!(nodes(&part.diff(&all(&after)).expect("in memory")), [0, 1, 2]);
}

#[test]
fn of_one_heap_it_is_the_difference() {
    let heap = heap(&[0x10], &[made(0x10, "A", &[]), made(0x20, "A", &[])]);
    let all = all(&heap);
    let first = all.filter(|&node| node == 0);
    assert_eq!(nodes(&first.diff(&all).expect("in memory")), [1, 2]);
}

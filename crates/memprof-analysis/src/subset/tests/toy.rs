//! The six records on which memdump itself was run.

use super::{all, named};
use crate::subset::sample_subsets::{Made, heap, made};
use crate::subset::{Stats, Subset};
use memprof_dump::record::Kind;
use memprof_heap::Heap;

const A: u64 = 0x10;
const B: u64 = 0x20;
const C: u64 = 0x30;
const D: u64 = 0x40;

/// vm -> a; a -> b, c; c (an array) -> b and a missing object; d (a VM object) -> a.
fn toy() -> Heap {
    let d = Made { kind: Kind::IMEMO, ..made(D, "", &[A]) };
    heap(
        &[A],
        &[
            made(A, "Owner", &[B, C]).allocated(3, 1),
            made(B, "String", &[]),
            made(C, "Array", &[B, 0xdead]),
            d,
        ],
    )
}

fn addresses(set: &Subset<&Heap>) -> Vec<String> {
    let name = |node: u32| match set.heap().category(node) {
        Some(category) => category.name.clone(),
        None => format!("{:#x}", set.heap().addresses().of(node)),
    };
    set.iter().map(name).collect()
}

#[test]
fn counts_by_class() {
    let heap = toy();
    let one = |name: &str| (name.to_owned(), 1);
    let counts = ["<iseq>", "Array", "Owner", "ROOT", "String"].map(one).to_vec();
    assert_eq!(all(&heap).stats().expect("in memory"), Stats { unknown: 0, counts });
}

#[test]
fn finds_what_nobody_refers_to() {
    let heap = toy();
    assert_eq!(addresses(&all(&heap).roots().expect("in memory")), ["0x40", "vm"]);
}

#[test]
fn collapse_joins_the_ends() {
    let heap = toy();
    let all = all(&heap);
    let collapsed =
        all.collapse(&all.of_type(&named("ARRAY")).expect("in memory")).expect("in memory");
    let a = heap.at(A).expect("there");
    assert_eq!(collapsed.children(a).expect("in memory"), [heap.at(B).expect("there")]);
    assert_eq!(addresses(&collapsed), ["0x10", "0x20", "0x40", "vm"]);
}

#[test]
fn counts_references_of_parents() {
    let heap = toy();
    let all = all(&heap);
    let strings = all.of_class(&named("String")).expect("in memory");
    let parents = all.parents_of(&strings, 0, false).expect("in memory");
    assert_eq!(addresses(&parents), ["0x10", "0x30"]);
    assert!(parents.iter().all(|node| parents.annotation("references", node) == Some(1)));
    assert!(all.parents_of(&strings, 1, false).expect("in memory").is_empty());
}

#[test]
fn cleans_up() {
    let heap = toy();
    let cleaned = all(&heap).common_cleanup().expect("in memory");
    assert_eq!(addresses(&cleaned), ["0x10", "0x20", "vm"]);
}

#[test]
fn removes_a_node_and_what_hangs_on_it() {
    let heap = toy();
    let all = all(&heap);
    let rest = all.remove_node(heap.at(C).expect("there")).expect("in memory");
    assert_eq!(addresses(&rest), ["0x10", "0x20", "0x40", "vm"]);
    let a = heap.at(A).expect("there");
    assert_eq!(rest.references(a).expect("in memory"), [heap.at(B).expect("there")]);
}

#[test]
fn finds_all_ancestors() {
    let heap = toy();
    let all = all(&heap);
    let b = heap.at(B).expect("there");
    assert_eq!(
        addresses(&all.root_of(b).expect("in memory")),
        ["0x10", "0x20", "0x30", "0x40", "vm"]
    );
}

/// D11.
#[test]
fn reports_references_that_lead_nowhere() {
    let heap = toy();
    assert_eq!(heap.source.missing, 1);
    let all = all(&heap);
    let owner = all.of_class(&named("/^Own/")).expect("in memory");
    let (closed, missing) = owner.remove_invalid_references().expect("in memory");
    let ids = [B, C].map(|address| heap.at(address).expect("there"));
    assert_eq!(missing.nodes.iter().collect::<Vec<u32>>(), ids);
    assert!(missing.addresses.is_empty());
    assert!(closed.references(heap.at(A).expect("there")).expect("in memory").is_empty());
    let (valid, missing) = all.remove_invalid_references().expect("in memory");
    assert_eq!((missing.nodes.is_empty(), missing.addresses), (true, vec![0xdead]));
    let (_, missing) = valid.remove_invalid_references().expect("in memory");
    assert!(missing.nodes.is_empty() && missing.addresses.is_empty());
}

//! Compares with slow but simple algorithms, on many small heaps.

use std::collections::{BTreeMap, BTreeSet};

use super::{Join, Measure, Objects};
use crate::subset::sample_subsets::{Random, random_heap};
use memprof_heap::Heap;

fn each_heap(mut test: impl FnMut(&mut Random, &Heap)) {
    for seed in 1..=200_u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let heap = random_heap(&mut random);
        test(&mut random, &heap);
    }
}

fn some<'h>(random: &mut Random, heap: &'h Heap) -> Objects<&'h Heap> {
    let share = 1 + random.below(4);
    let ids = (0..heap.len()).filter(|_| random.one_in(share)).collect();
    Objects::new(heap, ids)
}

fn measure(name: &str) -> Measure {
    Measure::parse(name).expect("a measure")
}

/// The nodes reachable from the root without going through some nodes.
fn reached(heap: &Heap, without: &BTreeSet<u32>) -> BTreeSet<u32> {
    let classes = heap.group_classes();
    let graph = heap.graph(&classes).expect("in memory");
    let mut reached = BTreeSet::from([heap.root()]);
    let mut next = vec![heap.root()];
    while let Some(node) = next.pop() {
        for target in graph.edges(node) {
            if !without.contains(&target) && reached.insert(target) {
                next.push(target);
            }
        }
    }
    reached
}

#[test]
fn what_objects_retain_is_what_is_not_reached_without_them() {
    each_heap(|random, heap| {
        let objects = some(random, heap);
        let live = reached(heap, &BTreeSet::new());
        let ids: BTreeSet<u32> = objects.ids().iter().copied().collect();
        if !ids.iter().all(|id| live.contains(id)) {
            return;
        }
        let rest = reached(heap, &ids);
        let sizes = heap.memsizes().expect("in memory");
        let freed = live.difference(&rest).filter(|&&id| id < heap.len());
        let freed: u64 = freed.map(|&id| sizes.get(id)).sum();
        assert_eq!(objects.retained().expect("in memory"), freed);
        assert_eq!(objects.sum(measure("retained")).expect("in memory"), freed);
    });
}

#[test]
fn sums_orders_and_classes_agree_with_the_numbers_of_each_object() {
    each_heap(|random, heap| {
        let objects = some(random, heap);
        let sizes = heap.memsizes().expect("in memory");
        let sum = objects.ids().iter().map(|&id| sizes.get(id)).sum::<u64>();
        assert_eq!(objects.sum(measure("size")).expect("in memory"), sum);

        let mut ordered = objects.ids().to_vec();
        ordered.sort_by_key(|&id| (std::cmp::Reverse(sizes.get(id)), id));
        ordered.truncate(3);
        let top = objects.top(3, measure("size")).expect("in memory");
        assert_eq!(top.ids(), ordered);

        let classes = objects.by_class().expect("in memory");
        let counts: Vec<usize> = classes.iter().map(|(_, ids)| ids.ids().len()).collect();
        assert!(counts.is_sorted_by(|one, other| one >= other));
        let all: BTreeSet<u32> = classes.iter().flat_map(|(_, ids)| ids.ids().to_vec()).collect();
        assert_eq!(all, objects.ids().iter().copied().collect());
        for (name, ids) in &classes {
            let filter = format!("class = '{name}'");
            let chosen = objects.filter(&filter).expect("a filter");
            assert_eq!(chosen.ids(), ids.ids());
        }
    });
}

#[test]
fn collections_are_joined_in_the_order_of_the_first() {
    each_heap(|random, heap| {
        let (one, other) = (some(random, heap), some(random, heap));
        let theirs: BTreeSet<u32> = other.ids().iter().copied().collect();
        let (both, rest): (Vec<u32>, Vec<u32>) =
            one.ids().iter().partition(|id| theirs.contains(id));
        assert_eq!(one.join(&other, Join::And).ids(), both);
        assert_eq!(one.join(&other, Join::Not).ids(), rest);
        let mut all: BTreeMap<u32, u32> = BTreeMap::new();
        for &id in one.join(&other, Join::Or).ids() {
            *all.entry(id).or_default() += 1;
        }
        let union: BTreeSet<u32> = one.ids().iter().chain(other.ids()).copied().collect();
        assert!(all.values().all(|&times| times == 1));
        assert_eq!(all.into_keys().collect::<BTreeSet<_>>(), union);
    });
}

#[test]
fn parts_end_where_the_objects_do_and_only_numbers_are_measures() {
    each_heap(|_, heap| {
        let all = Objects::all(heap).expect("in memory");
        let count = all.ids().len();
        assert_eq!(all.part(count, 5), &[] as &[u32]);
        assert_eq!(all.part(0, usize::MAX), all.ids());
        assert_eq!(all.part(usize::MAX, usize::MAX), &[] as &[u32]);
    });
    assert!(Measure::parse("class").is_err());
    assert!(Measure::parse("nothing").is_err());
}

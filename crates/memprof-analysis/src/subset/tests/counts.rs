//! Counting (D4, D12).

use super::{all, each_heap, naive, nodes, some};
use crate::subset::sample_subsets::{Random, closure, heap, made};

#[test]
fn keepalive_counts_are_what_a_walk_meets() {
    each_heap(|random, heap| {
        let all = all(heap);
        let set = some(random, &all);
        let part = all.without(&some(random, &all));
        for graph in [&all, &part] {
            let edges = naive(graph);
            let counts = graph.keepalive_counts(&nodes(&set)).expect("in memory");
            for node in set.iter() {
                let expected = graph.contains(node).then(|| closure(&edges, &[node]).len() as u64);
                assert_eq!(counts.get(&node).copied(), expected);
            }
        }
    });
}

#[test]
fn a_circle_counts_once() {
    let heap = heap(
        &[0x10],
        &[made(0x10, "A", &[0x20]), made(0x20, "A", &[0x30]), made(0x30, "A", &[0x10, 0x10])],
    );
    let all = all(&heap);
    let counts = all.keepalive_counts(&[0, 1, 2, 3]).expect("in memory");
    assert_eq!([0, 1, 2, 3].map(|node| counts[&node]), [3, 3, 3, 4]);
}

#[test]
fn parents_are_counted_by_what_they_refer_to() {
    each_heap(|random, heap| {
        let all = all(heap);
        let (set, other) = (some(random, &all), some(random, &all));
        let edges = naive(&all);
        for (min, exclude) in [(0, false), (1, false), (0, true)] {
            let parents = set.parents_of(&other, min, exclude).expect("in memory");
            for node in all.iter() {
                let count = edges[&node].iter().filter(|&&target| other.contains(target)).count();
                let expected =
                    set.contains(node) && count > min && !(exclude && other.contains(node));
                assert_eq!(parents.contains(node), expected);
                assert_eq!(
                    parents.annotation("references", node),
                    expected.then_some(count as u64)
                );
            }
        }
    });
}

#[test]
fn out_degrees_ascend_from_the_least() {
    each_heap(|random, heap| {
        let all = all(heap);
        let least = random.below(4) as usize;
        let degrees = all.out_degree(least).expect("in memory");
        assert!(degrees.windows(2).all(|pair| pair[0].1 <= pair[1].1));
        let edges = naive(&all);
        let mut expected: Vec<(u32, usize)> =
            edges.iter().map(|(&node, row)| (node, row.len())).collect();
        expected.retain(|&(_, degree)| degree >= least);
        expected.sort_unstable_by_key(|&(node, degree)| (degree, node));
        assert_eq!(degrees, expected);
    });
}

#[test]
fn stats_count_each_member() {
    each_heap(|random, heap| {
        let set = some(random, &all(heap));
        let stats = set.stats().expect("in memory");
        for (name, count) in &stats.counts {
            let name_of = |node: u32| {
                heap.category(node)
                    .map_or_else(|| heap.class_name(node).expect("there"), |_| "ROOT")
            };
            assert_eq!(set.iter().filter(|&node| name_of(node) == name).count() as u64, *count);
        }
        assert_eq!(
            stats.counts.iter().map(|(_, count)| count).sum::<u64>() + stats.unknown,
            set.len() as u64
        );
    });
}

#[test]
fn a_sample_has_its_share() {
    let mut random = Random(1);
    let objects: Vec<_> = (0..2000).map(|index| made(0x1000 + 0x40 * index, "A", &[])).collect();
    let heap = heap(&[], &objects);
    let all = all(&heap);
    for _ in 0..20 {
        let (ratio, seed) = (random.below(100) as f64 / 100.0, random.below(u64::MAX));
        let sample = all.sample(ratio, seed);
        assert!((sample.len() as f64 - 2001.0 * ratio).abs() < 130.0);
        assert_eq!(nodes(&sample), nodes(&all.sample(ratio, seed)));
    }
    assert_eq!((all.sample(0.0, 3).len(), all.sample(1.0, 3).len()), (0, 2001));
}

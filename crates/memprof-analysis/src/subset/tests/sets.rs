//! Basic set operations.

use super::{all, each_heap, naive, named, nodes, some};
use crate::subset::Subset;
use memprof_heap::Heap;

#[test]
fn unites_and_intersects() {
    each_heap(|random, heap| {
        let all = all(heap);
        let (left, right) = (some(random, &all), some(random, &all));
        let (united, common) = (left.union(&right).expect("one graph"), left.intersection(&right));
        let only = left.difference(&right);
        for node in all.iter() {
            let (here, there) = (left.contains(node), right.contains(node));
            assert_eq!(united.contains(node), here || there);
            assert_eq!(common.contains(node), here && there);
            assert_eq!(only.contains(node), here && !there);
        }
    });
}

#[test]
fn a_union_has_the_references_of_both() {
    each_heap(|random, heap| {
        let all = all(heap);
        let collapsed = all.collapse(&some(random, &all)).expect("in memory");
        let other = some(random, &all);
        let united = collapsed.union(&other).expect("no groups");
        for node in united.iter() {
            let from = if collapsed.contains(node) { &collapsed } else { &other };
            assert_eq!(
                united.references(node).expect("in memory"),
                from.references(node).expect("in memory")
            );
        }
        if let Ok((grouped, group)) = all.group("some", &other) {
            assert!(collapsed.union(&grouped).expect("one has groups").contains(group));
            assert!(grouped.union(&all.group("others", &all).expect("members").0).is_err());
        }
    });
}

#[test]
fn the_heap_may_be_shared() {
    each_heap(|_, heap| {
        let objects = all(heap).of_type(&named("object")).expect("in memory");
        let arrays = all(heap).of_type(&named("/ARR|HASH/")).expect("in memory");
        assert!(objects.intersection(&arrays).is_empty());
        let roots = all(heap).of_type(&named("ROOT")).expect("in memory");
        assert_eq!(nodes(&roots), [heap.category_node(0)]);
    });
    fn is_shareable<T: Send + Sync>() {}
    is_shareable::<Subset<std::sync::Arc<Heap>>>();
}

#[test]
fn children_are_added() {
    each_heap(|random, heap| {
        let all = all(heap);
        let parents = some(random, &all);
        let family = all.add_children(&parents).expect("in memory");
        let edges = naive(&all);
        for node in all.iter() {
            let child = parents.iter().any(|parent| edges[&parent].contains(&node));
            assert_eq!(family.contains(node), child || parents.contains(node));
        }
    });
}

#[test]
fn finds_by_a_query() {
    each_heap(|_, heap| {
        let found = all(heap).find_all("class = \"Plan\" and size > 40").expect("a query");
        for node in 0..heap.len() {
            let size = heap.memsizes().expect("in memory").get(node);
            let plan = heap.class_name(node).expect("in memory") == "Plan";
            assert_eq!(found.contains(node), plan && size > 40);
        }
        assert!(all(heap).find_all("class =").is_err());
    });
}

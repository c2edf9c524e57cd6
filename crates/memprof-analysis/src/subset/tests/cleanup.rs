//! Operations that change references (D6).

use super::{all, each_heap, naive, named, nodes, some};
use crate::subset::sample_subsets::{Made, closure, heap, made};
use memprof_dump::record::Kind;

#[test]
fn collapse_keeps_who_reaches_whom() {
    each_heap(|random, heap| {
        let all = all(heap);
        let gone = some(random, &all);
        let rest = all.collapse(&gone).expect("in memory");
        let (before, after) = (naive(&all), naive(&rest));
        for node in all.iter().filter(|&node| !gone.contains(node)) {
            let mut expected = closure(&before, &[node]);
            expected.retain(|&node| !gone.contains(node));
            assert_eq!(closure(&after, &[node]), expected);
        }
        // Never more than the collapsed ones joined: a path through remaining ones is not a reference.
        for (&node, row) in &after {
            let mut through = before.clone();
            for kept in rest.iter().filter(|&kept| kept != node) {
                through.insert(kept, Vec::new());
            }
            assert!(row.iter().all(|target| closure(&through, &before[&node]).contains(target)));
        }
    });
}

#[test]
fn common_cleanup_keeps_who_reaches_whom() {
    each_heap(|_, heap| {
        let all = all(heap);
        let rest = all.common_cleanup().expect("in memory");
        let (before, after) = (naive(&all), naive(&rest));
        for node in rest.iter() {
            let mut expected = closure(&before, &[node]);
            expected.retain(|&node| rest.contains(node));
            assert_eq!(closure(&after, &[node]), expected);
        }
        for class in ["Array", "Hash", "Set"] {
            assert!(rest.of_class(&named(class)).expect("in memory").is_empty());
        }
    });
}

#[test]
fn common_cleanup_takes_weak_references_out() {
    let dumped = Made { method: Some("dump_all"), ..made(0x50, "File", &[0x60]).allocated(1, 1) };
    let heap = heap(
        &[0x10, 0x50],
        &[
            made(0x10, "WeakRef", &[0x20]),
            made(0x20, "Plan", &[0x30]),
            Made { kind: Kind::DATA, ..made(0x30, "RubyVM::Env", &[0x40]) },
            made(0x40, "Plan", &[]),
            dumped,
            made(0x60, "Plan", &[]),
        ],
    );
    let rest = all(&heap).common_cleanup().expect("in memory");
    let at = |address| heap.at(address).expect("there");
    assert_eq!(nodes(&rest), [at(0x20), at(0x40), at(0x60), heap.category_node(0)]);
    assert_eq!(rest.children(at(0x20)).expect("in memory"), [at(0x40)]);
    // The dump's own file is collapsed, so the root references its targets.
    assert_eq!(rest.children(heap.category_node(0)).expect("in memory"), [at(0x60)]);
}

#[test]
fn without_drops_references() {
    each_heap(|random, heap| {
        let all = all(heap);
        let gone = some(random, &all);
        let rest = all.without(&gone);
        for node in all.iter() {
            assert_eq!(rest.contains(node), !gone.contains(node));
            let mut expected = all.references(node).expect("in memory");
            expected.retain(|&target| !gone.contains(target));
            assert_eq!(rest.references(node).expect("in memory"), expected);
        }
    });
}

#[test]
fn small_components_go() {
    each_heap(|random, heap| {
        let all = all(heap);
        let edges = naive(&all);
        let max_size = random.below(4);
        let rest = all.remove_small_components(max_size).expect("in memory");
        let roots = nodes(&all.roots().expect("in memory"));
        let (small, large): (Vec<u32>, Vec<u32>) =
            roots.iter().partition(|&&root| closure(&edges, &[root]).len() as u64 <= max_size);
        let (below_small, below_large) = (closure(&edges, &small), closure(&edges, &large));
        for node in all.iter() {
            let rootless = !below_small.contains(&node) && !below_large.contains(&node);
            // Cycles that no root reaches keep the members that they reach.
            let circles: Vec<u32> = all
                .iter()
                .filter(|node| !below_small.contains(node) && !below_large.contains(node))
                .collect();
            let kept = below_large.contains(&node)
                || rootless
                || closure(&edges, &circles).contains(&node);
            assert_eq!(rest.contains(node), kept);
        }
    });
}

#[test]
fn a_group_stands_for_its_members() {
    each_heap(|random, heap| {
        let all = all(heap);
        let set = some(random, &all);
        let Ok((grouped, group)) = all.group("sessions", &set) else {
            assert!(set.is_empty());
            return;
        };
        assert_eq!(grouped.len(), all.len() - set.len() + 1);
        assert_eq!(grouped.grouped(group).map(|group| group.count), Some(set.len() as u64));
        assert_eq!(grouped.size().expect("in memory"), all.size().expect("in memory"));
        let edges = naive(&all);
        let mut outside: Vec<u32> = set.iter().flat_map(|node| edges[&node].clone()).collect();
        outside.retain(|&target| !set.contains(target));
        outside.sort_unstable();
        outside.dedup();
        assert_eq!(grouped.children(group).expect("in memory"), outside);
        for node in all.iter().filter(|&node| !set.contains(node)) {
            let mut expected: Vec<u32> = edges[&node]
                .iter()
                .map(|&target| if set.contains(target) { group } else { target })
                .collect();
            expected.sort_unstable();
            expected.dedup();
            assert_eq!(grouped.children(node).expect("in memory"), expected);
        }
        assert_eq!(nodes(&grouped.of_class(&named("sessions")).expect("in memory")), [group]);
        // Groups can be listed and grouped again.
        grouped.answer(None, 0, 100).expect("an answer");
        let (again, outer) = grouped.group("all", &grouped).expect("members");
        assert_eq!(
            (nodes(&again), again.grouped(outer).map(|group| group.count)),
            (vec![outer], Some(all.len() as u64))
        );
    });
}

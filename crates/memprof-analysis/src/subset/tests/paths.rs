//! Paths through subsets (D3, D9, D12).

use super::{all, each_heap, naive, nodes, some};
use crate::subset::sample_subsets::{closure, distances};
use memprof_heap::graph::BitSet;

#[test]
fn roots_of_has_a_shortest_path_to_each() {
    each_heap(|random, heap| {
        let all = all(heap);
        let wanted = some(random, &all);
        let found = all.roots_of(&wanted, None).expect("in memory");
        let roots: Vec<u32> = all.categories().collect();
        let (whole, part) = (distances(&naive(&all), &roots), distances(&naive(&found), &roots));
        for node in wanted.iter() {
            assert_eq!(part.get(&node), whole.get(&node));
            assert_eq!(found.contains(node), whole.contains_key(&node));
        }
        // All members are on a path: only wanted objects end a path.
        let edges = naive(&found);
        for node in found.iter() {
            assert!(closure(&edges, &[node]).iter().any(|&end| wanted.contains(end)));
            assert_eq!(part.get(&node), whole.get(&node));
        }
        let longest: usize =
            wanted.iter().filter_map(|node| whole.get(&node)).map(|distance| distance + 1).sum();
        assert!(found.len() <= longest);
    });
}

#[test]
fn roots_of_may_begin_elsewhere() {
    each_heap(|random, heap| {
        let all = all(heap);
        let (wanted, from) = (some(random, &all), some(random, &all));
        let found = all.roots_of(&wanted, Some(&from)).expect("in memory");
        let starts = nodes(&from);
        let (whole, part) = (distances(&naive(&all), &starts), distances(&naive(&found), &starts));
        for node in wanted.iter() {
            assert_eq!(part.get(&node), whole.get(&node));
        }
    });
}

#[test]
fn find_path_is_shortest() {
    each_heap(|random, heap| {
        let all = all(heap);
        let edges = naive(&all);
        let (from, to) = (
            random.below(u64::from(heap.root())) as u32,
            random.below(u64::from(heap.root())) as u32,
        );
        let path = all.find_path(from, to).expect("in memory");
        let distance = distances(&edges, &[from]).get(&to).copied();
        assert_eq!(path.len(), distance.map_or(0, |distance| distance + 1));
        assert!(path.windows(2).all(|pair| edges[&pair[0]].contains(&pair[1])));
        if !path.is_empty() {
            assert_eq!((path.first(), path.last()), (Some(&from), Some(&to)));
        }
    });
}

#[test]
fn a_spanning_tree_has_one_way_to_each() {
    each_heap(|random, heap| {
        let all = all(heap);
        let start = random.below(u64::from(heap.root())) as u32;
        let root = all.filter(|&node| node == start);
        let tree = all.minimum_spanning_tree(&root).expect("one root");
        let edges = naive(&all);
        assert_eq!(nodes(&tree), closure(&edges, &[start]));
        let branches = naive(&tree);
        assert_eq!(branches.values().map(Vec::len).sum::<usize>(), tree.len() - 1);
        assert_eq!(distances(&branches, &[start]), distances(&edges, &[start]));
        assert_eq!(all.minimum_spanning_tree(&all).is_err(), all.len() != 1);
    });
}

#[test]
fn depth_first_comes_to_each_once() {
    each_heap(|random, heap| {
        let all = all(heap);
        let start = random.below(u64::from(heap.root())) as u32;
        let visits = all.depth_first(start).expect("in memory");
        let mut met: Vec<u32> = visits.iter().map(|visit| visit.node).collect();
        assert_eq!(met.first(), Some(&start));
        met.sort_unstable();
        assert_eq!(met, closure(&naive(&all), &[start]));
    });
}

#[test]
fn subgraph_of_ends_at_the_depth() {
    each_heap(|random, heap| {
        let all = all(heap);
        let start = random.below(u64::from(heap.root())) as u32;
        let near = distances(&naive(&all), &[start]);
        for depth in [0, 1, 2, u32::MAX] {
            let found = all.subgraph_of(start, depth).expect("in memory");
            let mut expected: Vec<u32> = near
                .iter()
                .filter(|&(_, &distance)| distance <= depth as usize)
                .map(|(&node, _)| node)
                .collect();
            expected.sort_unstable();
            assert_eq!(nodes(&found), expected);
        }
    });
}

/// D10: removing a node removes the nodes that it dominates, seen from unreferenced nodes.
#[test]
fn remove_node_removes_what_it_dominates() {
    each_heap(|random, heap| {
        let all = all(heap);
        let node = random.below(u64::from(heap.root())) as u32;
        let rest = all.remove_node(node).expect("in memory");
        let roots: Vec<u32> = nodes(&all.roots().expect("in memory"))
            .into_iter()
            .filter(|&root| root != node)
            .collect();
        let mut edges = naive(&all);
        edges.remove(&node);
        assert_eq!(nodes(&rest), closure(&edges, &roots));
    });
}

#[test]
fn ancestors_reach_and_others_do_not() {
    each_heap(|random, heap| {
        let all = all(heap);
        let edges = naive(&all);
        let node = random.below(u64::from(heap.root())) as u32;
        let above = all.root_of(node).expect("in memory");
        let set = some(random, &all);
        let common = all.common_ancestors(&set).expect("in memory");
        for from in all.iter() {
            let reached = closure(&edges, &[from]);
            assert_eq!(above.contains(from), reached.contains(&node));
            let reaches_all = !set.is_empty() && set.iter().all(|member| reached.contains(&member));
            assert_eq!(common.contains(from), reaches_all);
        }
    });
}

#[test]
fn the_common_dominator_is_on_all_ways() {
    each_heap(|random, heap| {
        let all = all(heap);
        let edges = naive(&all);
        let roots: Vec<u32> = all.categories().collect();
        let set = some(random, &all)
            .intersection(&all.filter(|node| closure(&edges, &roots).contains(node)));
        let found = all.nearest_common_dominator(&set).expect("in memory");
        // A node dominates if no member is reachable without it.
        let dominates = |node: u32| {
            let mut edges = edges.clone();
            edges.remove(&node);
            let reached = closure(&edges, &roots);
            !set.is_empty() && set.iter().all(|member| !reached.contains(&member))
        };
        let common: Vec<u32> = all.iter().filter(|&node| dominates(node)).collect();
        match found {
            Some(found) => {
                assert!(common.contains(&found));
                // The nearest is the one that all others dominate.
                let near = distances(&edges, &roots);
                assert!(common.iter().all(|node| near[node] <= near[&found]));
            }
            None => assert!(common.is_empty()),
        }
        assert!(BitSet::of(all.members().length(), set.iter()).iter().eq(set.iter()));
    });
}

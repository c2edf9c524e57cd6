use super::super::sample_graphs::{self, GRAPHS, Random, make, some};
use super::super::*;

#[test]
fn reachable_nodes() {
    for seed in 0..GRAPHS {
        let (made, root) = make(seed);
        let graph = made.graph();
        let gone = some(&mut Random(seed + 3), &graph);
        let expected = sample_graphs::reached(&graph, root, &BitSet::default());
        assert_eq!(reachable(&graph, &[root]), expected);
        assert_eq!(
            reachable_without(&graph, &[root], &gone),
            sample_graphs::reached(&graph, root, &gone)
        );
        let mut both = expected.clone();
        both.unite(&sample_graphs::reached(&graph, 0, &BitSet::default()));
        assert_eq!(reachable(&graph, &[0, root]), both);
        let all: Vec<u32> = graph.nodes().chain([root]).collect();
        for (node, count) in all.iter().zip(reachable_counts(&graph, &all)) {
            assert_eq!(
                count,
                sample_graphs::reached(&graph, *node, &BitSet::default()).count() as u64
            );
        }
    }
}

#[test]
fn shortest_paths_are_shortest_and_lowest() {
    for seed in 0..GRAPHS {
        let (made, root) = make(seed);
        let graph = made.graph();
        for avoid in [BitSet::default(), some(&mut Random(seed + 5), &graph)] {
            let paths = shortest_paths_avoiding(&graph, root, &avoid);
            let distances = sample_graphs::distances(&graph, root, &avoid);
            for node in graph.nodes() {
                let distance = distances[node as usize];
                let path = paths.path(node);
                assert_eq!(path.len() as u32, distance.wrapping_add(1), "graph {seed}");
                let goes = |pair: &[u32]| graph.edges(pair[0]).any(|target| target == pair[1]);
                assert!(path.windows(2).all(goes));
                let before = graph.nodes().find(|before| {
                    let through = *before == root || !avoid.contains(*before);
                    distance != 0
                        && distances[*before as usize] == distance.wrapping_sub(1)
                        && through
                        && goes(&[*before, node])
                });
                assert_eq!(paths.parent[node as usize], before.unwrap_or(NONE));
            }
            let longest = distances.iter().filter(|distance| **distance != NONE).max();
            assert_eq!(Some(&paths.longest), longest);
        }
    }
}

#[test]
fn referrers() {
    for seed in 0..GRAPHS {
        let (made, _) = make(seed);
        let graph = made.graph();
        let inbound = Inbound::of(&graph);
        for node in graph.nodes() {
            let sources = graph.nodes().flat_map(|source| {
                let row = graph.row(source).iter().filter(|target| **target == node);
                row.map(move |_| source)
            });
            assert_eq!(inbound.referrers.row(node), sources.collect::<Vec<u32>>());
            let mut instances: Vec<u32> = inbound.instances(node).collect();
            instances.sort_unstable();
            let extra = |source: &u32| graph.extra_of(*source).is_some_and(|pair| pair.1 == node);
            assert_eq!(instances, graph.nodes().filter(extra).collect::<Vec<u32>>());
            let mut all: Vec<u32> = inbound.edges(node).collect();
            all.sort_unstable();
            all.dedup();
            assert_eq!(referrers_of(&graph, node), all, "graph {seed}, node {node}: {graph:?}");
        }
        let set = some(&mut Random(seed + 9), &graph);
        let reach = |node: &u32| {
            let reached = sample_graphs::reached(&graph, *node, &BitSet::default());
            reached.iter().any(|target| set.contains(target))
        };
        let expected = BitSet::of(graph.len(), graph.nodes().filter(reach));
        assert_eq!(ancestors(&inbound, &set), expected, "graph {seed}");
    }
}

#[test]
fn walks_of_limited_depth() {
    for seed in 0..GRAPHS {
        let (made, root) = make(seed);
        let graph = made.graph();
        let distances = sample_graphs::distances(&graph, root, &BitSet::default());
        for limit in [0, 1, 2, 3, 7, NONE - 1] {
            let visits = depth_first(&graph, root, limit);
            assert_eq!(visits[0], Visit { node: root, parent: None });
            let mut seen = BitSet::of(graph.len(), [root]);
            for visit in &visits[1..] {
                let parent = visit.parent.unwrap_or(NONE);
                assert!(seen.contains(parent) && seen.insert(visit.node));
                assert!(graph.edges(parent).any(|target| target == visit.node));
            }
            let near = graph.nodes().filter(|node| distances[*node as usize] <= limit);
            assert_eq!(seen, BitSet::of(graph.len(), near), "graph {seed}");
        }
    }
    let made = sample_graphs::Made::of(5, &[(0, 2), (0, 1), (2, 3), (3, 1), (1, 4)]);
    let visits = depth_first(&made.graph(), 0, 1);
    assert_eq!(visits.iter().map(|visit| visit.node).collect::<Vec<u32>>(), [0, 2, 1]);
    let visits = depth_first(&made.graph(), 0, 9);
    assert_eq!(visits.iter().map(|visit| visit.node).collect::<Vec<u32>>(), [0, 2, 3, 1, 4]);
}

#[test]
fn components() {
    for seed in 0..GRAPHS {
        let (made, _) = make(seed);
        let graph = made.graph();
        let weak = weak_components(&graph);
        let strong = strong_components(&graph);
        let reached: Vec<BitSet> = graph
            .nodes()
            .map(|node| sample_graphs::reached(&graph, node, &BitSet::default()))
            .collect();
        let both: Vec<(u32, u32)> = graph
            .nodes()
            .flat_map(|node| graph.edges(node).flat_map(move |to| [(node, to), (to, node)]))
            .collect();
        let either = sample_graphs::Made::of(graph.len() as u32, &both);
        for one in graph.nodes() {
            let together = sample_graphs::reached(&either.graph(), one, &BitSet::default());
            for two in graph.nodes() {
                let (first, second) = (one as usize, two as usize);
                assert_eq!(weak.of[first] == weak.of[second], together.contains(two));
                let there = reached[first].contains(two);
                let back = reached[second].contains(one);
                assert_eq!(strong.of[first] == strong.of[second], there && back, "{seed}");
                assert!(!there || strong.of[first] >= strong.of[second]);
            }
        }
        for parts in [weak, strong] {
            let mut sizes = vec![0; parts.sizes.len()];
            parts.of.iter().for_each(|part| sizes[*part as usize] += 1);
            assert_eq!(sizes, parts.sizes);
            assert!(!sizes.contains(&0));
        }
    }
}

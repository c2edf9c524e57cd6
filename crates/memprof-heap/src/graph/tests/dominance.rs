use super::super::sample_graphs::{self, GRAPHS, Random, make, some};
use super::super::*;

#[test]
fn dominators_are_what_removing_nodes_says() {
    for seed in 0..GRAPHS {
        let (made, root) = make(seed);
        let graph = made.graph();
        let found = dominators(&graph, root);
        let expected = sample_graphs::parents(&sample_graphs::lost(&graph, root));
        assert_eq!(found.parent, expected, "graph {seed}: {graph:?} from {root}");
        assert_eq!(found.parent, sample_graphs::iterative(&graph, root), "graph {seed}");
    }
}

#[test]
fn order_has_dominators_first() {
    for seed in 0..GRAPHS {
        let (made, root) = make(seed);
        let graph = made.graph();
        let found = dominators(&graph, root);
        assert_eq!(found.root(), Some(root));
        let mut before = BitSet::new(graph.len());
        for &node in &found.order {
            assert!(found.parent_of(node).is_none_or(|parent| before.contains(parent)));
            assert!(before.insert(node));
        }
        assert_eq!(before, reachable(&graph, &[root]));
        let reached = graph.nodes().filter(|node| found.reaches(*node));
        assert_eq!(before, BitSet::of(graph.len(), reached));
    }
}

#[test]
fn larger_graphs_agree_with_the_iterative_algorithm() {
    for seed in 0..60 {
        let mut random = Random(seed + 1000);
        let nodes = 1 + random.below(5000) as u32;
        let mut edges: Vec<(u32, u32)> = Vec::new();
        let near = 1 + random.below(100);
        for _ in 0..u64::from(nodes) * (1 + random.below(3)) {
            let source = random.below(nodes.into()) as u32;
            let target = match random.one_in(3) {
                true => random.below(nodes.into()),
                false => (u64::from(source) + random.below(near)).min(u64::from(nodes) - 1),
            };
            edges.push((source, target as u32));
        }
        let mut made = sample_graphs::Made::of(nodes, &edges);
        made.class = (0..5).map(|_| random.below(nodes.into()) as u32).collect();
        made.group = (0..nodes).map(|_| random.below(5) as u32).collect();
        for graph in [made.graph(), Graph { extra: Extra::default(), ..made.graph() }] {
            assert_eq!(dominators(&graph, 0).parent, sample_graphs::iterative(&graph, 0), "{seed}");
        }
    }
}

#[test]
fn retained_is_what_is_lost() {
    for seed in 0..GRAPHS {
        let (made, root) = make(seed);
        let graph = made.graph();
        let size = |node: u32| u64::from(node) * 7 + 1;
        let found = retained(&dominators(&graph, root), size);
        for (node, lost) in graph.nodes().zip(sample_graphs::lost(&graph, root)) {
            let expected = if lost.is_empty() { size(node) } else { lost.sum(size) };
            assert_eq!(found[node as usize], expected, "graph {seed}, node {node}");
        }
    }
}

#[test]
fn retained_of_a_set() {
    for seed in 0..GRAPHS {
        let (made, root) = make(seed);
        let graph = made.graph();
        let set = some(&mut Random(seed + 1), &graph);
        let mut expected = sample_graphs::reached(&graph, root, &BitSet::default());
        expected.subtract(&sample_graphs::reached(&graph, root, &set));
        let exact = retained_of_set(&graph, root, &set);
        assert_eq!(exact, expected, "graph {seed}");

        let found = dominators(&graph, root);
        let retained = retained(&found, |node| 1 << (node % 30));
        let tops = top_members(&found, &set);
        let covered = |node: u32| found.ancestors(node).any(|above| set.contains(above));
        let expected = set.iter().filter(|node| found.reaches(*node) && !covered(*node));
        assert_eq!(tops, expected.collect::<Vec<u32>>());
        let sum = retained_of_top_members(&found, &retained, &set);
        assert_eq!(sum, tops.iter().map(|node| retained[*node as usize]).sum::<u64>());
        assert!(sum <= exact.sum(|node| 1 << (node % 30)));
    }
}

#[test]
fn sums_stop_at_the_greatest_number() {
    let made = sample_graphs::Made::of(4, &[(0, 1), (1, 2), (1, 3)]);
    let found = dominators(&made.graph(), 0);
    let sizes = retained(&found, |node| u64::MAX - 2 + u64::from(node == 2));
    assert_eq!(sizes, [u64::MAX, u64::MAX, u64::MAX - 1, u64::MAX - 2]);
    let set = BitSet::of(4, [2, 3]);
    assert_eq!(retained_of_top_members(&found, &sizes, &set), u64::MAX);
    assert_eq!(set.sum(|_| u64::MAX - 1), u64::MAX);
}

#[test]
fn the_tree_is_laid_out() {
    for seed in 0..GRAPHS {
        let (made, root) = make(seed);
        let graph = made.graph();
        let found = dominators(&graph, root);
        let tree = Tree::of(&found);
        let rows = children(&found);
        let depths = depths(&found);
        assert_eq!(tree.nodes().len(), found.order.len());
        for top in graph.nodes() {
            let mut below: Vec<u32> = tree.children(top).collect();
            below.sort_unstable();
            assert_eq!(below, rows.row(top), "graph {seed}");
            let own = graph.nodes().filter(|node| found.parent_of(*node) == Some(top));
            assert_eq!(rows.row(top), own.collect::<Vec<u32>>());
            let inside = |node: u32| {
                found.reaches(node) && (node == top || found.ancestors(node).any(|at| at == top))
            };
            for node in graph.nodes() {
                assert_eq!(tree.contains(top, node), inside(node), "graph {seed}");
            }
            let mut subtree = tree.subtree(top).to_vec();
            assert!(subtree.first().is_none_or(|first| *first == top));
            subtree.sort_unstable();
            assert_eq!(subtree, graph.nodes().filter(|node| inside(*node)).collect::<Vec<u32>>());
            assert_eq!(tree.subtree_size(top) as usize, subtree.len());
            let depth = match found.reaches(top) {
                true => found.ancestors(top).count() as u32,
                false => NONE,
            };
            assert_eq!(depths[top as usize], depth);
        }
    }
}

#[test]
fn nearest_common_dominators() {
    for seed in 0..GRAPHS {
        let (made, root) = make(seed);
        let graph = made.graph();
        let found = dominators(&graph, root);
        let tree = Tree::of(&found);
        let nodes: Vec<u32> = some(&mut Random(seed + 7), &graph).iter().collect();
        let common = graph.nodes().filter(|top| {
            let mut reached = nodes.iter().filter(|node| found.reaches(**node));
            reached.all(|node| tree.contains(*top, *node)) && found.reaches(*top)
        });
        let expected = common.max_by_key(|top| found.ancestors(*top).count());
        let any = nodes.iter().any(|node| found.reaches(*node));
        let expected = expected.filter(|_| any).unwrap_or(NONE);
        assert_eq!(nearest_common(&found, &nodes), expected, "graph {seed}: {nodes:?}");
    }
}

use super::super::sample_graphs::{Made, Random};
use super::super::*;

#[test]
fn no_nodes() {
    for graph in [Graph::default(), Made::of(0, &[]).graph()] {
        assert!(graph.is_empty() && graph.is_sound());
        everything(&graph, 0);
    }
}

#[test]
fn edges_are_the_row_and_the_extra_edge() {
    let mut made = Made::of(4, &[(0, 1), (0, 1), (0, 0), (2, 3)]);
    made.class = vec![3, NONE];
    made.group = vec![0, 1, 0];
    let graph = made.graph();
    assert!(graph.is_sound());
    let edges = |graph: Graph<'_>, node| graph.edges(node).collect::<Vec<u32>>();
    assert_eq!(edges(graph, 0), [1, 1, 0, 3]);
    assert!(edges(graph, 1).is_empty());
    assert_eq!(edges(graph, 2), [3, 3]);
    assert!(edges(graph, 3).is_empty());
    assert!(edges(graph, 4).is_empty());
    assert!(edges(graph, NONE).is_empty());
    let quiet = graph.without_edges_of(&[0, 9]);
    assert!(edges(quiet, 0).is_empty());
    assert_eq!(edges(quiet, 2), [3, 3]);
    assert_eq!(graph.nodes(), 0..4);
}

#[test]
fn what_is_no_graph_harms_nobody() {
    let mut random = Random(99);
    for round in 0..3000 {
        let nodes = random.below(12) as usize;
        let mut any = |limit: u64| match random.below(12) {
            0 => NONE,
            1 => NONE - 1,
            _ => random.below(limit) as u32,
        };
        let made = Made {
            offsets: (0..nodes).map(|_| any(20)).collect(),
            targets: (0..any(20).min(20)).map(|_| any(12)).collect(),
            group: (0..any(20).min(20)).map(|_| any(4)).collect(),
            class: (0..any(4).min(4)).map(|_| any(12)).collect(),
            silent: Vec::new(),
        };
        everything(&made.graph(), round % 14);
        everything(&made.graph(), NONE);
    }
}

#[test]
fn unsound_graphs_are_reported() {
    let sound = Made::of(3, &[(0, 1), (1, 2)]);
    assert!(sound.graph().is_sound());
    let broken = |change: fn(&mut Made)| {
        let mut made = Made::of(3, &[(0, 1), (1, 2)]);
        made.class = vec![0];
        made.group = vec![0; 3];
        assert!(made.graph().is_sound());
        change(&mut made);
        !made.graph().is_sound()
    };
    assert!(broken(|made| made.offsets[1] = 9));
    assert!(broken(|made| made.offsets[3] = 1));
    assert!(broken(|made| made.targets[0] = 3));
    assert!(broken(|made| made.group[0] = 1));
    assert!(broken(|made| made.group.push(0)));
    assert!(broken(|made| made.class[0] = 3));
}

/// Calls every function.
fn everything(graph: &Graph<'_>, node: u32) {
    graph.is_sound();
    let found = dominators(graph, node);
    let sizes = retained(&found, |_| u64::MAX);
    let set = BitSet::of(graph.len(), [node, 0]);
    retained_of_top_members(&found, &sizes, &set);
    let tree = Tree::of(&found);
    tree.subtree(node);
    tree.contains(node, 0);
    children(&found).row(node);
    depths(&found);
    nearest_common(&found, &[node, 0, NONE]);
    retained_of_set(graph, node, &set);
    reachable_counts(graph, &[node, 0]);
    let paths = shortest_paths(graph, node);
    paths.path(node);
    paths.path(NONE);
    shortest_paths_avoiding(graph, node, &BitSet::of(100, [0, 1, 99]));
    let inbound = Inbound::of(graph);
    inbound.edges(node).count();
    ancestors(&inbound, &set);
    referrers_of(graph, node);
    depth_first(graph, node, 3);
    weak_components(graph);
    strong_components(graph);
}

#[test]
fn sets() {
    let mut random = Random(5);
    for length in [0, 1, 63, 64, 65, 200] {
        let mut set = BitSet::new(length);
        let mut model = std::collections::BTreeSet::new();
        for _ in 0..300 {
            let number = random.below(length as u64 + 3) as u32;
            if random.one_in(3) {
                assert_eq!(set.remove(number), model.remove(&number));
            } else {
                let fits = (number as usize) < length;
                assert_eq!(set.insert(number), fits && model.insert(number));
            }
            assert_eq!(set.contains(number), model.contains(&number));
        }
        assert!(set.iter().eq(model.iter().copied()));
        assert_eq!(set.count(), model.len());
        assert_eq!(set.is_empty(), model.is_empty());
        let other = BitSet::of(100, (0..100).step_by(3));
        let mut changed = set.clone();
        changed.subtract(&other);
        assert!(changed.iter().eq(set.iter().filter(|number| !other.contains(*number))));
        changed = set.clone();
        changed.intersect(&other);
        assert!(changed.iter().eq(set.iter().filter(|number| other.contains(*number))));
        changed = set.clone();
        changed.unite(&other);
        let all = BitSet::of(length, set.iter().chain(other.iter()));
        assert_eq!(changed, all);
        changed.clear();
        assert_eq!(changed, BitSet::new(length));
    }
}

#[test]
fn a_set_is_filled_by_several_threads() {
    for length in [0, 1, 63, 64, 65, 200_000, 200_003] {
        let chosen = |number: u32| number % 3 == 1 || number % 1000 < 70;
        let (set, asked) = BitSet::filled(
            length,
            || 0,
            |asked, number| {
                *asked += 1;
                chosen(number)
            },
        );
        let expected = (0..length as u32).filter(|number| chosen(*number));
        assert_eq!(set, BitSet::of(length, expected));
        assert_eq!(asked.into_iter().sum::<usize>(), length);
    }
}

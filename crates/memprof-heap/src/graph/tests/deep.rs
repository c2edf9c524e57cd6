//! Depth that would overflow a stack or expose a quadratic algorithm.

use super::super::sample_graphs::Made;
use super::super::*;

const NODES: u32 = 2_000_000;

fn check(edges: &[(u32, u32)], extra: bool) -> Vec<u32> {
    let mut made = Made::of(NODES, edges);
    if extra {
        made.group = vec![0; NODES as usize];
        made.class = vec![NODES - 1];
    }
    let graph = made.graph();
    let found = dominators(&graph, 0);
    let sizes = retained(&found, |_| 1);
    assert_eq!(sizes[0], found.order.len() as u64);
    let tree = Tree::of(&found);
    assert_eq!(tree.subtree(0).len(), found.order.len());
    assert_eq!(depths(&found)[0], 0);
    let paths = shortest_paths(&graph, 0);
    assert_eq!(paths.path(NODES - 1).last(), Some(&(NODES - 1)));
    assert_eq!(reachable(&graph, &[0]).count(), NODES as usize);
    assert_eq!(depth_first(&graph, 0, u32::MAX).len(), NODES as usize);
    assert_eq!(weak_components(&graph).sizes, [NODES]);
    let strong = strong_components(&graph);
    assert_eq!(strong.sizes.iter().sum::<u32>(), NODES);
    let inbound = Inbound::of(&graph);
    let set = BitSet::of(NODES as usize, [NODES - 1]);
    assert!(ancestors(&inbound, &set).count() > NODES as usize / 2);
    nearest_common(&found, &[NODES - 1, NODES / 2]);
    found.parent
}

fn list() -> impl Iterator<Item = (u32, u32)> {
    (1..NODES).map(|node| (node - 1, node))
}

fn back() -> impl Iterator<Item = (u32, u32)> {
    (1..NODES).map(|node| (node, node - 1))
}

fn is_list(parent: &[u32]) -> bool {
    parent.iter().zip(0u32..).all(|(parent, node)| *parent == node.wrapping_sub(1))
}

#[test]
fn a_list() {
    assert!(is_list(&check(&list().collect::<Vec<_>>(), false)));
}

#[test]
fn a_ring() {
    assert!(is_list(&check(&list().chain([(NODES - 1, 0)]).collect::<Vec<_>>(), false)));
}

#[test]
fn a_list_linked_both_ways() {
    assert!(is_list(&check(&list().chain(back()).collect::<Vec<_>>(), false)));
}

#[test]
fn a_list_linked_both_ways_that_is_entered_at_both_ends() {
    let edges: Vec<_> = list().chain(back()).chain([(0, NODES - 1)]).collect();
    let parent = check(&edges, false);
    assert!(parent[1..].iter().all(|parent| *parent == 0));
}

#[test]
fn a_list_whose_members_have_a_class() {
    let edges: Vec<_> = list().filter(|edge| edge.1 != NODES - 1).collect();
    let parent = check(&edges, true);
    assert_eq!(parent[NODES as usize - 1], 0);
    assert!(is_list(&parent[..NODES as usize - 1]));
}

#[test]
fn a_list_with_leaves() {
    // Each node of the list still has an unvisited edge when the next one is entered.
    let half = NODES / 2;
    let edges = (1..half).map(|node| (node - 1, node));
    let edges: Vec<_> = edges.chain((0..half).map(|node| (node, node + half))).collect();
    let parent = check(&edges, false);
    assert!((0..half).all(|node| parent[(node + half) as usize] == node));
}

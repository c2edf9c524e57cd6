use super::{BitSet, Graph};

/// The nodes reachable from some nodes, including these.
pub fn reachable(graph: &Graph<'_>, from: &[u32]) -> BitSet {
    let mut reached = BitSet::new(graph.len());
    spread(graph, from, &mut reached, None);
    reached
}

/// The nodes reachable from some nodes without others.
pub fn reachable_without(graph: &Graph<'_>, from: &[u32], without: &BitSet) -> BitSet {
    let mut reached = BitSet::new(graph.len());
    reached.unite(without);
    spread(graph, from, &mut reached, None);
    reached.subtract(without);
    reached
}

/// The nodes that `root` would no longer reach without the members of the set, including the reachable members.
///
/// Exact, by two walks over the graph. See [`retained_of_top_members`](super::retained_of_top_members) for an approximation
/// without walks.
pub fn retained_of_set(graph: &Graph<'_>, root: u32, set: &BitSet) -> BitSet {
    let mut retained = reachable(graph, &[root]);
    retained.subtract(&reachable_without(graph, &[root], set));
    retained
}

/// The number of nodes that each node reaches, including itself: one walk per node.
pub fn reachable_counts(graph: &Graph<'_>, nodes: &[u32]) -> Vec<u64> {
    let mut reached = BitSet::new(graph.len());
    let mut found = Vec::new();
    let counts = nodes.iter().map(|&node| {
        found.clear();
        spread(graph, &[node], &mut reached, Some(&mut found));
        // Makes the cost of a walk depend on the nodes reached, not the size of the graph.
        for node in &found {
            reached.remove(*node);
        }
        found.len() as u64
    });
    counts.collect()
}

/// Adds all nodes reachable through nodes outside the set to the set, and to a list.
fn spread(graph: &Graph<'_>, from: &[u32], reached: &mut BitSet, mut found: Option<&mut Vec<u32>>) {
    let mut stack = Vec::new();
    for &start in from {
        let mut next = reached.insert(start).then_some(start);
        while let Some(node) = next {
            if let Some(found) = &mut found {
                found.push(node);
            }
            stack.extend(graph.edges(node).filter(|target| reached.insert(*target)));
            next = stack.pop();
        }
    }
}

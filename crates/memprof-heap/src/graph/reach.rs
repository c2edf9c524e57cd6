use super::{BitSet, Graph};

/// The nodes that can be reached from some nodes, these included.
pub fn reachable(graph: &Graph<'_>, from: &[u32]) -> BitSet {
    let mut reached = BitSet::new(graph.len());
    spread(graph, from, &mut reached, None);
    reached
}

/// The nodes that can be reached from some nodes if others are not there.
pub fn reachable_without(graph: &Graph<'_>, from: &[u32], without: &BitSet) -> BitSet {
    let mut reached = BitSet::new(graph.len());
    reached.unite(without);
    spread(graph, from, &mut reached, None);
    reached.subtract(without);
    reached
}

/// What `root` would no longer reach if all members of the set were gone; those it reaches now are part of it.
///
/// Exact, by two walks over the graph. See [`retained_of_top_members`](super::retained_of_top_members) for what can be
/// had without.
pub fn retained_of_set(graph: &Graph<'_>, root: u32, set: &BitSet) -> BitSet {
    let mut retained = reachable(graph, &[root]);
    retained.subtract(&reachable_without(graph, &[root], set));
    retained
}

/// How many nodes each node reaches, itself included: one walk a node.
pub fn reachable_counts(graph: &Graph<'_>, nodes: &[u32]) -> Vec<u64> {
    let mut reached = BitSet::new(graph.len());
    let mut found = Vec::new();
    let counts = nodes.iter().map(|&node| {
        found.clear();
        spread(graph, &[node], &mut reached, Some(&mut found));
        // So a walk costs what it reaches, not the size of the graph.
        for node in &found {
            reached.remove(*node);
        }
        found.len() as u64
    });
    counts.collect()
}

/// Adds to a set all that can be reached through nodes that are not in it yet, and to a list what was added.
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

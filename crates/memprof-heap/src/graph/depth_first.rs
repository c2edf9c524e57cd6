use super::{BitSet, Graph};

/// A node reached by a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The node.
    pub node: u32,
    /// The node whose edge led here; none at the start.
    pub parent: Option<u32>,
}

/// Walks depth first over the nodes that are at most `distance` edges away from `start`, each once, edges in order. The distance
/// is that of the shortest path, although the walk may take a longer one.
pub fn depth_first(graph: &Graph<'_>, start: u32, distance: u32) -> Vec<Visit> {
    let near = within(graph, start, distance);
    let mut reached = BitSet::new(graph.len());
    let mut visits = Vec::new();
    let mut stack = Vec::new();
    if near.contains(start) {
        reached.insert(start);
        visits.push(Visit { node: start, parent: None });
        stack.push((start, graph.edges(start)));
    }
    while let Some((parent, edges)) = stack.last_mut() {
        let target = edges.find(|target| near.contains(*target) && reached.insert(*target));
        let Some(node) = target else {
            stack.pop();
            continue;
        };
        visits.push(Visit { node, parent: Some(*parent) });
        stack.push((node, graph.edges(node)));
    }
    visits
}

/// The nodes at most `distance` edges away.
fn within(graph: &Graph<'_>, start: u32, distance: u32) -> BitSet {
    let mut near = BitSet::new(graph.len());
    let mut level = Vec::from_iter(near.insert(start).then_some(start));
    for _ in 0..distance {
        let mut next = Vec::new();
        for &node in &level {
            next.extend(graph.edges(node).filter(|target| near.insert(*target)));
        }
        if next.is_empty() {
            break;
        }
        level = next;
    }
    near
}

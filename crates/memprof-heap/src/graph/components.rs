use super::{Graph, NONE};

/// The components of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Components {
    /// The component of each node.
    pub of: Vec<u32>,
    /// The number of nodes in each component.
    pub sizes: Vec<u32>,
}

/// The weakly connected components, numbered in order of their lowest nodes.
pub fn weak_components(graph: &Graph<'_>) -> Components {
    // Each node points to a lower one of its component; the lowest points to itself.
    let mut low: Vec<u32> = graph.nodes().collect();
    for node in graph.nodes() {
        for target in graph.edges(node) {
            if (target as usize) < low.len() {
                let one = lowest(&mut low, node);
                let other = lowest(&mut low, target);
                low[one.max(other) as usize] = one.min(other);
            }
        }
    }
    let mut sizes = Vec::new();
    for node in 0..low.len() {
        let above = low[node] as usize;
        // Lower nodes already have the number of their component.
        low[node] = if above == node {
            sizes.push(0);
            sizes.len() as u32 - 1
        } else {
            low[above]
        };
        sizes[low[node] as usize] += 1;
    }
    Components { of: low, sizes }
}

fn lowest(low: &mut [u32], node: u32) -> u32 {
    let mut at = node;
    while low[at as usize] != at {
        let above = low[low[at as usize] as usize];
        low[at as usize] = above;
        at = above;
    }
    at
}

/// The strongly connected components, by Tarjan's algorithm. A component has a lower number than those that reach it.
pub fn strong_components(graph: &Graph<'_>) -> Components {
    let mut parts = Components { of: vec![NONE; graph.len()], sizes: Vec::new() };
    // The lowest number that each node is known to reach; initially its own.
    let mut low = vec![NONE; graph.len()];
    let mut entered = 0;
    // Nodes of incomplete components, in the order in which they were left.
    let mut waiting: Vec<u32> = Vec::new();
    let mut stack = Vec::new();
    for start in graph.nodes() {
        let mut next = (low[start as usize] == NONE).then_some(start);
        loop {
            if let Some(node) = next {
                low[node as usize] = entered;
                stack.push((node, entered, graph.edges(node)));
                entered += 1;
            }
            let Some((node, number, edges)) = stack.last_mut() else {
                break;
            };
            let (node, number) = (*node, *number);
            // New targets end the search; targets in complete components are skipped.
            next = edges.find(|target| match low.get(*target as usize) {
                Some(&NONE) => true,
                Some(&reached) if parts.of[*target as usize] == NONE => {
                    low[node as usize] = low[node as usize].min(reached);
                    false
                }
                _ => false,
            });
            if next.is_some() {
                continue;
            }
            stack.pop();
            let reached = low[node as usize];
            if let Some((parent, ..)) = stack.last() {
                let parent = &mut low[*parent as usize];
                *parent = (*parent).min(reached);
            }
            waiting.push(node);
            if reached == number {
                let part = parts.sizes.len() as u32;
                // The nodes left since this one was entered.
                let members = waiting.iter().rev();
                let size = members.take_while(|member| low[**member as usize] >= number);
                let size = size.count();
                for member in waiting.drain(waiting.len() - size..) {
                    parts.of[member as usize] = part;
                }
                parts.sizes.push(size as u32);
            }
        }
    }
    parts
}

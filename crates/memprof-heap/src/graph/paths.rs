use rustc_hash::FxHashMap;

use super::{BitSet, Graph, NONE, Stop, Stopped};

/// Shortest paths from a root to all nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    /// The node before each node on its path; [`NONE`] for the root and for nodes that it does not reach.
    pub parent: Vec<u32>,
    /// How many edges the longest of the paths has.
    pub longest: u32,
    root: u32,
}

impl Paths {
    /// The path to a node, from the root on; empty if there is none.
    pub fn path(&self, node: u32) -> Vec<u32> {
        let before = |node: &u32| {
            let parent = *self.parent.get(*node as usize)?;
            (parent != NONE).then_some(parent)
        };
        let mut path: Vec<u32> = std::iter::successors(Some(node), before).collect();
        if path.last() != Some(&self.root) {
            return Vec::new();
        }
        path.reverse();
        path
    }
}

/// Finds a shortest path to each node, breadth first. Of nodes that would do as the one before, it is the lowest.
pub fn shortest_paths(graph: &Graph<'_>, root: u32) -> Paths {
    shortest_paths_avoiding(graph, root, &BitSet::default())
}

/// The same, for paths that may end at the nodes to be avoided, but not lead through them. The root itself is not avoided.
pub fn shortest_paths_avoiding(graph: &Graph<'_>, root: u32, avoid: &BitSet) -> Paths {
    let kept = FxHashMap::default();
    shortest_paths_unless(graph, root, avoid, &kept, Stop::default()).expect("nothing stops it")
}

/// The same as [`shortest_paths_avoiding`], unless it is stopped. `kept` has edges out of nodes to be avoided that paths may take.
///
/// # Errors
/// If it is.
pub fn shortest_paths_unless(
    graph: &Graph<'_>,
    root: u32,
    avoid: &BitSet,
    kept: &FxHashMap<u32, Vec<u32>>,
    stop: Stop<'_>,
) -> Result<Paths, Stopped> {
    let mut paths = Paths {
        parent: vec![NONE; graph.len()],
        longest: 0,
        root: NONE,
    };
    if root as usize >= graph.len() {
        return Ok(paths);
    }
    paths.root = root;
    let mut level = vec![root];
    let mut next = Vec::new();
    let mut visited = 0;
    loop {
        for &node in &level {
            stop.at(visited)?;
            visited += 1;
            let mut take = |target: u32| match paths.parent.get_mut(target as usize) {
                Some(parent) if *parent == NONE && target != root => {
                    *parent = node;
                    next.push(target);
                }
                _ => {}
            };
            if node == root || !avoid.contains(node) {
                graph.edges(node).for_each(take);
            } else if let Some(kept) = kept.get(&node) {
                kept.iter().for_each(|&target| take(target));
            }
        }
        if next.is_empty() {
            return Ok(paths);
        }
        paths.longest += 1;
        sort(&mut next, graph.len());
        level.clear();
        std::mem::swap(&mut level, &mut next);
    }
}

/// Sorts different numbers below `limit`: through a set if they are so many that this is faster.
fn sort(nodes: &mut Vec<u32>, limit: usize) {
    if nodes.len() < limit / 64 {
        nodes.sort_unstable();
        return;
    }
    let set = BitSet::of(limit, nodes.drain(..));
    nodes.extend(set.iter());
}

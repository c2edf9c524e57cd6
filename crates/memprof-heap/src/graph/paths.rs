use rustc_hash::FxHashMap;

use super::{BitSet, Graph, NONE, Stop, Stopped};

/// Shortest paths from a root to all nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    /// The preceding node on each node's path; [`NONE`] for the root and for nodes that it does not reach.
    pub parent: Vec<u32>,
    /// The number of edges on the longest path.
    pub longest: u32,
    root: u32,
}

impl Paths {
    /// The path from the root to a node; empty if the root does not reach it.
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

/// Finds a shortest path to each node, breadth first. Among possible preceding nodes, picks the lowest.
pub fn shortest_paths(graph: &Graph<'_>, root: u32) -> Paths {
    shortest_paths_avoiding(graph, root, &BitSet::default())
}

/// The same, for paths that may end at the avoided nodes, but not lead through them. The root itself is never avoided.
pub fn shortest_paths_avoiding(graph: &Graph<'_>, root: u32, avoid: &BitSet) -> Paths {
    let ways = Ways { graph: *graph, avoid, more: &FxHashMap::default() };
    Paths::find(root, ways, Stop::default()).expect("nothing stops it")
}

/// The part of a graph that paths may use.
#[derive(Clone, Copy)]
pub struct Ways<'a> {
    /// The graph.
    pub graph: Graph<'a>,
    /// Nodes that paths do not lead through.
    pub avoid: &'a BitSet,
    /// Further edges, including edges out of avoided nodes.
    pub more: &'a FxHashMap<u32, Vec<u32>>,
}

impl Paths {
    /// The same as [`shortest_paths_avoiding`], unless it is stopped.
    ///
    /// # Errors
    /// If it is.
    pub fn find(root: u32, ways: Ways<'_>, stop: Stop<'_>) -> Result<Paths, Stopped> {
        let mut paths = Paths { parent: vec![NONE; ways.graph.len()], longest: 0, root: NONE };
        if (root as usize) < ways.graph.len() {
            paths.root = root;
            paths.extend(vec![root], ways, stop)?;
        }
        Ok(paths)
    }

    /// Continues from reached nodes to unreached ones, by other edges.
    ///
    /// # Errors
    /// If it is stopped.
    pub fn extend(
        &mut self,
        mut level: Vec<u32>,
        ways: Ways<'_>,
        stop: Stop<'_>,
    ) -> Result<(), Stopped> {
        let Ways { graph, avoid, more } = ways;
        let (root, mut next, mut visited) = (self.root, Vec::new(), 0);
        let reached = |paths: &Paths, node: u32| {
            node == root || paths.parent.get(node as usize).is_some_and(|&one| one != NONE)
        };
        level.retain(|&node| reached(self, node));
        loop {
            for &node in &level {
                stop.at(visited)?;
                visited += 1;
                let mut take = |target: u32| match self.parent.get_mut(target as usize) {
                    Some(parent) if *parent == NONE && target != root => {
                        *parent = node;
                        next.push(target);
                    }
                    _ => {}
                };
                if node == root || !avoid.contains(node) {
                    graph.edges(node).for_each(&mut take);
                }
                if let Some(more) = more.get(&node) {
                    more.iter().for_each(|&target| take(target));
                }
            }
            if next.is_empty() {
                return Ok(());
            }
            self.longest += 1;
            sort(&mut next, graph.len());
            level.clear();
            std::mem::swap(&mut level, &mut next);
        }
    }
}

/// Sorts distinct numbers below `limit`, through a bit set if there are enough of them to make it faster.
fn sort(nodes: &mut Vec<u32>, limit: usize) {
    if nodes.len() < limit / 64 {
        nodes.sort_unstable();
        return;
    }
    let set = BitSet::of(limit, nodes.drain(..));
    nodes.extend(set.iter());
}

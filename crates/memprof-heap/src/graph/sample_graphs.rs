//! For tests: generated graphs, and slow but obviously correct algorithms.

use super::{BitSet, Extra, Graph, NONE};
pub use memprof_dump::testing::Random;

/// A graph that owns its rows.
#[derive(Default)]
pub struct Made {
    pub offsets: Vec<u32>,
    pub targets: Vec<u32>,
    pub group: Vec<u32>,
    pub class: Vec<u32>,
    pub silent: Vec<u32>,
}

impl Made {
    /// The graph with these edges.
    pub fn of(nodes: u32, edges: &[(u32, u32)]) -> Made {
        let mut edges = edges.to_vec();
        edges.sort_by_key(|edge| edge.0);
        let ends = (0..=nodes).map(|node| edges.partition_point(|edge| edge.0 < node) as u32);
        Made {
            offsets: ends.collect(),
            targets: edges.iter().map(|edge| edge.1).collect(),
            ..Made::default()
        }
    }

    pub fn graph(&self) -> Graph<'_> {
        Graph {
            offsets: &self.offsets,
            targets: &self.targets,
            extra: Extra { group: &self.group, class: &self.class },
            silent: &self.silent,
        }
    }
}

/// The number of graphs that tests check.
pub const GRAPHS: u64 = 4000;

/// A small graph of one of many shapes, some with extra edges, some with silent nodes; and a root.
pub fn make(seed: u64) -> (Made, u32) {
    let mut random = Random(seed * 2 + 1);
    for _ in 0..5 {
        random.below(1);
    }
    let nodes = 1 + random.below(if seed % 10 == 0 { 60 } else { 14 }) as u32;
    let mut edges = shape(&mut random, seed, nodes);
    if random.one_in(3) {
        // Renames the nodes, so that their order carries no information.
        let mut names: Vec<u32> = (0..nodes).collect();
        for place in (1..nodes as usize).rev() {
            names.swap(place, random.below(place as u64 + 1) as usize);
        }
        let name = |node: u32| names[node as usize];
        edges.iter_mut().for_each(|edge| *edge = (name(edge.0), name(edge.1)));
    }
    let mut made = Made::of(nodes, &edges);
    if random.one_in(2) {
        let groups = 1 + random.below(4);
        let class = |random: &mut Random| match random.below(5) {
            0 => NONE,
            _ => random.below(nodes.into()) as u32,
        };
        made.class = (0..groups).map(|_| class(&mut random)).collect();
        let known = random.below(u64::from(nodes) + 1);
        made.group = (0..known).map(|_| random.below(groups) as u32).collect();
    }
    if random.one_in(4) {
        let silent = random.below(3);
        made.silent = (0..silent).map(|_| random.below(nodes.into()) as u32).collect();
    }
    let root = match random.below(3) {
        0 => random.below(nodes.into()) as u32,
        _ => 0,
    };
    (made, root)
}

fn shape(random: &mut Random, seed: u64, nodes: u32) -> Vec<(u32, u32)> {
    let mut any = {
        let mut inner = Random(seed * 4 + 3);
        move || inner.below(nodes.into()) as u32
    };
    let list = (1..nodes).map(|node| (node - 1, node));
    let back = (1..nodes).map(|node| (node, node - 1));
    let mut edges: Vec<(u32, u32)> = match random.below(10) {
        0 => list.collect(),
        1 => list.chain([(nodes - 1, 0)]).collect(),
        2 => list.chain(back).collect(),
        3 => (1..nodes).map(|node| (0, node)).collect(),
        4 => (1..nodes).map(|node| (node, 0)).collect(),
        // All nodes of a list and their mirror images: every loop has several entries.
        5 => list.chain(back).chain((1..nodes).map(|node| (0, node))).collect(),
        // The worst case for iterative algorithms: each node is also entered from behind.
        6 => {
            let half = nodes / 2;
            let ladder = (0..half).flat_map(|step| [(step, step + half), (step + half, step)]);
            list.chain(ladder).collect()
        }
        7 => (1..nodes).map(|node| (node / 2, node)).collect(),
        8 => (0..nodes * nodes / 2).map(|_| (any(), any())).collect(),
        _ => Vec::new(),
    };
    let more = match random.below(4) {
        0 => 0,
        1 => nodes / 4,
        2 => nodes,
        _ => 2 * nodes,
    };
    edges.extend((0..more).map(|_| (any(), any())));
    if random.one_in(4) {
        edges.extend(edges.clone().iter().step_by(2));
    }
    edges
}

/// The nodes reached without some nodes: scans all edges until nothing is added.
pub fn reached(graph: &Graph<'_>, from: u32, gone: &BitSet) -> BitSet {
    let mut reached = BitSet::new(graph.len());
    if !gone.contains(from) {
        reached.insert(from);
    }
    loop {
        let before = reached.count();
        for node in graph.nodes().filter(|node| !gone.contains(*node)) {
            if reached.contains(node) {
                let targets = graph.edges(node).filter(|target| !gone.contains(*target));
                targets.for_each(|target| {
                    reached.insert(target);
                });
            }
        }
        if reached.count() == before {
            return reached;
        }
    }
}

/// The nodes lost without each node, including itself; empty for nodes that the root does not reach.
pub fn lost(graph: &Graph<'_>, root: u32) -> Vec<BitSet> {
    let all = reached(graph, root, &BitSet::default());
    let lost = graph.nodes().map(|node| {
        if !all.contains(node) {
            return BitSet::new(graph.len());
        }
        let mut lost = all.clone();
        lost.subtract(&reached(graph, root, &BitSet::of(graph.len(), [node])));
        lost
    });
    lost.collect()
}

/// The immediate dominators, from the lost nodes: of a node's dominators, the one that loses the fewest.
pub fn parents(lost: &[BitSet]) -> Vec<u32> {
    let parents = (0..lost.len() as u32).map(|node| {
        let above = (0..lost.len() as u32).filter(|other| *other != node);
        let above = above.filter(|other| lost[*other as usize].contains(node));
        above.min_by_key(|other| lost[*other as usize].count()).unwrap_or(NONE)
    });
    parents.collect()
}

/// The immediate dominators by the iterative algorithm of Cooper, Harvey and Kennedy.
pub fn iterative(graph: &Graph<'_>, root: u32) -> Vec<u32> {
    let mut done = Vec::new();
    let mut seen = BitSet::of(graph.len(), [root]);
    let mut stack = vec![(root, graph.edges(root))];
    while let Some((node, edges)) = stack.last_mut() {
        match edges.find(|target| seen.insert(*target)) {
            Some(target) => stack.push((target, graph.edges(target))),
            None => {
                done.push(*node);
                stack.pop();
            }
        }
    }
    let mut number = vec![0; graph.len()];
    for (node, place) in done.iter().zip(0..) {
        number[*node as usize] = place;
    }
    let mut before = vec![Vec::new(); graph.len()];
    for &node in &done {
        graph.edges(node).for_each(|target| before[target as usize].push(node));
    }
    let mut parent = vec![NONE; graph.len()];
    parent[root as usize] = root;
    let mut changed = true;
    while changed {
        changed = false;
        for &node in done.iter().rev().skip(1) {
            let mut common = NONE;
            for &other in &before[node as usize] {
                if parent[other as usize] == NONE {
                    continue;
                }
                let mut one = common;
                let mut two = other;
                while one != NONE && one != two {
                    if number[one as usize] < number[two as usize] {
                        one = parent[one as usize];
                    } else {
                        two = parent[two as usize];
                    }
                }
                common = two;
            }
            changed |= parent[node as usize] != common;
            parent[node as usize] = common;
        }
    }
    parent[root as usize] = NONE;
    parent
}

/// The number of edges on the shortest paths, by relaxing all edges repeatedly.
pub fn distances(graph: &Graph<'_>, root: u32, avoid: &BitSet) -> Vec<u32> {
    let mut distances = vec![NONE; graph.len()];
    distances[root as usize] = 0;
    for round in 0..graph.len() as u32 {
        for node in graph.nodes() {
            if distances[node as usize] != round {
                continue;
            }
            if node == root || !avoid.contains(node) {
                for target in graph.edges(node) {
                    let distance = &mut distances[target as usize];
                    *distance = (*distance).min(round + 1);
                }
            }
        }
    }
    distances
}

/// Some set of nodes.
pub fn some(random: &mut Random, graph: &Graph<'_>) -> BitSet {
    let share = 1 + random.below(6);
    let nodes = graph.nodes().filter(|_| random.one_in(share));
    BitSet::of(graph.len(), nodes)
}

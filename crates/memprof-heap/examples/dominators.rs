//! `dominators [NODES [EDGES [LOCAL]]]` measures the CPU time of computing dominators and what derives from them on a generated
//! graph, with EDGES per hundred nodes, LOCAL percent of which lead to a nearby node.
//!
//! `dominators FILE` reads a graph of little-endian `u32` numbers: the counts of nodes, edges and groups, the root; then offsets,
//! targets, the group of each node, and the class of each group.

use std::fs;

use memprof_heap::graph::{
    Extra, Graph, Inbound, Tree, children, dominators, reachable, retained, shortest_paths,
};

#[derive(Default)]
struct Made {
    offsets: Vec<u32>,
    targets: Vec<u32>,
    group: Vec<u32>,
    class: Vec<u32>,
    root: u32,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u32| -> u32 {
        let argument = arguments.get(at).and_then(|number| number.parse().ok());
        argument.unwrap_or(default)
    };
    let read = arguments.first().and_then(|path| fs::read(path).ok());
    let made = match read {
        Some(bytes) => parse(&bytes),
        None => make(number(0, 2_800_000), number(1, 225), number(2, 80)),
    };
    let mut graph = Graph { offsets: &made.offsets, targets: &made.targets, ..Graph::default() };
    println!("{} nodes, {} edges", graph.len(), graph.targets.len());
    measure(&graph, made.root, "rows");
    graph.extra = Extra { group: &made.group, class: &made.class };
    measure(&graph, made.root, "rows and extra edges");

    let dominators = dominators(&graph, made.root);
    timed("tree", || Tree::of(&dominators));
    timed("retained", || retained(&dominators, |node| node.into()));
    timed("children", || children(&dominators));
    timed("inbound", || Inbound::of(&graph));
    timed("shortest paths", || shortest_paths(&graph, made.root));
    timed("reachable", || reachable(&graph, &[made.root]));
}

fn measure(graph: &Graph<'_>, root: u32, name: &str) {
    let found = timed(name, || dominators(graph, root));
    let peak = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = peak.lines().find(|line| line.starts_with("VmHWM"));
    let sum = found
        .parent
        .iter()
        .fold(0u64, |sum, parent| sum.wrapping_mul(31).wrapping_add((*parent).into()));
    let reached = found.order.len();
    println!("  {reached} reached, sum {sum:x}, {}", peak.unwrap_or(""));
}

fn timed<T>(name: &str, work: impl FnOnce() -> T) -> T {
    let begin = processor_time();
    let result = work();
    let seconds = (processor_time() - begin) as f64 / 1e9;
    println!("{name}: {seconds:.3} s");
    result
}

/// The nanoseconds that this thread ran, as other processes may compete for the CPU.
fn processor_time() -> u64 {
    let statistics = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = statistics.split(' ').next();
    first.and_then(|time| time.parse().ok()).unwrap_or(0)
}

fn parse(bytes: &[u8]) -> Made {
    let words = bytes.chunks_exact(4);
    let mut numbers = words.map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    let [nodes, edges, groups, root] = [(); 4].map(|()| numbers.next().unwrap_or(0));
    let mut take = |count: u32| numbers.by_ref().take(count as usize).collect();
    Made {
        offsets: take(nodes + 1),
        targets: take(edges),
        group: take(nodes),
        class: take(groups),
        root,
    }
}

/// A fully reachable graph: each node is reached from an earlier one, as in a heap that grew.
fn make(nodes: u32, edges: u32, local: u32) -> Made {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut below = |limit: u32| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as u32 % limit.max(1)
    };
    let mut made = Made::default();
    let edges = (u64::from(nodes) * u64::from(edges) / 100) as u32;
    let mut sources = Vec::new();
    let mut targets = Vec::new();
    for edge in 0..edges {
        let near = below(100) < local;
        let (source, target) = if edge < nodes.saturating_sub(1) {
            let target = edge + 1;
            let source = match near {
                true => target - 1 - below(target.min(1000)),
                false => below(target),
            };
            (source, target)
        } else {
            let source = below(nodes);
            let target = match near {
                true => source.saturating_sub(500) + below(1000),
                false => below(nodes),
            };
            (source, target.min(nodes - 1))
        };
        sources.push(source);
        targets.push(target);
    }
    made.offsets = vec![0; nodes as usize + 1];
    for source in &sources {
        made.offsets[*source as usize + 1] += 1;
    }
    for node in 0..nodes as usize {
        made.offsets[node + 1] += made.offsets[node];
    }
    let mut places = made.offsets.clone();
    made.targets = vec![0; edges as usize];
    for (source, target) in sources.iter().zip(targets) {
        made.targets[places[*source as usize] as usize] = target;
        places[*source as usize] += 1;
    }
    let groups = 1000.min(nodes);
    made.class = (0..groups).map(|group| group * (nodes / groups.max(1))).collect();
    made.group = (0..nodes).map(|_| below(groups).min(below(groups))).collect();
    made
}

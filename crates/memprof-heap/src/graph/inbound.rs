use super::{BitSet, Graph, Rows};

/// The referrers of all nodes. Extra edges are separate: a class has one from each of its instances.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inbound {
    /// The nodes whose rows contain a node, once for each occurrence, in ascending order.
    pub referrers: Rows,
    /// The members of each group, in ascending order.
    pub members: Rows,
    /// The target of each group that has one, with the group, in order.
    groups: Vec<(u32, u32)>,
}

impl Inbound {
    /// Reverses a graph.
    pub fn of(graph: &Graph<'_>) -> Inbound {
        let sources = graph.nodes().rev();
        let edges = sources.flat_map(|node| graph.row(node).iter().map(move |to| (*to, node)));
        let referrers = Rows::sort(graph.len(), edges);
        let classes = graph.extra.class;
        let sources = graph.nodes().rev();
        let members = sources.filter_map(|node| Some((graph.extra_of(node)?.0, node)));
        let members = Rows::sort(classes.len(), members);
        let groups = classes.iter().copied().zip(0..);
        let mut groups: Vec<(u32, u32)> =
            groups.filter(|pair| !members.row(pair.1).is_empty()).collect();
        groups.sort_unstable();
        Inbound { referrers, members, groups }
    }

    /// The nodes whose extra edge leads to a node, in ascending order within each group.
    pub fn instances(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let first = self.groups.partition_point(|(class, _)| *class < node);
        let groups = self.groups[first..].iter();
        let groups = groups.take_while(move |(class, _)| *class == node);
        groups.flat_map(|(_, group)| self.members.row(*group).iter().copied())
    }

    /// All referrers of a node, once for each edge: through their rows, then through their extra edges.
    pub fn edges(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let referrers = self.referrers.row(node).iter().copied();
        referrers.chain(self.instances(node))
    }
}

/// The referrers of a node, through their rows or their extra edges; each once, in ascending order.
///
/// Scans all edges: for single queries, which do not justify reversing the graph.
pub fn referrers_of(graph: &Graph<'_>, node: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let hits = graph.targets.iter().zip(0u32..);
    for (_, place) in hits.filter(|(target, _)| **target == node) {
        // The last row that begins here or before; preceding empty rows also begin here.
        let source = graph.offsets.partition_point(|start| *start <= place);
        let source = source.saturating_sub(1) as u32;
        if graph.row(source).contains(&node) && found.last() != Some(&source) {
            found.push(source);
        }
    }
    let classes = graph.extra.class.iter();
    let hit: Vec<bool> = classes.map(|class| *class == node).collect();
    if hit.contains(&true) {
        let groups = graph.extra.group.iter().zip(graph.nodes());
        let groups = groups.filter(|(group, _)| hit.get(**group as usize) == Some(&true));
        let instances = groups.map(|(_, source)| source);
        found.extend(instances.filter(|source| graph.extra_of(*source).is_some()));
        found.sort_unstable();
        found.dedup();
    }
    found
}

/// The nodes that reach any member of a set, including the members.
pub fn ancestors(inbound: &Inbound, set: &BitSet) -> BitSet {
    let mut reached = BitSet::new(inbound.referrers.len());
    reached.unite(set);
    let mut stack: Vec<u32> = reached.iter().collect();
    while let Some(node) = stack.pop() {
        stack.extend(inbound.edges(node).filter(|source| reached.insert(*source)));
    }
    reached
}

//! `neighbours`: the objects around an object and the references between them, as a graph small enough to draw.
//!
//! The graph begins with the object's referrers and references, those that retain most first, and adds a few of their
//! neighbours while there is room. Any object of the graph can be expanded to add its own neighbours.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::describe::{Described, Describer, Named};
use super::{Error, Limit};
use memprof_heap::graph::{BitSet, Graph};
use memprof_heap::{FOLDED, Heap, NONE, Sizes};

/// Neighbours of objects that are not expanded.
const FEW: usize = 2;
/// Maximum number of expanded objects: each requires a scan of all references.
const EXPANDED: usize = 12;

/// `neighbours`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The object.
    pub of: Named,
    /// Objects to expand, in the order of the requests.
    #[serde(default)]
    pub expand: Vec<Named>,
    /// Maximum number of nodes, without those added by expansion.
    #[serde(default)]
    pub limit: Limit<60>,
    /// Maximum number of neighbours on each side of an expanded object.
    #[serde(default)]
    pub each: Limit<10>,
}

/// An object of the graph.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Node {
    /// The object.
    #[serde(flatten)]
    pub object: Described,
    /// Steps from the requested object: negative for its referrers, positive for its references.
    pub level: i32,
    /// Whether it was expanded.
    pub expanded: bool,
    /// Referrers that are not in the graph.
    pub more_referrers: usize,
    /// Referenced objects that are not in the graph.
    pub more_references: usize,
}

/// References from one object of the graph to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Edge {
    /// Number of the referrer.
    pub from: u32,
    /// Number of the referenced object.
    pub to: u32,
    /// The most informative label of these references.
    pub label: Option<String>,
    /// Number of references.
    pub references: usize,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Number of the requested object.
    pub of: u32,
    /// Nodes, the requested object first. References to classes are omitted.
    pub nodes: Vec<Node>,
    /// Edges, ordered by their ends.
    pub edges: Vec<Edge>,
}

impl Question {
    /// The answer.
    ///
    /// # Errors
    /// If the object does not exist, too many objects are expanded, or the index cannot be read.
    pub fn answer(&self, heap: &Heap) -> Result<Answer, Error> {
        let of = self.of.find(heap)?;
        let expand: Vec<u32> =
            self.expand.iter().map(|named| named.find(heap)).collect::<Result<_, _>>()?;
        if expand.len() > EXPANDED {
            return Err(Error::Question(format!(
                "at most {EXPANDED} objects can be expanded, not {}",
                expand.len()
            )));
        }
        let each = self.each.0;
        let mut growing = Growing::new(heap, of, self.limit.0.max(1))?;
        growing.expand(of, each);
        growing.expand_all(FEW);
        growing.unbound();
        for &node in &expand {
            growing.expand(node, each);
        }
        let (edges, more) = growing.edges();
        let describer = Describer::new(heap)?;
        let nodes = growing.nodes.iter().zip(more);
        let nodes = nodes.map(|(&(id, level), (more_referrers, more_references))| Node {
            object: describer.describe(id),
            level,
            expanded: id == of || expand.contains(&id),
            more_referrers,
            more_references,
        });
        let edges = edges.into_iter().map(|((from, to), references)| Edge {
            from,
            to,
            label: describer.words.label(from, to),
            references,
        });
        Ok(Answer { of, nodes: nodes.collect(), edges: edges.collect() })
    }
}

/// Pairs of nodes, with the number of references from one to the other.
type Edges = BTreeMap<(u32, u32), usize>;

/// Numbers of a node's referrers and references outside the graph.
type More = (usize, usize);

/// A graph under construction.
struct Growing<'h> {
    graph: Graph<'h>,
    flags: &'h [u32],
    retained: &'h Sizes,
    /// The referrer of each node on a shortest path from the roots: it is added before the other referrers.
    steps: &'h [u32],
    root: u32,
    limit: usize,
    /// Nodes with their level, in the order in which they were added.
    nodes: Vec<(u32, i32)>,
    levels: FxHashMap<u32, i32>,
}

impl<'h> Growing<'h> {
    fn new(heap: &'h Heap, of: u32, limit: usize) -> io::Result<Growing<'h>> {
        Ok(Growing {
            graph: heap.graph(&[])?,
            flags: heap.flag_words()?,
            retained: heap.retained()?,
            steps: heap.steps()?,
            root: heap.root(),
            limit,
            nodes: vec![(of, 0)],
            levels: FxHashMap::from_iter([(of, 0)]),
        })
    }

    /// Removes the limit on the number of nodes.
    fn unbound(&mut self) {
        self.limit = usize::MAX;
    }

    /// Adds the neighbours of a node, if it is in the graph.
    fn expand(&mut self, node: u32, each: usize) {
        if self.levels.contains_key(&node) {
            self.referrers(&[node], each);
            self.references(node, each);
        }
    }

    /// Adds a few neighbours of the current nodes: referrers of referrers, and references of references.
    fn expand_all(&mut self, few: usize) {
        let ring = self.nodes.clone();
        let above: Vec<u32> = ring.iter().filter(|node| node.1 < 0).map(|node| node.0).collect();
        self.referrers(&above, few);
        for &(node, _) in ring.iter().filter(|node| node.1 > 0) {
            self.references(node, few);
        }
    }

    fn references(&mut self, node: u32, each: usize) {
        let level = self.levels[&node] + 1;
        let shown = |&target: &u32| target != node && self.is_shown(target);
        let targets = self.graph.row(node).iter().copied().filter(shown);
        for target in first(targets, each, |target| Reverse(self.retained.get(target))) {
            self.put(target, level);
        }
    }

    /// Adds the referrers of several nodes at once, in a single scan of all references.
    fn referrers(&mut self, nodes: &[u32], each: usize) {
        let mut found = self.inbound(nodes);
        for node in nodes {
            let level = self.levels[node] - 1;
            let sources = found.remove(node).unwrap_or_default().into_iter();
            let step = self.steps.get(*node as usize).copied().unwrap_or(NONE);
            let rank = |from| (from != step, Reverse(self.retained.get(from)));
            for from in first(sources, each, rank) {
                self.put(from, level);
            }
        }
    }

    /// The referrers of nodes, each once. Scans the targets of all references, as most of them are skipped: iterating over the
    /// rows takes longer.
    fn inbound(&self, nodes: &[u32]) -> FxHashMap<u32, Vec<u32>> {
        let mut found: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        if nodes.is_empty() {
            return found;
        }
        let wanted = BitSet::of(self.root as usize + 1, nodes.iter().copied());
        let targets = self.graph.targets.iter().zip(0u32..);
        for (&target, place) in targets.filter(|(target, _)| wanted.contains(**target)) {
            // The last row that begins at or before this place: empty rows before it begin there, too.
            let starts = self.graph.offsets.partition_point(|&start| start <= place);
            let from = starts.saturating_sub(1) as u32;
            // A row that is still empty does not count.
            if target == from || !self.is_shown(from) || self.graph.row(from).is_empty() {
                continue;
            }
            let sources = found.entry(target).or_default();
            if sources.last() != Some(&from) {
                sources.push(from);
            }
        }
        found
    }

    fn put(&mut self, node: u32, level: i32) {
        if self.nodes.len() < self.limit && !self.levels.contains_key(&node) {
            self.levels.insert(node, level);
            self.nodes.push((node, level));
        }
    }

    fn is_shown(&self, node: u32) -> bool {
        let flags = self.flags.get(node as usize).copied().unwrap_or(0);
        node != self.root && flags & FOLDED.0 == 0
    }

    /// The references between the nodes, and the number of each node's neighbours outside the graph.
    fn edges(&self) -> (Edges, Vec<More>) {
        let nodes: Vec<u32> = self.nodes.iter().map(|node| node.0).collect();
        let mut found = self.inbound(&nodes);
        let mut edges = Edges::new();
        let mut more = Vec::with_capacity(nodes.len());
        let mut others = BitSet::new(self.root as usize + 1);
        for node in nodes {
            let mut references = 0;
            for &target in self.graph.row(node) {
                if target == node || !self.is_shown(target) {
                    continue;
                }
                if self.levels.contains_key(&target) {
                    *edges.entry((node, target)).or_default() += 1;
                } else if others.insert(target) {
                    references += 1;
                }
            }
            for &target in self.graph.row(node) {
                others.remove(target);
            }
            let sources = found.remove(&node).unwrap_or_default();
            let sources = sources.iter().filter(|from| !self.levels.contains_key(from));
            more.push((sources.count(), references));
        }
        (edges, more)
    }
}

/// The first nodes by rank, each once; equal ones by number. A large array has millions of neighbours.
fn first<R: Ord + Copy>(
    nodes: impl Iterator<Item = u32>,
    count: usize,
    rank: impl Fn(u32) -> R,
) -> Vec<u32> {
    let mut kept: BTreeSet<(R, u32)> = BTreeSet::new();
    for node in nodes {
        let entry = (rank(node), node);
        if kept.len() < count {
            kept.insert(entry);
        } else if kept.last().is_some_and(|last| entry < *last) && kept.insert(entry) {
            kept.pop_last();
        }
    }
    kept.into_iter().map(|(_, node)| node).collect()
}

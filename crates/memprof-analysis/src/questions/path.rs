//! Paths from GC roots to objects: shortest paths, separate or merged into a tree.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::describe::{Described, Describer, Named};
use super::list::{List, Measure, Measured, Page};
use super::select::Selection;
use super::words::ANY;
use super::{Error, Limit, Phrase};
use memprof_heap::{Heap, NONE};

/// `path`: the shortest path from a root to an object, or the paths to several, merged into a tree.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// The object.
    pub to: Option<Named>,
    /// Alternatively, a filter: paths to all matching objects, as a tree.
    pub r#where: Option<String>,
    /// Maximum number of branches at each node of the tree.
    pub limit: Limit<8>,
}

/// A step of a path.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// Label of the reference from the previous step.
    pub label: Option<String>,
    /// The object, or the root.
    #[serde(flatten)]
    pub object: Described,
}

/// A path.
#[derive(Clone, Debug, Serialize)]
pub struct Path {
    /// From the root to the object; empty if no root reaches it.
    pub steps: Vec<Step>,
    /// Number of steps omitted in the middle of a long path.
    pub omitted: usize,
    /// In words: `$cache -> Hash["user:42"] -> Session@user -> String "Ann"`.
    pub sentence: String,
    /// The same, with source locations as separate parts.
    pub phrase: Phrase,
}

/// Paths with the same beginning.
#[derive(Clone, Debug, Serialize)]
pub struct Branch {
    /// Class, or the name of a class or module.
    pub text: String,
    /// Label of the reference to it.
    pub label: Option<String>,
    /// Objects at this place.
    pub objects: usize,
    /// Number of paths through it.
    pub paths: usize,
    /// Joint retained size of the objects at the ends of these paths.
    pub retained: u64,
    /// One of the objects.
    pub example: Option<String>,
    /// The next branches, the largest first.
    pub branches: Vec<Branch>,
    /// Branches that are not shown.
    pub more: usize,
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Answer {
    /// Path to one object.
    One(Path),
    /// Paths to many objects.
    Merged {
        /// The roots.
        branches: Vec<Branch>,
        /// Number of requested objects.
        objects: usize,
        /// Number of requested objects that no root reaches.
        unreachable: usize,
    },
}

/// The path from a root category to a node; empty if no root reaches it.
///
/// # Errors
/// If the index cannot be read.
pub fn to(heap: &Heap, node: u32) -> Result<Vec<u32>, Error> {
    let steps = heap.steps()?;
    let before = |node: &u32| steps.get(*node as usize).copied().filter(|&node| node != NONE);
    // A broken index may contain cycles.
    let path = std::iter::successors(Some(node), before).take(steps.len() + 1);
    let mut path: Vec<u32> = path.collect();
    if path.pop() != Some(heap.root()) {
        return Ok(Vec::new());
    }
    path.reverse();
    Ok(path)
}

/// Steps shown at each end of a path: linked lists have millions.
pub(crate) const ENDS: usize = 30;

/// Number of steps omitted in the middle of a path.
pub(crate) fn omitted(nodes: &[u32]) -> usize {
    nodes.len().saturating_sub(2 * ENDS)
}

/// A path in words and as objects.
pub fn described(describer: &Describer<'_>, nodes: &[u32]) -> Path {
    let step = |index: usize| {
        let before = index.checked_sub(1).map(|before| nodes[before]);
        let label = before.and_then(|from| describer.words.label(from, nodes[index]));
        Step { label, object: describer.describe(nodes[index]) }
    };
    let omitted = omitted(nodes);
    let shown = match omitted {
        0 => 0..nodes.len(),
        _ => 0..ENDS,
    };
    let rest = shown.end + omitted..nodes.len();
    let phrase = describer.words.path(nodes);
    Path {
        steps: shown.chain(rest).map(step).collect(),
        omitted,
        sentence: phrase.to_string(),
        phrase,
    }
}

impl Question {
    /// The answer.
    ///
    /// # Errors
    /// If the object does not exist, or the filter is invalid.
    pub fn answer(&self, heap: &Heap) -> Result<Answer, Error> {
        let describer = Describer::new(heap)?;
        match (&self.to, &self.r#where) {
            (Some(named), None) => {
                let nodes = to(heap, named.find(heap)?)?;
                Ok(Answer::One(described(&describer, &nodes)))
            }
            (None, Some(filter)) => self.merged(heap, &describer, filter),
            _ => Err(Error::Question("path takes either an object or a filter".to_owned())),
        }
    }

    fn merged(
        &self,
        heap: &Heap,
        describer: &Describer<'_>,
        filter: &str,
    ) -> Result<Answer, Error> {
        let selection = Selection::new(heap, Some(filter))?;
        let (tree, retained) = (heap.tree()?, heap.retained()?);
        let objects = selection.iter().count();
        let places = selection.iter().filter_map(|node| tree.place(node));
        // Dominators come first.
        let mut places: Vec<u32> = places.collect();
        places.sort_unstable();
        let mut forest = Forest::default();
        for &place in &places {
            let node = tree.nodes()[place as usize];
            let end =
                End { place, subtree_end: tree.subtree_end(node), retained: retained.get(node) };
            forest.add(describer, &to(heap, node)?, &end);
        }
        let limit = Limit(self.limit.0.max(1));
        let branches = forest.branches(0, limit).0;
        Ok(Answer::Merged { branches, objects, unreachable: objects - places.len() })
    }
}

/// Maximum depth of a merged tree: paths end there.
const DEEPEST: usize = 60;

/// Nodes of the merged tree; node 0 is the top.
struct Forest {
    nodes: Vec<Merged>,
    by_key: FxHashMap<(u32, String, Option<String>), u32>,
    /// The merged node of an object's place in the tree: paths share their beginnings.
    of_object: FxHashMap<(u32, u32), u32>,
}

#[derive(Default)]
struct Merged {
    text: String,
    label: Option<String>,
    objects: usize,
    paths: usize,
    retained: u64,
    /// End of the last counted subtree: objects within it are already included in the retained size.
    subtree_end: u32,
    example: Option<String>,
    below: Vec<u32>,
}

/// The object at the end of a path, in the dominator tree.
struct End {
    place: u32,
    subtree_end: u32,
    retained: u64,
}

impl Default for Forest {
    fn default() -> Forest {
        Forest {
            nodes: vec![Merged::default()],
            by_key: FxHashMap::default(),
            of_object: FxHashMap::default(),
        }
    }
}

impl Forest {
    fn add(&mut self, describer: &Describer<'_>, path: &[u32], end: &End) {
        let mut at = 0;
        let mut before = None;
        for &node in path.iter().take(DEEPEST) {
            let from = before.replace(node);
            at = match self.of_object.get(&(at, node)) {
                Some(&known) => known,
                None => self.grow(describer, at, from, node),
            };
            let merged = &mut self.nodes[at as usize];
            merged.paths += 1;
            if end.place >= merged.subtree_end {
                merged.subtree_end = end.subtree_end;
                merged.retained = merged.retained.saturating_add(end.retained);
            }
        }
    }

    fn grow(&mut self, describer: &Describer<'_>, at: u32, from: Option<u32>, node: u32) -> u32 {
        let text = describer.words.short(node);
        let label = from.and_then(|from| describer.words.label(from, node));
        let label = label.map(|label| if label.starts_with('[') { ANY.to_owned() } else { label });
        let next = self.nodes.len() as u32;
        let key = (at, text.clone(), label.clone());
        let merged = *self.by_key.entry(key).or_insert(next);
        if merged == next {
            let example = describer.describe(node).address;
            self.nodes.push(Merged { text, label, example, ..Merged::default() });
            self.nodes[at as usize].below.push(merged);
        }
        self.nodes[merged as usize].objects += 1;
        self.of_object.insert((at, node), merged);
        merged
    }

    /// The branches below a node, and the number of those not shown. A tree is as deep as the longest path.
    fn branches(&self, at: u32, limit: Limit<8>) -> (Vec<Branch>, usize) {
        let rows = Measured(|child: u32, measure| {
            let node = &self.nodes[child as usize];
            Some(if measure == Measure::Retained { node.retained } else { node.paths as u64 })
        });
        let list = List::new(&rows, &[Measure::Retained, Measure::Count]);
        let mut shown = vec![None; self.nodes.len()];
        // Children have larger numbers than their parents, so iterate backwards.
        for index in (at as usize..self.nodes.len()).rev() {
            let node = &self.nodes[index];
            let Page { shown: below, more } = list.page(node.below.iter().copied(), limit, 0);
            let branches: Vec<Branch> =
                below.iter().filter_map(|&child| shown[child as usize].take()).collect();
            shown[index] = Some(Branch {
                text: node.text.clone(),
                label: node.label.clone(),
                objects: node.objects,
                paths: node.paths,
                retained: node.retained,
                example: node.example.clone(),
                branches,
                more,
            });
        }
        match shown[at as usize].take() {
            Some(branch) => (branch.branches, branch.more),
            None => (Vec::new(), 0),
        }
    }
}

#[cfg(test)]
mod tests;

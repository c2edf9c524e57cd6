//! `neighbours`: the objects around an object and the references between them, as a graph small enough to draw.
//!
//! The graph begins with the object's referrers and references, those that retain most first, and adds a few of their
//! neighbours while there is room. Any object of the graph can be expanded to add its own neighbours.

mod growing;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use self::growing::Growing;
use super::describe::{Described, Describer, Named};
use super::{Error, Limit};
use memprof_heap::Heap;

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
        let expand: Vec<u32> = self
            .expand
            .iter()
            .map(|named| named.find(heap))
            .collect::<Result<_, _>>()?;
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
        Ok(Answer {
            of,
            nodes: nodes.collect(),
            edges: edges.collect(),
        })
    }
}

//! `neighbours`: the objects around one, and the references among them, as a graph that is small enough to be drawn.
//!
//! It begins with what refers to the object and what it refers to, those first that retain most; where there is room, a few
//! of the neighbours of these. Any object of the graph can be expanded: its own neighbours come in, too.

mod growing;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use self::growing::Growing;
use super::describe::{Described, Describer, Named};
use super::{Error, Limit};
use memprof_heap::Heap;

/// Neighbours of those that are not.
const FEW: usize = 2;
/// Objects that can be expanded: each takes a look at all references.
const EXPANDED: usize = 12;

/// `neighbours`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The object.
    pub of: Named,
    /// Objects whose neighbours are wanted, too, in the order in which they were asked for.
    #[serde(default)]
    pub expand: Vec<Named>,
    /// Nodes without those that are there because an object is expanded.
    #[serde(default)]
    pub limit: Limit<60>,
    /// Neighbours on each side of an object that is expanded.
    #[serde(default)]
    pub each: Limit<10>,
}

/// An object of the graph.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Node {
    /// The object.
    #[serde(flatten)]
    pub object: Described,
    /// Steps from the object that was asked for: less than 0 for what leads there, more for what it leads to.
    pub level: i32,
    /// All its neighbours were wanted.
    pub expanded: bool,
    /// Objects that refer to it and are not in the graph.
    pub more_referrers: usize,
    /// Objects that it refers to and that are not in the graph.
    pub more_references: usize,
}

/// References from one object of the graph to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Edge {
    /// Number of the object that refers.
    pub from: u32,
    /// Number of the object that it refers to.
    pub to: u32,
    /// The name of the reference that says most.
    pub label: Option<String>,
    /// How many there are.
    pub references: usize,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Number of the object that was asked for.
    pub of: u32,
    /// The first is that object. References to classes are left out.
    pub nodes: Vec<Node>,
    /// In order of their ends.
    pub edges: Vec<Edge>,
}

impl Question {
    /// The answer.
    ///
    /// # Errors
    /// If there is no such object, too many are to be expanded, or the index cannot be read.
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

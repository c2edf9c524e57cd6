//! Incoming and outgoing references of a block or an object.

use memprof_heap::graph::referrers_of;
use serde::{Deserialize, Serialize};

use super::Address;
use super::explain::{Step, step};
use super::reference_limits::distinct;
use crate::analysis::Analysis;

/// An address in it, and the maximum number of each kind.
#[derive(Deserialize)]
pub struct Question {
    address: Address,
    limit: usize,
}

/// Blocks and objects, by address within each kind, blocks first.
#[derive(Serialize)]
pub struct Answer {
    incoming: Vec<Step>,
    incoming_count: usize,
    outgoing: Vec<Step>,
    outgoing_count: usize,
}

impl Question {
    /// Finds the references.
    pub fn answer(&self, analysis: &Analysis) -> Result<Answer, String> {
        let Address(address) = self.address;
        let node = analysis.node_at(address).or_else(|| analysis.object_around(address));
        let (incoming, outgoing) = match node {
            Some(node) => {
                (referrers_of(&analysis.references().graph(), node), distinct(analysis, node))
            }
            None => Default::default(),
        };
        let steps = |nodes: &[u32]| {
            let first = nodes.iter().take(self.limit);
            first.map(|node| step(analysis, *node)).collect()
        };
        Ok(Answer {
            incoming: steps(&incoming),
            incoming_count: incoming.len(),
            outgoing: steps(&outgoing),
            outgoing_count: outgoing.len(),
        })
    }
}

//! Limits on a block's number of references.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::signature::Signature;
use crate::analysis::Analysis;

/// A limit on the number of references: in total, or by the signature of the block at the other end.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected a number of references, or numbers by signature")]
pub enum Limit {
    /// A limit on the total.
    All(u32),
    /// By signature, pattern, `-` or `?`; an empty string limits the total.
    BySignature(BTreeMap<String, u32>),
}

impl Limit {
    /// Whether a comparison holds between each limit and the corresponding number of references.
    pub fn holds<'l>(
        &'l self,
        count: impl Fn(Option<&'l str>) -> u32,
        compare: impl Fn(u32, u32) -> bool,
    ) -> bool {
        match self {
            Limit::All(limit) => compare(count(None), *limit),
            Limit::BySignature(limits) => {
                let mut limits = limits.iter();
                limits.all(|(name, limit)| compare(count(signature(name)), *limit))
            }
        }
    }

    /// The signatures that it applies to; None for all references.
    pub fn signatures(&self) -> Vec<Option<&str>> {
        match self {
            Limit::All(_) => vec![None],
            Limit::BySignature(limits) => limits.keys().map(|name| signature(name)).collect(),
        }
    }
}

fn signature(name: &str) -> Option<&str> {
    (!name.is_empty()).then_some(name)
}

/// The number of blocks and objects that reference each block: in total, and by each signature in the limits.
#[derive(Default)]
pub struct Incoming<'l>(BTreeMap<Option<&'l str>, Vec<u32>>);

impl<'l> Incoming<'l> {
    /// Counts the references that limits apply to.
    pub fn count(analysis: &Analysis, limits: impl IntoIterator<Item = &'l Limit>) -> Incoming<'l> {
        let wanted: BTreeSet<_> = limits.into_iter().flat_map(Limit::signatures).collect();
        let count = |signature| (signature, count(analysis, signature));
        Incoming(wanted.into_iter().map(count).collect())
    }

    /// The number of referrers of a block.
    pub fn of(&self, signature: Option<&str>, number: u32) -> u32 {
        let counts = self.0.get(&signature);
        counts.map_or(0, |counts| counts[number as usize])
    }
}

fn count(analysis: &Analysis, signature: Option<&str>) -> Vec<u32> {
    let references = analysis.references();
    let blocks = analysis.heap.blocks.len() as u32;
    let nodes = 0..signature.map_or(references.nodes(), |_| blocks);
    let mut counts = vec![0u32; blocks as usize];
    for node in nodes.filter(|node| signature.is_none_or(|wanted| has(analysis, *node, wanted))) {
        for target in distinct(analysis, node) {
            if let Some(count) = counts.get_mut(target as usize) {
                *count += 1;
            }
        }
    }
    counts
}

/// The distinct targets of a node.
pub fn distinct(analysis: &Analysis, node: u32) -> Vec<u32> {
    let mut targets: Vec<u32> = analysis.references().graph().edges(node).collect();
    targets.sort_unstable();
    targets.dedup();
    targets
}

/// Whether a block has a signature.
pub fn has(analysis: &Analysis, number: u32, wanted: &str) -> bool {
    (analysis.block(number))
        .is_some_and(|block| Signature::of(analysis, number, block).matches(analysis, wanted))
}

//! Which blocks a question is about.

use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;

use super::Address;
use super::extension::{Rule, extended};
use super::related::{is_related, related};
use super::signature::Signature;
use crate::analysis::Analysis;
use crate::blocks::{Block, Kind};
use crate::references::Node;
use crate::sets::SetName;

/// A set of blocks, and restrictions of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Selection {
    /// The name of a set; or, relative to a block: `allocation`, `incoming`, `exactincoming`, `outgoing`, `freeoutgoing`,
    /// `chain`, `reversechain`.
    pub set: String,
    /// The block that relative sets are about.
    pub of: Option<Address>,
    /// For `chain`: where in each block the address of the next one is; for `reversechain` as well.
    pub offset: u64,
    /// For `reversechain`: where in the next block that address points to.
    pub target_offset: u64,
    /// A signature, a pattern (`%RubyString`), `-` for blocks without a signature, `?` for those with neither.
    pub signature: Option<String>,
    /// Bytes of a block.
    pub min_size: Option<u64>,
    /// Bytes of a block.
    pub max_size: Option<u64>,
    /// Blocks and objects that reference it.
    pub min_incoming: Option<u32>,
    /// Blocks and objects that reference it.
    pub max_incoming: Option<u32>,
    /// Used blocks that it references.
    pub min_outgoing: Option<u32>,
    /// Used blocks that it references.
    pub max_outgoing: Option<u32>,
    /// Free blocks that it references.
    pub min_free_outgoing: Option<u32>,
    /// Free blocks that it references.
    pub max_free_outgoing: Option<u32>,
    /// What is added to the blocks that are selected so far.
    pub extend: Vec<Rule>,
}

impl Selection {
    /// Calls the block with the number and the block of each member: by address, those of a chain or an extended set in
    /// the order in which they are reached.
    ///
    /// # Errors
    /// If there is no such set, or an address belongs to no block.
    pub fn each(
        &self,
        analysis: &Analysis,
        mut visit: impl FnMut(u32, Block),
    ) -> Result<(), String> {
        self.from(analysis, 0, |_, number, block| {
            visit(number, block);
            true
        })
    }

    /// The same from a place on that it named before, until the block returns false. The block is given the place, too.
    ///
    /// # Errors
    /// See [`each`](Self::each).
    pub fn from(
        &self,
        analysis: &Analysis,
        first: u32,
        mut visit: impl FnMut(u32, u32, Block) -> bool,
    ) -> Result<(), String> {
        let mut take = |place, number| match analysis.block(number) {
            Some(block) => visit(place, number, block),
            None => true,
        };
        if !self.extend.is_empty() || is_related(&self.set) {
            let members = self.members(analysis)?;
            for (place, number) in (0..).zip(members.iter()).skip(first as usize) {
                if !take(place, *number) {
                    break;
                }
            }
            return Ok(());
        }
        let set: SetName = self.set.parse()?;
        let counts = self.counts(analysis);
        for number in first..analysis.heap.blocks.len() as u32 {
            if self.has(analysis, set, &counts, number) && !take(number, number) {
                break;
            }
        }
        Ok(())
    }

    /// The members of a set that takes more to find than a look at each block: found once for all parts of a list.
    fn members(&self, analysis: &Analysis) -> Result<Arc<[u32]>, String> {
        let mut last = (analysis.last_members.0.lock()).unwrap_or_else(PoisonError::into_inner);
        if let Some((selection, members)) = &*last
            && selection == self
        {
            return Ok(Arc::clone(members));
        }
        let members: Arc<[u32]> = self.find_members(analysis)?.into();
        *last = Some((self.clone(), Arc::clone(&members)));
        Ok(members)
    }

    fn find_members(&self, analysis: &Analysis) -> Result<Vec<u32>, String> {
        let counts = self.counts(analysis);
        let base = if is_related(&self.set) {
            let mut members = related(self, analysis)?;
            members.retain(|number| self.allows(analysis, &counts, *number));
            members
        } else {
            let set: SetName = self.set.parse()?;
            (0..analysis.heap.blocks.len() as u32)
                .filter(|number| self.has(analysis, set, &counts, *number))
                .collect()
        };
        Ok(extended(analysis, &base, &self.extend))
    }

    fn has(&self, analysis: &Analysis, set: SetName, counts: &[u32], number: u32) -> bool {
        analysis.contains(set, number) && self.allows(analysis, counts, number)
    }

    /// How often each block is referenced, if that is asked for.
    fn counts(&self, analysis: &Analysis) -> Vec<u32> {
        if self.min_incoming.is_none() && self.max_incoming.is_none() {
            return Vec::new();
        }
        let graph = analysis.references().graph();
        let mut counts = vec![0u32; analysis.heap.blocks.len()];
        for target in graph.targets {
            if let Some(count) = counts.get_mut(*target as usize) {
                *count = count.saturating_add(1);
            }
        }
        counts
    }

    fn allows(&self, analysis: &Analysis, counts: &[u32], number: u32) -> bool {
        let Some(block) = analysis.block(number) else {
            return false;
        };
        let within = |value: u32, min: Option<u32>, max: Option<u32>| {
            min.is_none_or(|min| value >= min) && max.is_none_or(|max| value <= max)
        };
        let outgoing = |wanted: &dyn Fn(Kind) -> bool| {
            let targets = analysis.references().graph().edges(number);
            let blocks = targets.filter_map(|target| analysis.block(target));
            blocks.filter(|block| wanted(block.kind)).count() as u32
        };
        let is = |limit: Option<u32>| limit.is_some();
        self.min_size.is_none_or(|min| block.size >= min)
            && self.max_size.is_none_or(|max| block.size <= max)
            && (counts.is_empty()
                || within(
                    counts[number as usize],
                    self.min_incoming,
                    self.max_incoming,
                ))
            && (!(is(self.min_outgoing) || is(self.max_outgoing))
                || within(
                    outgoing(&|kind| kind == Kind::Used),
                    self.min_outgoing,
                    self.max_outgoing,
                ))
            && (!(is(self.min_free_outgoing) || is(self.max_free_outgoing))
                || within(
                    outgoing(&|kind| kind != Kind::Used),
                    self.min_free_outgoing,
                    self.max_free_outgoing,
                ))
            && self.signature.as_deref().is_none_or(|wanted| {
                Signature::of(analysis, number, block).matches(analysis, wanted)
            })
    }
}

/// What the last selection found whose members are not looked at one by one.
#[derive(Debug, Default)]
pub(crate) struct LastMembers(Mutex<Option<(Selection, Arc<[u32]>)>>);

/// The object of Ruby at a node.
pub(crate) fn slot(analysis: &Analysis, node: u32) -> Option<u64> {
    match analysis.node(node) {
        Node::Slot(address) => Some(address),
        Node::Block(_) => None,
    }
}

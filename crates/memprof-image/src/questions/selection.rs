//! Selects the blocks of a question.

use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;

use super::Address;
use super::extension::{self, Extension, Rule, extended};
use super::reference_limits::{Incoming, Limit, distinct, has};
use super::related::{is_related, related};
use super::signature::Signature;
use crate::analysis::Analysis;
use crate::blocks::{Block, Kind};
use crate::references::Node;
use crate::sets::SetName;

/// A set of blocks, and its filters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Selection {
    /// The name of a set; or, relative to a block: `allocation`, `incoming`, `exactincoming`, `outgoing`, `freeoutgoing`,
    /// `chain`, `reversechain`.
    pub set: String,
    /// The block of a relative set.
    pub of: Option<Address>,
    /// For `chain` and `reversechain`: the offset of the next block's address in each block.
    pub offset: u64,
    /// For `reversechain`: the offset in the next block to which that address points.
    pub target_offset: u64,
    /// A signature, a pattern (`%RubyString`), `-` for blocks without a signature, `?` for those with neither.
    pub signature: Option<String>,
    /// Minimum size of a block.
    pub min_size: Option<u64>,
    /// Maximum size of a block.
    pub max_size: Option<u64>,
    /// Blocks and objects that reference it.
    pub min_incoming: Option<Limit>,
    /// Blocks and objects that reference it.
    pub max_incoming: Option<Limit>,
    /// Used blocks that it references.
    pub min_outgoing: Option<Limit>,
    /// Used blocks that it references.
    pub max_outgoing: Option<Limit>,
    /// Free blocks that it references.
    pub min_free_outgoing: Option<Limit>,
    /// Free blocks that it references.
    pub max_free_outgoing: Option<Limit>,
    /// Rules that add to the blocks selected so far.
    pub extend: Vec<Rule>,
    /// Whether to report how each block was reached.
    pub comment_extensions: bool,
}

impl Selection {
    /// Calls the closure with the number and the block of each member: in order of address; for chains and extended sets in the
    /// order in which they are reached.
    ///
    /// # Errors
    /// If the set is unknown, or an address is not in a block.
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

    /// The same from a place previously passed to the closure, until it returns false. The closure also receives the place.
    ///
    /// # Errors
    /// See [`each`](Self::each).
    pub fn from(
        &self,
        analysis: &Analysis,
        first: u32,
        mut visit: impl FnMut(u32, u32, Block) -> bool,
    ) -> Result<(), String> {
        self.check_signatures(analysis)?;
        let mut take = |place, number| match analysis.block(number) {
            Some(block) => visit(place, number, block),
            None => true,
        };
        if self.is_found_at_once() {
            let members = self.members(analysis)?;
            for (place, number) in (0..).zip(&members.reached).skip(first as usize) {
                if !take(place, *number) {
                    break;
                }
            }
            return Ok(());
        }
        let set: SetName = self.set.parse()?;
        let incoming = self.incoming(analysis);
        for number in first..analysis.heap.blocks.len() as u32 {
            if self.has(analysis, set, &incoming, number) && !take(number, number) {
                break;
            }
        }
        Ok(())
    }

    fn check_signatures(&self, analysis: &Analysis) -> Result<(), String> {
        let limits = [
            &self.min_incoming,
            &self.max_incoming,
            &self.min_outgoing,
            &self.max_outgoing,
            &self.min_free_outgoing,
            &self.max_free_outgoing,
        ];
        let of_limits = limits.into_iter().flatten().flat_map(Limit::signatures);
        let mut signatures = (self.signature.as_deref().into_iter())
            .chain(of_limits.flatten())
            .chain(extension::signatures(&self.extend));
        signatures.try_for_each(|signature| Signature::check(analysis, signature))
    }

    /// Whether finding the members takes more than checking each block.
    fn is_found_at_once(&self) -> bool {
        !self.extend.is_empty() || is_related(&self.set)
    }

    /// How the blocks of an extended set were reached, if requested.
    ///
    /// # Errors
    /// See [`each`](Self::each).
    pub fn comments(&self, analysis: &Analysis) -> Result<Option<Arc<Extension>>, String> {
        let wanted = self.comment_extensions && self.is_found_at_once();
        wanted.then(|| self.members(analysis)).transpose()
    }

    /// The members of such a set, computed once for all parts of a list.
    fn members(&self, analysis: &Analysis) -> Result<Arc<Extension>, String> {
        let mut last = (analysis.last_members.0.lock()).unwrap_or_else(PoisonError::into_inner);
        let known = last.as_ref().filter(|(selection, _)| selection == self);
        if let Some((_, members)) = known {
            return Ok(Arc::clone(members));
        }
        let members = Arc::new(self.find_members(analysis)?);
        *last = Some((self.clone(), Arc::clone(&members)));
        Ok(members)
    }

    fn find_members(&self, analysis: &Analysis) -> Result<Extension, String> {
        let incoming = self.incoming(analysis);
        let base = if is_related(&self.set) {
            let mut members = related(self, analysis)?;
            members.retain(|number| self.allows(analysis, &incoming, *number));
            members
        } else {
            let set: SetName = self.set.parse()?;
            (0..analysis.heap.blocks.len() as u32)
                .filter(|number| self.has(analysis, set, &incoming, *number))
                .collect()
        };
        let comment = self.comment_extensions;
        Ok(extended(analysis, &base, &self.extend, comment))
    }

    fn has(&self, analysis: &Analysis, set: SetName, incoming: &Incoming<'_>, number: u32) -> bool {
        analysis.contains(set, number) && self.allows(analysis, incoming, number)
    }

    /// The number of references to each block, if limits need it.
    fn incoming(&self, analysis: &Analysis) -> Incoming<'_> {
        Incoming::count(analysis, self.min_incoming.iter().chain(&self.max_incoming))
    }

    fn allows(&self, analysis: &Analysis, incoming: &Incoming<'_>, number: u32) -> bool {
        let Some(block) = analysis.block(number) else {
            return false;
        };
        let outgoing = |signature: Option<&str>, wanted: &dyn Fn(Kind) -> bool| {
            let is_wanted = |target: &u32| {
                (analysis.block(*target)).is_some_and(|block| wanted(block.kind))
                    && signature.is_none_or(|signature| has(analysis, *target, signature))
            };
            distinct(analysis, number).iter().filter(|target| is_wanted(target)).count() as u32
        };
        let used = |signature: Option<&str>| outgoing(signature, &|kind| kind == Kind::Used);
        let free = |signature: Option<&str>| outgoing(signature, &|kind| kind != Kind::Used);
        let references = |signature: Option<&str>| incoming.of(signature, number);
        self.min_size.is_none_or(|min| block.size >= min)
            && self.max_size.is_none_or(|max| block.size <= max)
            && within(&self.min_incoming, &self.max_incoming, references)
            && within(&self.min_outgoing, &self.max_outgoing, used)
            && within(&self.min_free_outgoing, &self.max_free_outgoing, free)
            && (self.signature.as_deref()).is_none_or(|wanted| has(analysis, number, wanted))
    }
}

/// Whether the number of references is within the limits.
fn within(min: &Option<Limit>, max: &Option<Limit>, count: impl Fn(Option<&str>) -> u32) -> bool {
    let min = (min.as_ref()).is_none_or(|min| min.holds(&count, |count, min| count >= min));
    min && (max.as_ref()).is_none_or(|max| max.holds(&count, |count, max| count <= max))
}

/// Caches the last selection whose members cannot be found by checking each block.
#[derive(Debug, Default)]
pub(crate) struct LastMembers(Mutex<Option<(Selection, Arc<Extension>)>>);

/// The address of the slot at a node.
pub(crate) fn slot(analysis: &Analysis, node: u32) -> Option<u64> {
    match analysis.node(node) {
        Node::Slot(address) => Some(address),
        Node::Block(_) => None,
    }
}

//! Which blocks a question is about.

use serde::Deserialize;

use super::Address;
use crate::analysis::Analysis;
use crate::blocks::{Block, Kind};
use crate::references::Node;
use crate::sets::SetName;

/// A list that is followed is as long as this at most.
const MAX_CHAIN: usize = 1 << 24;

/// A set of blocks, and restrictions of it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Selection {
    /// The name of a set; or, relative to a block: `allocation`, `incoming`, `exactincoming`, `outgoing`, `freeoutgoing`,
    /// `chain`.
    pub set: String,
    /// The block that relative sets are about.
    pub of: Option<Address>,
    /// For `chain`: where in each block the address of the next one is.
    pub offset: u64,
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
}

impl Selection {
    /// Calls the block with the number and the block of each member, by address.
    ///
    /// # Errors
    /// If there is no such set, or an address belongs to no block.
    pub fn each(
        &self,
        analysis: &Analysis,
        mut visit: impl FnMut(u32, Block),
    ) -> Result<(), String> {
        self.from(analysis, 0, |number, block| {
            visit(number, block);
            true
        })
    }

    /// The same from the block with a number on, until the block returns false.
    ///
    /// # Errors
    /// See [`each`](Self::each).
    pub fn from(
        &self,
        analysis: &Analysis,
        first: u32,
        mut visit: impl FnMut(u32, Block) -> bool,
    ) -> Result<(), String> {
        let counts = self.counts(analysis);
        let mut take = |number| match analysis.block(number) {
            Some(block) if self.allows(analysis, &counts, number, block) => visit(number, block),
            _ => true,
        };
        let related = self.related(analysis)?;
        match related {
            Some(numbers) => {
                for number in numbers.into_iter().filter(|number| *number >= first) {
                    if !take(number) {
                        break;
                    }
                }
            }
            None => {
                let set: SetName = self.set.parse()?;
                for number in first..analysis.heap.blocks.len() as u32 {
                    if analysis.contains(set, number) && !take(number) {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// The members of a set that is relative to a block; None for other sets.
    fn related(&self, analysis: &Analysis) -> Result<Option<Vec<u32>>, String> {
        const RELATED: [&str; 6] = [
            "allocation",
            "incoming",
            "exactincoming",
            "outgoing",
            "freeoutgoing",
            "chain",
        ];
        if !RELATED.contains(&self.set.as_str()) {
            return Ok(None);
        }
        let Some(Address(address)) = self.of else {
            return Err(format!("{} needs an address", self.set));
        };
        let blocks = &analysis.heap.blocks;
        let node = match self.set.as_str() {
            // The only one that needs no references.
            "allocation" => blocks.containing(address),
            _ => analysis
                .node_at(address)
                .or_else(|| blocks.containing(address)),
        };
        let Some(node) = node else {
            return Err(format!("{address:#x} is in no block"));
        };
        let is_used = |number: u32| analysis.contains(SetName::Used, number);
        let is_free = |number: u32| analysis.contains(SetName::Free, number);
        let outgoing = |wanted: &dyn Fn(u32) -> bool| {
            let mut targets: Vec<u32> = analysis.references().graph().edges(node).collect();
            targets.retain(|target| wanted(*target));
            targets.sort_unstable();
            targets.dedup();
            targets
        };
        let numbers = match self.set.as_str() {
            "allocation" => vec![node],
            "outgoing" => outgoing(&is_used),
            "freeoutgoing" => outgoing(&is_free),
            "chain" => chain(analysis, node, self.offset),
            incoming => {
                let exact = incoming == "exactincoming";
                let start = analysis.block(node).map_or(address, |block| block.address);
                let graph = analysis.references().graph();
                (0..blocks.len() as u32)
                    .filter(|number| graph.edges(*number).any(|target| target == node))
                    .filter(|number| !exact || has_word(analysis, *number, start))
                    .collect()
            }
        };
        Ok(Some(numbers))
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

    fn allows(&self, analysis: &Analysis, counts: &[u32], number: u32, block: Block) -> bool {
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

fn has_word(analysis: &Analysis, number: u32, wanted: u64) -> bool {
    let mut found = false;
    if let Some(block) = analysis.block(number) {
        analysis
            .image
            .each_word(block.address..block.end(), |_, word| {
                found |= word == wanted
            });
    }
    found
}

/// The blocks of a linked list.
fn chain(analysis: &Analysis, first: u32, offset: u64) -> Vec<u32> {
    let mut chain = Vec::new();
    let mut next = Some(first);
    while let Some(node) = next.filter(|_| chain.len() < MAX_CHAIN) {
        let Some(block) = analysis.block(node) else {
            break;
        };
        chain.push(node);
        let link = analysis.image.word(block.address.saturating_add(offset));
        next = link
            .and_then(|link| analysis.heap.blocks.containing(link))
            .filter(|next| *next != first);
        // A list that goes round in its middle.
        if chain.len() > analysis.heap.blocks.len() {
            break;
        }
    }
    chain
}

/// What tells blocks of one kind from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Signature {
    /// The first word, which points to constant data of a file.
    Word(u64),
    /// The type of the object that references the block itself.
    Ruby(&'static str),
    /// Neither.
    Unknown,
}

impl Signature {
    pub fn of(analysis: &Analysis, number: u32, block: Block) -> Signature {
        if let Some(word) = analysis.signature(block) {
            return Signature::Word(word);
        }
        let owner = (block.kind == Kind::Used && !analysis.ruby.pages.is_empty())
            .then(|| analysis.owner(number))
            .flatten();
        match owner.filter(|(_, directly)| *directly) {
            Some((object, _)) => match analysis.object_type(object) {
                Some(object) => Signature::Ruby(object.name()),
                None => Signature::Unknown,
            },
            None => Signature::Unknown,
        }
    }

    /// As it is written: a word in hexadecimal digits, or a pattern.
    pub fn text(self) -> Option<String> {
        match self {
            Signature::Word(word) => Some(format!("{word:x}")),
            Signature::Ruby(name) => Some(pattern(name)),
            Signature::Unknown => None,
        }
    }

    fn matches(self, analysis: &Analysis, wanted: &str) -> bool {
        match (self, wanted) {
            (Signature::Unknown, "-" | "?") | (Signature::Ruby(_), "-") => true,
            (Signature::Ruby(name), wanted) => pattern(name) == wanted,
            (Signature::Word(word), wanted) => {
                let digits = wanted.strip_prefix("0x").unwrap_or(wanted);
                u64::from_str_radix(digits, 16) == Ok(word)
                    || analysis.in_file(word).is_some_and(|place| place == wanted)
            }
            (Signature::Unknown, _) => false,
        }
    }
}

/// `%RubyString` for STRING.
fn pattern(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    format!("%Ruby{first}{}", rest.to_lowercase())
}

/// The object of Ruby at a node.
pub(crate) fn slot(analysis: &Analysis, node: u32) -> Option<u64> {
    match analysis.node(node) {
        Node::Slot(address) => Some(address),
        Node::Block(_) => None,
    }
}

//! Sets relative to a block.

use memprof_heap::graph::{Inbound, referrers_of};

use super::selection::Selection;
use crate::analysis::Analysis;
use crate::sets::SetName;

/// Maximum length of a linked list.
const MAX_CHAIN: usize = 1 << 24;

const RELATED: [&str; 7] = [
    "allocation",
    "incoming",
    "exactincoming",
    "outgoing",
    "freeoutgoing",
    "chain",
    "reversechain",
];

/// Whether a set is relative to a block.
pub fn is_related(set: &str) -> bool {
    RELATED.contains(&set)
}

/// The members of a relative set.
pub fn related(selection: &Selection, analysis: &Analysis) -> Result<Vec<u32>, String> {
    let Some(address) = selection.of.map(|of| of.0) else {
        return Err(format!("{} needs an address", selection.set));
    };
    let blocks = &analysis.heap.blocks;
    let node = match selection.set.as_str() {
        // The only set that does not need references.
        "allocation" => blocks.containing(address),
        _ => analysis.node_at(address).or_else(|| blocks.containing(address)),
    };
    let Some(node) = node else {
        return Err(format!("{address:#x} is in no block"));
    };
    Ok(match selection.set.as_str() {
        "allocation" => vec![node],
        "outgoing" => referenced(analysis, node, SetName::Used),
        "freeoutgoing" => referenced(analysis, node, SetName::Free),
        "chain" => chain(analysis, node, selection.offset),
        "reversechain" => reverse_chain(analysis, node, selection.offset, selection.target_offset),
        incoming => {
            let start = analysis.block(node).map_or(address, |block| block.address);
            let mut referrers = referrers_of(&analysis.references().graph(), node);
            referrers.retain(|number| {
                analysis.block(*number).is_some()
                    && (incoming != "exactincoming" || has_word(analysis, *number, start))
            });
            referrers
        }
    })
}

/// The blocks of a set that a node references, by address.
fn referenced(analysis: &Analysis, node: u32, set: SetName) -> Vec<u32> {
    let mut targets: Vec<u32> = analysis.references().graph().edges(node).collect();
    targets.retain(|target| analysis.contains(set, *target));
    targets.sort_unstable();
    targets.dedup();
    targets
}

fn has_word(analysis: &Analysis, number: u32, wanted: u64) -> bool {
    let mut found = false;
    if let Some(block) = analysis.block(number) {
        analysis.image.each_word(block.address..block.end(), |_, word| {
            found |= word == wanted;
        });
    }
    found
}

/// Whether a block references another one at the requested place.
///
/// `source` is the offset of the address in the first block, `target` the offset in the second one to which it points.
pub fn references_at(
    analysis: &Analysis,
    (from, source): (u32, Option<u64>),
    (to, target): (u32, Option<u64>),
) -> bool {
    if source.is_none() && target.is_none() {
        return true; // an edge of the graph
    }
    let (Some(from), Some(to)) = (analysis.block(from), analysis.block(to)) else {
        return false;
    };
    let points = |word: u64| {
        (to.address..to.end()).contains(&word)
            && target.is_none_or(|offset| word - to.address == offset)
    };
    if let Some(offset) = source {
        let word = (offset < from.size).then(|| analysis.image.word(from.address + offset));
        return word.flatten().is_some_and(points);
    }
    let mut found = false;
    (analysis.image).each_word(from.address..from.end(), |_, word| found |= points(word));
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
        // The list has a cycle that does not include its head.
        if chain.len() > analysis.heap.blocks.len() {
            break;
        }
    }
    chain
}

/// The blocks of a linked list in reverse, as long as exactly one block references the next one.
fn reverse_chain(analysis: &Analysis, first: u32, source: u64, target: u64) -> Vec<u32> {
    let inbound = Inbound::of(&analysis.references().graph());
    let mut chain = Vec::new();
    let mut next = Some(first);
    while let Some(node) = next.filter(|_| chain.len() < analysis.heap.blocks.len()) {
        if analysis.block(node).is_none() {
            break;
        }
        chain.push(node);
        let mut referrers: Vec<u32> = inbound.edges(node).collect();
        referrers.dedup();
        referrers
            .retain(|from| references_at(analysis, (*from, Some(source)), (node, Some(target))));
        next = match referrers[..] {
            [only] if only != first => Some(only),
            _ => None,
        };
    }
    chain
}

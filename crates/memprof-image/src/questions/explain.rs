//! Explains what retains a block or an object: a shortest chain of references from outside.

use memprof_heap::graph::NONE;
use serde::{Deserialize, Serialize};

use super::Address;
use super::describe::{self, Place};
use super::selection::slot;
use crate::analysis::Analysis;
use crate::dump;
use crate::memory_map::Anchor;
use crate::references::AnchorPoint;
use crate::ruby_heap::RubyHeap;

/// Maximum number of referrers shown for a leaked block.
const MAX_REFERRERS: usize = 10;

/// The address.
#[derive(Deserialize)]
pub struct Question {
    address: Address,
}

/// The description, and the chain of references.
#[derive(Serialize)]
pub struct Answer {
    #[serde(flatten)]
    described: describe::Answer,
    /// The calls that led to the allocation of the block, innermost first, if recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stack: Vec<String>,
    /// The start of the chain; None if nothing anchors the block.
    anchor: Option<Origin>,
    /// From the anchor point to the block itself.
    chain: Vec<Step>,
    /// Blocks and objects that reference it, if nothing anchors it.
    referrers: Vec<Step>,
}

/// A place outside of malloc's memory and Ruby's heap.
#[derive(Serialize)]
struct Origin {
    anchor: Anchor,
    /// Its address, or the number of a register.
    from: Address,
    thread: Option<u32>,
    file: Option<String>,
}

/// A block or an object.
#[derive(Serialize)]
struct Step {
    address: Address,
    #[serde(flatten)]
    place: Place,
    /// The label of the reference from the object before it in a chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
}

impl Question {
    /// Searches for the chain.
    pub fn answer(&self, analysis: &Analysis) -> Result<Answer, String> {
        let Address(address) = self.address;
        let described = describe::Question::of(self.address).answer(analysis)?;
        let node = analysis.node_at(address).or_else(|| analysis.object_around(address));
        let mut answer = Answer {
            described,
            stack: stack(analysis, address),
            anchor: None,
            chain: Vec::new(),
            referrers: Vec::new(),
        };
        let Some(node) = node else {
            return Ok(answer);
        };
        match chain_by_owner(analysis, node).or_else(|| chain(analysis, node)) {
            Some((point, chain)) => {
                answer.anchor = Some(origin(analysis, point));
                let steps = chain.iter().zip(labels(analysis, &chain));
                let steps = steps.map(|(&node, label)| Step { label, ..step(analysis, node) });
                answer.chain = steps.collect();
            }
            None => {
                let graph = analysis.references().graph();
                let referrers = graph
                    .nodes()
                    .filter(|other| graph.row(*other).contains(&node))
                    .take(MAX_REFERRERS);
                answer.referrers = referrers.map(|node| step(analysis, node)).collect();
            }
        }
        Ok(answer)
    }
}

fn stack(analysis: &Analysis, address: u64) -> Vec<String> {
    let recorded = analysis.recorded();
    let number = analysis.heap.blocks.containing(address);
    let stack = recorded.and_then(|recorded| Some(recorded.stack(number?)));
    stack.unwrap_or_default()
}

/// The path to the object that owns a block, and from there to the block: more meaningful than a pointer in C code.
fn chain_by_owner(analysis: &Analysis, node: u32) -> Option<(AnchorPoint, Vec<u32>)> {
    let (_, true) = analysis.owner(node)? else {
        return None;
    };
    let (point, mut steps) = chain(analysis, analysis.owner_node(node)?)?;
    steps.push(node);
    Some((point, steps))
}

/// A shortest path from an anchor point to a node, preferably from a variable.
fn chain(analysis: &Analysis, node: u32) -> Option<(AnchorPoint, Vec<u32>)> {
    if !analysis.is_anchored(node) {
        return None;
    }
    let references = analysis.references();
    let graph = references.graph();
    let mut before = vec![NONE; graph.len()];
    let mut points = references.anchor_points.clone();
    points.sort_by_key(|point| (rank(point.anchor), point.node));
    let mut queue: Vec<u32> = Vec::new();
    for point in &points {
        if before[point.node as usize] == NONE {
            before[point.node as usize] = point.node;
            queue.push(point.node);
        }
    }
    let mut next = 0;
    while before[node as usize] == NONE {
        let from = *queue.get(next)?;
        next += 1;
        for target in graph.edges(from) {
            if before[target as usize] == NONE {
                before[target as usize] = from;
                queue.push(target);
            }
        }
    }
    let mut chain = vec![node];
    let mut at = node;
    while before[at as usize] != at {
        at = before[at as usize];
        chain.push(at);
    }
    chain.reverse();
    let point = points.into_iter().find(|point| point.node == at)?;
    Some((point, chain))
}

/// The label of the reference to each object of a chain from the one before it. Blocks between the two are part of the first.
fn labels(analysis: &Analysis, chain: &[u32]) -> Vec<Option<String>> {
    let mut labels = vec![None; chain.len()];
    let steps = chain.iter().enumerate();
    let objects = steps.filter_map(|(place, &node)| Some((place, slot(analysis, node)?)));
    let objects: Vec<(usize, u64)> = objects.collect();
    if objects.len() < 2 {
        return labels;
    }
    let heap = RubyHeap::new(analysis);
    for pair in objects.windows(2) {
        labels[pair[1].0] = dump::label(&heap, pair[0].1, pair[1].1);
    }
    labels
}

fn rank(anchor: Anchor) -> u8 {
    match anchor {
        Anchor::Static => 0,
        Anchor::Stack => 1,
        Anchor::Register => 2,
        Anchor::External => 3,
    }
}

fn origin(analysis: &Analysis, point: AnchorPoint) -> Origin {
    let thread = point.thread.and_then(|number| analysis.image.threads.get(number as usize));
    Origin {
        anchor: point.anchor,
        from: Address(point.from),
        thread: thread.map(|thread| thread.id),
        file: (point.anchor == Anchor::Static).then(|| analysis.in_file(point.from)).flatten(),
    }
}

fn step(analysis: &Analysis, node: u32) -> Step {
    let block = analysis.block(node).map(|block| block.address);
    let address = block.or_else(|| slot(analysis, node)).unwrap_or(0);
    Step { address: Address(address), place: describe::place(analysis, address), label: None }
}

//! Sets of blocks, named as in chap, with additional ones for Ruby's heap.

use std::str::FromStr;
use std::sync::OnceLock;

use memprof_heap::graph::{BitSet, NONE, reachable, reachable_without};

use crate::blocks::{Blocks, Kind};
use crate::memory_map::Anchor;
use crate::owners::owners;
use crate::references::References;

/// A set of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetName {
    /// All blocks.
    Allocations,
    /// Used blocks: not freed.
    Used,
    /// Freed blocks.
    Free,
    /// Free blocks cached by their thread.
    ThreadCached,
    /// Used blocks reachable from outside of the heap.
    Anchored,
    /// Used blocks referenced directly from there.
    AnchorPoints,
    /// Reachable from one kind of place.
    AnchoredBy(Anchor),
    /// Referenced directly from one kind of place.
    AnchorPointsOf(Anchor),
    /// Reachable only from stacks and registers.
    ThreadOnlyAnchored,
    /// Referenced directly by stacks and registers only, and not reachable otherwise.
    ThreadOnlyAnchorPoints,
    /// Used blocks not referenced by anything reachable or by any Ruby object.
    Leaked,
    /// Leaked blocks not referenced by leaked ones.
    Unreferenced,
    /// Used blocks referenced only by Ruby garbage: the next GC frees them.
    Garbage,
    /// Used blocks owned by Ruby objects: these reference them, or reach them while variables of C code do not.
    Owned,
    /// Used blocks of C code, including Ruby's own.
    Native,
}

const NAMES: [(&str, SetName); 21] = [
    ("allocations", SetName::Allocations),
    ("used", SetName::Used),
    ("free", SetName::Free),
    ("threadcached", SetName::ThreadCached),
    ("anchored", SetName::Anchored),
    ("anchorpoints", SetName::AnchorPoints),
    ("stackanchored", SetName::AnchoredBy(Anchor::Stack)),
    ("registeranchored", SetName::AnchoredBy(Anchor::Register)),
    ("staticanchored", SetName::AnchoredBy(Anchor::Static)),
    ("externalanchored", SetName::AnchoredBy(Anchor::External)),
    ("stackanchorpoints", SetName::AnchorPointsOf(Anchor::Stack)),
    ("registeranchorpoints", SetName::AnchorPointsOf(Anchor::Register)),
    ("staticanchorpoints", SetName::AnchorPointsOf(Anchor::Static)),
    ("externalanchorpoints", SetName::AnchorPointsOf(Anchor::External)),
    ("threadonlyanchored", SetName::ThreadOnlyAnchored),
    ("threadonlyanchorpoints", SetName::ThreadOnlyAnchorPoints),
    ("leaked", SetName::Leaked),
    ("unreferenced", SetName::Unreferenced),
    ("garbage", SetName::Garbage),
    ("owned", SetName::Owned),
    ("native", SetName::Native),
];

impl FromStr for SetName {
    type Err = String;

    fn from_str(text: &str) -> Result<SetName, String> {
        let found = NAMES.iter().find(|(name, _)| *name == text);
        found.map(|(_, set)| *set).ok_or_else(|| {
            let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            format!("unknown set \"{text}\"; expected one of: {}", names.join(", "))
        })
    }
}

/// The reachable blocks and objects by kind of start, computed on demand.
#[derive(Debug, Default)]
pub struct Sets {
    anchored: OnceLock<BitSet>,
    anchored_by: [OnceLock<BitSet>; 4],
    of_objects: OnceLock<BitSet>,
    native: OnceLock<BitSet>,
    owners: OnceLock<Vec<u32>>,
    referenced_leaks: OnceLock<BitSet>,
}

const ANCHORS: [Anchor; 4] = [Anchor::Register, Anchor::Stack, Anchor::Static, Anchor::External];

impl Sets {
    /// Blocks and Ruby objects reachable from outside.
    pub fn anchored<'s>(&'s self, references: &References) -> &'s BitSet {
        self.anchored.get_or_init(|| reachable(&references.graph(), &points(references, &ANCHORS)))
    }

    /// Whether a block is in a set.
    pub fn contains(
        &self,
        references: &References,
        blocks: &Blocks,
        set: SetName,
        number: u32,
    ) -> bool {
        let Some(block) = blocks.get(number) else {
            return false;
        };
        let used = block.kind == Kind::Used;
        let anchored = || self.anchored(references).contains(number);
        let leaked = || !anchored() && !self.of_objects(references).contains(number);
        let is_point = |anchors: &[Anchor]| {
            points_of(references, number).any(|anchor| anchors.contains(&anchor))
        };
        let only_threads = || {
            anchored()
                && !self.by(references, Anchor::Static).contains(number)
                && !self.by(references, Anchor::External).contains(number)
        };
        match set {
            SetName::Allocations => true,
            SetName::Used => used,
            SetName::Free => !used,
            SetName::ThreadCached => block.kind == Kind::ThreadCached,
            _ if !used => false,
            SetName::Anchored => anchored(),
            SetName::AnchorPoints => is_point(&ANCHORS),
            SetName::AnchoredBy(anchor) => self.by(references, anchor).contains(number),
            SetName::AnchorPointsOf(anchor) => is_point(&[anchor]),
            SetName::ThreadOnlyAnchored => only_threads(),
            SetName::ThreadOnlyAnchorPoints => only_threads() && is_point(&ANCHORS),
            SetName::Leaked => leaked(),
            SetName::Unreferenced => {
                leaked() && !self.referenced_leaks(references, blocks).contains(number)
            }
            SetName::Garbage => !anchored() && !leaked(),
            SetName::Owned => self.owner(references, number).is_some(),
            SetName::Native => {
                !self.contains(references, blocks, SetName::Owned, number) && !leaked()
            }
        }
    }

    /// The node of the Ruby object that owns a block.
    pub fn owner(&self, references: &References, number: u32) -> Option<u32> {
        let owners = self
            .owners
            .get_or_init(|| owners(references, self.native(references), self.anchored(references)));
        (owners.get(number as usize).copied()).filter(|owner| *owner != NONE)
    }

    fn by<'s>(&'s self, references: &References, anchor: Anchor) -> &'s BitSet {
        self.anchored_by[anchor as usize]
            .get_or_init(|| reachable(&references.graph(), &points(references, &[anchor])))
    }

    /// Reachable from Ruby objects, including garbage.
    fn of_objects<'s>(&'s self, references: &References) -> &'s BitSet {
        self.of_objects.get_or_init(|| {
            let slots: Vec<u32> = references.slots().collect();
            reachable(&references.graph(), &slots)
        })
    }

    /// Reachable from variables of C code, but not through a Ruby object.
    fn native<'s>(&'s self, references: &References) -> &'s BitSet {
        self.native.get_or_init(|| {
            let graph = references.graph();
            let slots = BitSet::of(graph.len(), references.slots());
            let from = points(references, &[Anchor::Static, Anchor::External]);
            reachable_without(&graph, &from, &slots)
        })
    }

    fn referenced_leaks<'s>(&'s self, references: &References, blocks: &Blocks) -> &'s BitSet {
        self.referenced_leaks.get_or_init(|| {
            let graph = references.graph();
            let all = (0..blocks.len() as u32)
                .filter(|number| self.contains(references, blocks, SetName::Leaked, *number))
                .flat_map(|number| graph.edges(number));
            BitSet::of(graph.len(), all)
        })
    }
}

fn points(references: &References, anchors: &[Anchor]) -> Vec<u32> {
    let wanted = |point: &&crate::references::AnchorPoint| anchors.contains(&point.anchor);
    (references.anchor_points.iter()).filter(wanted).map(|point| point.node).collect()
}

fn points_of(references: &References, node: u32) -> impl Iterator<Item = Anchor> + '_ {
    let points = &references.anchor_points;
    let first = points.partition_point(|point| point.node < node);
    (points[first..].iter()).take_while(move |point| point.node == node).map(|point| point.anchor)
}

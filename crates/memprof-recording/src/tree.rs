//! Stacks merged into a tree: from the outermost frame inward, or from the allocating frame to its callers.

use std::str::FromStr;

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::export::Value;
use crate::stacks::{Frame, Stacks};

/// The root of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// At the outermost frames; a frame's children are its callees.
    TopDown,
    /// At the allocating frames; a frame's children are its callers.
    BottomUp,
}

impl FromStr for Direction {
    type Err = String;

    fn from_str(word: &str) -> Result<Direction, String> {
        match word {
            "top_down" => Ok(Direction::TopDown),
            "bottom_up" => Ok(Direction::BottomUp),
            _ => Err(format!("unknown direction {word:?}")),
        }
    }
}

/// A frame of a tree with the bytes of all stacks that go through it.
#[derive(Debug, Default)]
pub struct Branch {
    /// Its index in [`Stacks::frames`]; unused for the root.
    pub frame: u32,
    /// Bytes.
    pub bytes: u64,
    children: FxHashMap<u32, usize>,
}

/// The tree of one value. The first branch is the root, which has no frame.
#[derive(Debug)]
pub struct Tree<'a> {
    stacks: &'a Stacks,
    /// The first frame with the same name: native code calls from many places of a function.
    same: Vec<u32>,
    branches: Vec<Branch>,
}

/// A printed row of a tree; each branch precedes its children.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TreeRow {
    /// Number of forks on the path: a frame with all bytes of its parent is not a fork.
    pub depth: usize,
    /// Number of frames above it. Only a child of the previous row is deeper than that.
    pub level: usize,
    /// Location of the frame: `file:line`, or native code.
    pub location: String,
    /// Its Ruby method, if known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub method: String,
    /// Its native function, if known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub function: String,
    /// Path of the object with its native code, if known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub module: String,
    /// Source file, if known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// Line in the source file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Offset from the object's load address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Bytes of all stacks that go through it.
    pub bytes: u64,
}

impl TreeRow {
    fn new(frame: &Frame, (depth, level): (usize, usize), bytes: u64) -> TreeRow {
        let row = TreeRow { depth, level, bytes, location: frame.location(), ..TreeRow::default() };
        match frame {
            Frame::Ruby { method, .. } => TreeRow { method: method.clone(), ..row },
            Frame::Native(native) if native.is_jit() => row,
            Frame::Native(native) => TreeRow {
                function: native.function.clone(),
                module: native.module.clone(),
                file: native.file.clone(),
                line: (!native.file.is_empty()).then_some(native.line),
                offset: (!native.module.is_empty()).then_some(native.offset),
                ..row
            },
        }
    }
}

/// Children of a branch, most bytes first, and the number of those omitted.
#[derive(Debug, Default)]
pub struct Children {
    /// Indices of branches.
    pub shown: Vec<usize>,
    /// Number of children omitted.
    pub others: usize,
    /// Their bytes.
    pub other_bytes: u64,
}

impl<'a> Tree<'a> {
    /// Adds up the stacks.
    #[must_use]
    pub fn new(stacks: &'a Stacks, direction: Direction, value: Value) -> Tree<'a> {
        let mut first: FxHashMap<String, u32> = FxHashMap::default();
        let frames = stacks.frames.iter().zip(0..);
        let same = frames.map(|(frame, at)| *first.entry(frame.label()).or_insert(at));
        let mut tree = Tree { stacks, same: same.collect(), branches: vec![Branch::default()] };
        let mut path: Vec<u32> = Vec::new();
        for (node, counts) in &stacks.counts {
            let bytes = value.of(counts);
            if bytes > 0 {
                path.clear();
                path.extend(stacks.path(*node));
                if direction == Direction::TopDown {
                    path.reverse();
                }
                tree.add(&path, bytes);
            }
        }
        tree
    }

    fn add(&mut self, path: &[u32], bytes: u64) {
        let mut at = 0;
        self.branches[at].bytes += bytes;
        for &node in path {
            let frame = self.same[self.stacks.nodes[node as usize].frame as usize];
            let next = self.branches.len();
            at = *self.branches[at].children.entry(frame).or_insert(next);
            if at == next {
                self.branches.push(Branch { frame, ..Branch::default() });
            }
            self.branches[at].bytes += bytes;
        }
    }

    /// A branch; 0 is the root.
    #[must_use]
    pub fn branch(&self, at: usize) -> &Branch {
        &self.branches[at]
    }

    /// Its frame; None for the root.
    #[must_use]
    pub fn frame(&self, at: usize) -> Option<&'a Frame> {
        let frame = self.branches[at].frame as usize;
        (at != 0).then(|| &self.stacks.frames[frame])
    }

    /// The children of a branch that have at least `least` bytes.
    #[must_use]
    pub fn children(&self, at: usize, least: u64) -> Children {
        let children = self.branches[at].children.values().copied();
        let (mut shown, others): (Vec<usize>, Vec<usize>) =
            children.partition(|&child| self.branches[child].bytes >= least);
        shown.sort_unstable_by_key(|&child| {
            let Branch { frame, bytes, .. } = self.branches[child];
            (std::cmp::Reverse(bytes), frame)
        });
        Children {
            shown,
            others: others.len(),
            other_bytes: others.iter().map(|&child| self.branches[child].bytes).sum(),
        }
    }

    /// All branches that have at least `least` bytes.
    #[must_use]
    pub fn rows(&self, least: u64) -> Vec<TreeRow> {
        let mut rows = Vec::new();
        let mut left: Vec<(usize, (usize, usize))> = Vec::new();
        let forks = |at: usize, depth: usize, level: usize, left: &mut Vec<_>| {
            let bytes = self.branches[at].bytes;
            for child in self.children(at, least.max(1)).shown.into_iter().rev() {
                let is_fork = at != 0 && self.branches[child].bytes < bytes;
                left.push((child, (depth + usize::from(is_fork), level)));
            }
        };
        forks(0, 0, 0, &mut left);
        while let Some((at, (depth, level))) = left.pop() {
            let Branch { frame, bytes, .. } = self.branches[at];
            let frame = &self.stacks.frames[frame as usize];
            rows.push(TreeRow::new(frame, (depth, level), bytes));
            forks(at, depth, level + 1, &mut left);
        }
        rows
    }
}

//! Stacks added up to a tree: from the outermost frame inwards, or from the one that allocated to its callers.

use std::str::FromStr;

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::export::Value;
use crate::stacks::{Frame, Stacks};

/// Where a tree begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// At the outermost frames; a frame's children are those that it called.
    TopDown,
    /// At the frames that allocated; a frame's children are its callers.
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
    /// Its place in [`Stacks::frames`]; nothing for the root.
    pub frame: u32,
    /// Bytes.
    pub bytes: u64,
    children: FxHashMap<u32, usize>,
}

/// The tree of one value. The first branch is the root, which has no frame.
#[derive(Debug)]
pub struct Tree<'a> {
    stacks: &'a Stacks,
    /// The first frame that is called the same: native code calls from many places of a function.
    same: Vec<u32>,
    branches: Vec<Branch>,
}

/// A line of a tree that is written down, each branch before its children.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TreeRow {
    /// How often the way here forked: a frame with all the bytes of the one before it is no fork.
    pub depth: usize,
    /// How many frames lead here. Only the child of the row before is deeper than that.
    pub level: usize,
    /// Where the frame is: `file:line`, or native code.
    pub location: String,
    /// Its method of Ruby, if that is known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub method: String,
    /// Its native function, if that is known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub function: String,
    /// The path of the object that its native code is in, if that is known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub module: String,
    /// The file of its source, if that is known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// The line there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// How far it is from where that object begins in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Bytes of all stacks that go through it.
    pub bytes: u64,
}

impl TreeRow {
    fn new(frame: &Frame, (depth, level): (usize, usize), bytes: u64) -> TreeRow {
        let row = TreeRow {
            depth,
            level,
            bytes,
            location: frame.location(),
            ..TreeRow::default()
        };
        match frame {
            Frame::Ruby { method, .. } => TreeRow {
                method: method.clone(),
                ..row
            },
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

/// Children of a branch, most bytes first, and what is left out.
#[derive(Debug, Default)]
pub struct Children {
    /// Places of branches.
    pub shown: Vec<usize>,
    /// How many are left out.
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
        let mut tree = Tree {
            stacks,
            same: same.collect(),
            branches: vec![Branch::default()],
        };
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
                self.branches.push(Branch {
                    frame,
                    ..Branch::default()
                });
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

    /// The children of a branch that have `least` bytes.
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

    /// All branches that have `least` bytes.
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

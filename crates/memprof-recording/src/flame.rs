//! A tree of stacks as a flame graph: as many frames as can be drawn, largest first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::tree::Tree;

/// A frame: index of its caller in [`Flame::frames`] (its own for the first frame), index of its name in [`Flame::names`],
/// bytes it allocated itself, and bytes including its callees.
pub type FlameFrame = (usize, usize, u64, u64);

/// A flame graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Flame {
    /// Names of frames, each once.
    pub names: Vec<String>,
    /// The first one is the root; callers come before their callees.
    pub frames: Vec<FlameFrame>,
    /// Number of frames omitted.
    pub folded: usize,
}

impl Flame {
    /// At most `most` frames of a tree.
    #[must_use]
    pub fn new(tree: &Tree<'_>, most: usize) -> Flame {
        let mut flame = Flame { names: vec!["all".to_string()], ..Flame::default() };
        let mut names: FxHashMap<String, usize> = FxHashMap::default();
        // No frame has more bytes than its caller, so the largest come first. Ties are broken by order of discovery.
        let mut left = BinaryHeap::from([(tree.branch(0).bytes, Reverse(0), 0)]);
        let mut found = 1;
        while flame.frames.len() < most {
            let Some((bytes, Reverse(at), caller)) = left.pop() else {
                break;
            };
            let place = flame.frames.len();
            let mut own = bytes;
            for child in tree.children(at, 0).shown {
                let inner = tree.branch(child).bytes;
                own -= inner;
                left.push((inner, Reverse(child), place));
                found += 1;
            }
            let name = tree.frame(at).map_or(0, |frame| {
                *names.entry(frame.label()).or_insert_with_key(|label| {
                    flame.names.push(label.clone());
                    flame.names.len() - 1
                })
            });
            flame.frames.push((caller, name, own, bytes));
        }
        flame.folded = found - flame.frames.len();
        flame
    }
}

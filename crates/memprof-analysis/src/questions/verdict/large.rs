//! Nodes that take much of a single heap, which cannot be compared with another.

use std::cmp::Reverse;

use super::growth::{Growing, Search, Trend};
use super::merged::Nature;
use crate::order;

/// This many similar objects are reported themselves; fewer, by their contents.
const MANY: u64 = 100;

/// The same for threads and fibers that retain more than their stacks.
const THREADS: u64 = 10;

/// An entry in a table of methods.
const METHOD: &str = "<ment>";

/// The objects that a `RubyVM` references, and its own size, belong to the VM.
const VM: &str = "RubyVM";

/// Percentage of the heap above which the symbol table is unusual: it has 3 in a Rails app, 6 in a small script.
const TABLE: f64 = 20.0;

impl Search<'_> {
    /// The nodes with at least this percentage of the reachable bytes, the largest first.
    pub fn large(&self, percent: f64) -> Vec<Growing> {
        let total = self.reachable().last().map_or(0, |sum| sum.size);
        let part = |percent: f64| ((total as f64 * percent / 100.0) as u64).max(1);
        let mut tops = Vec::new();
        let mut open: Vec<u32> = self.below.first().cloned().unwrap_or_default();
        while let Some(at) = open.pop() {
            if self.is_code(at) {
                continue;
            }
            if self.accumulates(at) {
                tops.push((at, at, Trend::OneHeap, false));
            } else {
                open.extend(&self.below[at as usize]);
            }
        }
        let mut found = self.with_keys(self.alike(tops));
        found.retain(|found| {
            let is_table = || self.tree.is_symbol_table(&self.tree.path(found.node));
            found.gained() >= part(percent) && (found.gained() >= part(TABLE) || !is_table())
        });
        self.add_lines(&mut found);
        order::sort_by_key(&mut found, |found| (Reverse(found.gained()), found.node));
        found
    }

    /// Whether memory accumulates here: in many objects, or in a few whose memory is not mostly in one thing.
    fn accumulates(&self, at: u32) -> bool {
        let node = &self.tree.nodes[at as usize];
        // `Object` and other modules reference unrelated objects, and so do the VM's tables.
        let class = self.class(at);
        if matches!(node.nature, Nature::Root | Nature::Known) || class == VM {
            return false;
        }
        let count = self.own[at as usize].last().map_or(0, |sum| sum.count);
        if class.starts_with('<') {
            // Methods with similar names are generated.
            return class == METHOD && count >= MANY;
        }
        let is_stack = matches!(node.nature, Nature::Thread | Nature::Fiber);
        let has_most = || {
            let (own, all) = (self.own[at as usize].last(), self.all[at as usize].last());
            own.zip(all).is_some_and(|(own, all)| own.size * 2 <= all.size)
        };
        // The stacks of a few waiting threads are not worth reporting.
        if count >= MANY || is_stack && count >= THREADS && has_most() {
            return true;
        }
        let has_others = is_stack || class.starts_with("#<");
        let size = |at: u32| self.all[at as usize].last().map_or(0, |sum| sum.size);
        // Malloc blocks are part of the object, not other objects.
        let is_block = |below: &&u32| self.tree.nodes[**below as usize].nature == Nature::Block;
        let mut below = (self.below[at as usize].iter()).filter(|below| !is_block(below));
        !has_others && !below.any(|&below| size(below) * 2 > size(at))
    }

    /// Loaded code with its literals, and metadata about its gems.
    fn is_code(&self, at: u32) -> bool {
        match self.tree.nodes[at as usize].nature {
            Nature::Cache => true,
            Nature::Known => {
                let outer = self.class(at).split("::").next();
                outer.is_some_and(|outer| matches!(outer, "Gem" | "Bundler"))
            }
            _ => matches!(self.class(at), "<iseq>" | "<cref>"),
        }
    }

    fn class(&self, at: u32) -> &str {
        self.tree.names.name(self.tree.nodes[at as usize].class)
    }
}

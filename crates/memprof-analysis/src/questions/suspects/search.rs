//! Where memory has accumulated.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::Nature;
use crate::questions::Error;
use crate::questions::describe::Describer;
use memprof_dump::record::{Flags, Kind};
use memprof_heap::graph::Tree;
use memprof_heap::{Heap, NONE, Sizes};

/// Threads that a server may have waiting: so many are not a leak, unless a later dump has more.
const POOL: usize = 100;

/// So many objects, each retained by the one before, are a list.
const LIST: usize = 100;

/// Objects between one element of a list and the next, and that one: `{ item:, next: [..] }` has two.
const LONGEST_LINK: usize = 4;

/// A suspect before it is described.
pub(super) struct Found {
    pub nature: Nature,
    pub node: u32,
    pub retained: u64,
    pub members: Vec<u32>,
}

impl Found {
    /// Bytes that a member retains; of an element of a list, without those that come after it.
    pub fn parts(&self, retained: &Sizes) -> Vec<u64> {
        let mut parts: Vec<u64> = self
            .members
            .iter()
            .map(|&node| retained.get(node))
            .collect();
        if self.nature == Nature::List {
            for at in 1..parts.len() {
                parts[at - 1] = parts[at - 1].saturating_sub(parts[at]);
            }
        }
        parts
    }
}

/// Looks for suspects.
pub(super) struct Search<'h> {
    pub heap: &'h Heap,
    pub describer: Describer<'h>,
    pub tree: &'h Tree,
    pub retained: &'h Sizes,
    pub shown: Vec<u32>,
    pub groups: &'h [u32],
    flags: &'h [u32],
    pub sites: &'h [u32],
    pub total: u64,
    pub least: u64,
}

impl<'h> Search<'h> {
    pub fn new(heap: &'h Heap, threshold: f64) -> Result<Search<'h>, Error> {
        let retained = heap.retained()?;
        let total = retained.get(heap.root());
        Ok(Search {
            heap,
            describer: Describer::new(heap)?,
            tree: heap.tree()?,
            retained,
            shown: heap.groups().iter().map(|group| group.shown).collect(),
            groups: heap.group_numbers()?,
            flags: heap.flag_words()?,
            sites: heap.site_numbers()?,
            total,
            least: ((heap.memsizes()?.sum() as f64 * threshold / 100.0) as u64).max(1),
        })
    }

    pub fn class(&self, node: u32) -> u32 {
        let group = self.groups.get(node as usize);
        group
            .and_then(|&group| self.shown.get(group as usize))
            .copied()
            .unwrap_or(NONE)
    }

    pub fn is_root(&self, node: u32) -> bool {
        node >= self.heap.len()
    }

    fn kind(&self, node: u32) -> Kind {
        let group = self
            .groups
            .get(node as usize)
            .and_then(|&group| self.heap.groups().get(group as usize));
        group.map_or(Kind::NONE, |group| group.kind)
    }

    fn is_class(&self, node: u32) -> bool {
        matches!(self.kind(node), Kind::CLASS | Kind::MODULE | Kind::ICLASS)
    }

    fn is_singleton(&self, node: u32) -> bool {
        (self.flags.get(node as usize)).is_some_and(|flags| flags & Flags::SINGLETON.0 != 0)
    }

    /// Loaded code is not a leak unless another object has gathered it.
    fn is_code(&self, node: u32) -> bool {
        self.is_class(node) || self.kind(node) == Kind::IMEMO
    }

    /// A thread or fiber of which nearly all is its stack.
    fn is_stack(&self, node: u32) -> bool {
        let name = self.describer.words.internal_name(node);
        let size = self.describer.size(node);
        matches!(name, Some("VM/thread" | "thread" | "fiber"))
            && size.saturating_mul(10) >= self.retained.get(node).saturating_mul(9)
    }

    pub fn found(&self) -> Vec<Found> {
        let mut found = Vec::new();
        let mut open = vec![self.heap.root()];
        while let Some(node) = open.pop() {
            if let Some((list, beside)) = self.list(node) {
                found.push(list);
                open.extend(beside);
                continue;
            }
            let (large, small): (Vec<u32>, Vec<u32>) = self
                .tree
                .children(node)
                .partition(|&child| self.retained.get(child) >= self.least);
            let is_end = large.is_empty() && !self.is_root(node) && !self.is_class(node);
            if is_end || self.gathers(node, &small) {
                let retained = self.retained.get(node);
                found.push(Found {
                    nature: Nature::Object,
                    node,
                    retained,
                    members: small,
                });
            } else {
                self.groups_of(&small, &mut found);
            }
            open.extend(large);
        }
        found
    }

    /// The list that begins with this object, and what is large beside it. In a list no object gathers anything, yet together
    /// they do.
    fn list(&self, first: u32) -> Option<(Found, Vec<u32>)> {
        if self.is_root(first) {
            return None;
        }
        (1..=LONGEST_LINK).find_map(|link| self.list_of(first, link))
    }

    /// The same, with so many objects from one element to the next.
    fn list_of(&self, first: u32, link: usize) -> Option<(Found, Vec<u32>)> {
        let mut chain = vec![first];
        let mut beside = Vec::new();
        loop {
            let last = chain[chain.len() - 1];
            // What the object one link before says.
            let class = chain
                .len()
                .checked_sub(link)
                .map(|at| self.class(chain[at]));
            let children = || self.tree.children(last);
            let next = children()
                .filter(|&child| class.is_none_or(|class| self.class(child) == class))
                .max_by_key(|&child| (self.retained.get(child), Reverse(child)));
            let large = children()
                .filter(|&child| Some(child) != next && self.retained.get(child) >= self.least);
            beside.extend(large);
            match next {
                Some(next) => chain.push(next),
                None => break,
            }
        }
        let retained = self.retained.get(first);
        let others = beside.iter().map(|&child| self.retained.get(child));
        let own = retained.saturating_sub(others.sum());
        let members: Vec<u32> = chain.into_iter().step_by(link).collect();
        let list = Found {
            nature: Nature::List,
            node: first,
            retained,
            members,
        };
        (list.members.len() >= LIST && own >= self.least).then_some((list, beside))
    }

    /// Whether what an object retains beside its large children makes it a suspect of its own. Roots and `Object` hold what
    /// has nothing in common.
    fn gathers(&self, node: u32, small: &[u32]) -> bool {
        if self.is_root(node) || self.describer.words.short(node) == "Object" {
            return false;
        }
        let sum = |nodes: &mut dyn Iterator<Item = u32>| {
            nodes.fold(0_u64, |sum, child| {
                sum.saturating_add(self.retained.get(child))
            })
        };
        if !self.is_class(node) {
            return sum(&mut small.iter().copied()) >= self.least;
        }
        // Classes in a module were loaded with it. Methods may be generated without end.
        let beside = |&child: &u32| {
            self.retained.get(child) >= self.least
                || self.is_class(child) && !self.is_singleton(child)
        };
        let rest = sum(&mut self.tree.children(node).filter(beside));
        self.retained.get(node).saturating_sub(rest) >= self.least
    }

    /// Classes whose objects, none of them large, are together as large as a suspect.
    fn groups_of(&self, nodes: &[u32], found: &mut Vec<Found>) {
        let mut by_class: FxHashMap<u32, (u64, Vec<u32>)> = FxHashMap::default();
        let is_pool = nodes.iter().filter(|&&node| self.is_stack(node)).count() <= POOL;
        for &node in nodes
            .iter()
            .filter(|&&node| !self.is_root(node) && !self.is_code(node))
            .filter(|&&node| !is_pool || !self.is_stack(node))
        {
            let (sum, members) = by_class.entry(self.class(node)).or_default();
            *sum = sum.saturating_add(self.retained.get(node));
            members.push(node);
        }
        for (retained, members) in by_class.into_values() {
            if retained < self.least {
                continue;
            }
            let largest = members
                .iter()
                .copied()
                .max_by_key(|&node| (self.retained.get(node), Reverse(node)));
            let node = largest.unwrap_or(NONE);
            found.push(Found {
                nature: Nature::Group,
                node,
                retained,
                members,
            });
        }
    }
}

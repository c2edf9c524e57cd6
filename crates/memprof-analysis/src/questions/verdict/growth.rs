//! Nodes of the merged tree that grow from heap to heap.

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use super::merged::{Made, Nature, Sum, Tree};
use super::turnover::is_in_frame;
use crate::order;
use memprof_dump::record::NameId;

/// Minimum growth in objects from each heap to the next.
const OBJECTS: u64 = 5;

/// Minimum growth in bytes from each heap to the next, of objects whose number does not change.
const BYTES: u64 = 32 << 10;

/// Smaller growth is not reported, unless it is many objects.
const LITTLE: u64 = 8 << 10;

/// Number of objects worth reporting.
const MANY: u64 = 100;

/// The objects on stacks change all the time: their growth is only reported if it is so many times as large.
const STACKS: u64 = 16;

/// The same for objects known to last.
const LASTING: u64 = 2;

/// This many heaps show a trend even of objects that are replaced.
const MANY_HEAPS: usize = 6;

/// Frames retain the last objects of each thread: up to so many objects per thread are not growth.
const LEFT_IN_FRAMES: u64 = 4;

/// Whether this is the root of machine stacks or registers.
pub(super) fn is_stack(class: &str) -> bool {
    matches!(class, "root machine_context" | "root registers")
}

/// A cache fills more and more slowly: its recent growth is less than this fraction of its earlier growth.
const LEVEL: (i128, i128) = (2, 5);

/// The trend from heap to heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trend {
    /// There is one heap: the objects are large.
    OneHeap,
    /// There are two heaps: the objects have grown.
    Unknown,
    /// It keeps growing.
    Grows,
    /// Its growth slows down.
    LevelsOff,
}

impl Trend {
    /// `None` if it does not grow by `least` from heap to heap.
    pub(super) fn of(series: &[u64], least: u64) -> Option<Trend> {
        let (&first, &last) = (series.first()?, series.last()?);
        let steps: Vec<i128> =
            series.windows(2).map(|pair| i128::from(pair[1]) - i128::from(pair[0])).collect();
        let least = i128::from(least);
        if last <= first {
            return None;
        }
        match steps.len() {
            0 => None,
            1 => (steps[0] >= least).then_some(Trend::Unknown),
            2 => (steps[1] >= least && steps[0] > 0 || steps[1] > 0 && steps[0] >= least)
                .then(|| Trend::going_on(&steps)),
            // It may shrink occasionally, when garbage is freed.
            number => {
                let shrinks = steps.iter().filter(|&&step| step < 0).count();
                let grows = steps.iter().filter(|&&step| step >= least).count();
                (shrinks * 3 <= number && grows * 2 > number).then(|| Trend::going_on(&steps))
            }
        }
    }

    fn going_on(steps: &[i128]) -> Trend {
        let (before, after) = steps.split_at(steps.len() / 2);
        let mean = |steps: &[i128]| steps.iter().sum::<i128>() / steps.len().max(1) as i128;
        if mean(after) * LEVEL.1 < mean(before) * LEVEL.0 { Trend::LevelsOff } else { Trend::Grows }
    }
}

/// A node that grows.
pub(super) struct Growing {
    /// The node; of several alike, the one that gained most.
    pub node: u32,
    /// Nodes that only differ in the referrers of their referrers, including this one.
    pub alike: Vec<u32>,
    /// The nodes of the keys if these are values of the same Hashes, or vice versa.
    pub beside: Vec<u32>,
    pub trend: Trend,
    /// The number of objects is constant, but the objects themselves grow.
    pub in_place: bool,
    /// The objects themselves, in each heap.
    pub own: Vec<Sum>,
    /// The objects and everything below them, in each heap.
    pub all: Vec<Sum>,
    /// Allocations of the new objects: class, line, and growth since the first heap.
    pub lines: Vec<(NameId, Made, Sum)>,
}

impl Growing {
    /// Growth in bytes since the first heap.
    pub fn gained(&self) -> u64 {
        gained(&self.all, |sum| sum.size)
    }

    /// Growth in objects since the first heap.
    pub fn more(&self) -> u64 {
        gained(&self.own, |sum| sum.count)
    }

    /// Objects in the last heap.
    fn last(&self) -> u64 {
        self.own.last().map_or(0, |sum| sum.count)
    }
}

pub(super) fn gained(sums: &[Sum], of: impl Fn(&Sum) -> u64) -> u64 {
    match (sums.first(), sums.last()) {
        (Some(first), Some(last)) => of(last).saturating_sub(of(first)),
        _ => 0,
    }
}

/// A search of a tree for growing nodes.
pub(super) struct Search<'t> {
    pub(super) tree: &'t Tree,
    pub(super) own: Vec<Vec<Sum>>,
    pub(super) all: Vec<Vec<Sum>>,
    pub(super) below: Vec<Vec<u32>>,
}

impl<'t> Search<'t> {
    pub fn new(tree: &'t Tree) -> Search<'t> {
        let padded = |sums: &Vec<Sum>| {
            let mut sums = sums.clone();
            sums.resize(tree.heaps, Sum::default());
            if tree.heaps == 1 {
                // A single heap counts as growth from nothing.
                sums.insert(0, Sum::default());
            }
            sums
        };
        let own: Vec<Vec<Sum>> = tree.nodes.iter().map(|node| padded(&node.sums)).collect();
        let mut all = own.clone();
        let mut below = vec![Vec::new(); own.len()];
        for at in (1..all.len()).rev() {
            let parent = tree.nodes[at].parent as usize;
            below[parent].push(at as u32);
            let (above, sums) = all.split_at_mut(at);
            for (sum, &more) in above[parent].iter_mut().zip(&sums[0]) {
                sum.add(more);
            }
        }
        Search { tree, own, all, below }
    }

    /// Reachable objects of each heap.
    pub fn reachable(&self) -> Vec<Sum> {
        self.all.first().map_or_else(Vec::new, |sums| self.heaps(sums).to_vec())
    }

    /// The sums of the actual heaps.
    pub fn heaps<'s>(&self, sums: &'s [Sum]) -> &'s [Sum] {
        &sums[sums.len().saturating_sub(self.tree.heaps)..]
    }

    /// The growing nodes, largest growth first.
    pub fn found(&self) -> Vec<Growing> {
        let growing: Vec<Option<(Trend, bool)>> =
            (0..self.own.len()).map(|at| self.growth(at)).collect();
        let mut tops = Vec::new();
        let mut open: Vec<u32> = self.below.first().cloned().unwrap_or_default();
        // Objects that only a machine stack references are soon freed.
        let class = |root: u32| self.tree.names.name(self.tree.nodes[root as usize].class);
        open.retain(|&root| !is_stack(class(root)));
        while let Some(at) = open.pop() {
            match growing[at as usize] {
                Some((trend, in_place)) if !self.is_passed_on(at, in_place, &growing) => {
                    let member = if in_place { at } else { self.member(at, &growing) };
                    tops.push((member, at, trend, in_place));
                }
                _ => open.extend(&self.below[at as usize]),
            }
        }
        let mut found = self.both_ways(self.with_keys(self.alike(tops)));
        found.retain(|found| {
            let (stacks, held) = self.stacks(found.node).unzip();
            let turnover = &self.tree.turnover;
            let times = match stacks {
                None => 1,
                Some(_) if held.is_some_and(|held| self.collects(held, found.node)) => LASTING,
                Some(_) => STACKS,
            };
            let left = match stacks {
                Some(stacks) => {
                    turnover.is_passing(found.node)
                        || !found.in_place && found.last() <= stacks * LEFT_IN_FRAMES
                }
                // Over many heaps, steady growth is not a coincidence.
                None => {
                    turnover.is_gone(found.node) && !found.in_place && self.tree.heaps < MANY_HEAPS
                }
            };
            !left && (found.gained() >= LITTLE * times || found.more() >= MANY * times)
        });
        self.add_lines(&mut found);
        found.retain(|found| !self.is_loading(found));
        let totals = self.by_class();
        found.retain_mut(|found| self.is_new(found, &totals));
        order::sort_by_key(&mut found, |found| {
            let levels_off = found.trend == Trend::LevelsOff;
            // The cause of new symbols or VM table entries is a better answer than these.
            let path = self.tree.path(found.node);
            let is_table = self.tree.is_symbol_table(&path) || self.is_in_table(&path);
            let gained = found.gained() / if is_table { 2 } else { 1 };
            (levels_off, Reverse(gained), found.node)
        });
        found
    }

    /// Whether only VM tables are above an object.
    fn is_in_table(&self, path: &[u32]) -> bool {
        let is_internal = |&node: &u32| {
            let class = self.tree.names.name(self.tree.nodes[node as usize].class);
            class == "root vm" || class.starts_with('<')
        };
        path.split_last().is_some_and(|(_, above)| above.len() > 1 && above.iter().all(is_internal))
    }

    /// Objects of each class in each heap.
    fn by_class(&self) -> FxHashMap<NameId, Vec<u64>> {
        let mut totals: FxHashMap<NameId, Vec<u64>> = FxHashMap::default();
        for (node, own) in self.tree.nodes.iter().zip(&self.own) {
            let total = totals.entry(node.class).or_default();
            total.resize(self.tree.heaps, 0);
            for (sum, more) in total.iter_mut().zip(own) {
                *sum += more.count;
            }
        }
        totals
    }

    /// Whether new objects were created: an object with several referrers may have another path from heap to heap. Then the trend
    /// of the class decides.
    fn is_new(&self, found: &mut Growing, totals: &FxHashMap<NameId, Vec<u64>>) -> bool {
        let class = self.tree.nodes[found.node as usize].class;
        let first = found.own.first().map_or(0, |sum| sum.count);
        let all_there_is = matches!(
            self.tree.names.name(class),
            "String" | "Array" | "Hash" | "Symbol" | "Object"
        );
        if found.in_place || all_there_is || first * 4 > found.last() {
            return true;
        }
        match totals.get(&class).and_then(|total| Trend::of(total, 1)) {
            Some(trend) => {
                if trend == Trend::LevelsOff {
                    found.trend = trend;
                }
                true
            }
            None => false,
        }
    }

    /// Whether these are the fibers that every thread has implicitly.
    fn is_of_threads(&self, at: usize) -> bool {
        let above = self.tree.nodes[at].parent as usize;
        let last = |at: usize| self.own[at].last().map_or(0, |sum| sum.count);
        self.tree.nodes[above].nature == Nature::Thread && last(at) <= last(above)
    }

    /// Whether these are classes in a file each: the program loads code.
    fn is_loading(&self, found: &Growing) -> bool {
        let node = &self.tree.nodes[found.node as usize];
        let lines = (found.lines.iter()).filter(|(class, ..)| *class == node.class);
        let (mut files, mut classes) = (FxHashSet::default(), 0);
        for (_, made, more) in lines {
            files.insert(made.at.file);
            classes += more.count;
        }
        node.nature == Nature::Known && classes > 1 && files.len() as u64 == classes
    }

    /// How the objects of a node grow: in number or in place.
    fn growth(&self, at: usize) -> Option<(Trend, bool)> {
        let least = match self.tree.nodes[at].nature {
            Nature::Root | Nature::Cache => return None,
            Nature::Fiber if self.is_of_threads(at) => return None,
            Nature::Thread | Nature::Fiber => 1,
            Nature::Known | Nature::Object | Nature::Block | Nature::Ended => OBJECTS,
        };
        let own = &self.own[at];
        let counts: Vec<u64> = own.iter().map(|sum| sum.count).collect();
        if let Some(trend) = Trend::of(&counts, least) {
            return Some((trend, false));
        }
        // Their stacks may be used more deeply than before, which is not growth.
        if matches!(self.tree.nodes[at].nature, Nature::Thread | Nature::Fiber) {
            return None;
        }
        let sizes: Vec<u64> = own.iter().map(|sum| sum.size).collect();
        let by_size = Trend::of(&sizes, BYTES);
        let by_contents = || {
            // A reused buffer does not get larger, whatever it contains.
            let larger = gained(own, |sum| sum.size) >= BYTES;
            let mut contents = self.tree.nodes[at].contents.clone();
            contents.resize(self.tree.heaps, 0);
            Trend::of(&contents, BYTES).filter(|_| larger)
        };
        // Capacity grows by doubling, and then suffices for a while. A text may continue in one that it shares.
        let with_shared = || {
            let all = self.all[at].iter().map(|sum| sum.size);
            Trend::of(&all.collect::<Vec<u64>>(), BYTES)
        };
        let trend = match by_size {
            Some(Trend::LevelsOff) => by_contents().or_else(with_shared).or(by_size),
            Some(_) => by_size,
            None => by_contents(),
        }?;
        Some((trend, counts.iter().all(|&count| count > 0)))
    }

    /// Whether a collection only grows with its contents: then the contents are reported.
    fn is_passed_on(&self, at: u32, in_place: bool, growing: &[Option<(Trend, bool)>]) -> bool {
        if !in_place {
            return false;
        }
        let all = gained(&self.all[at as usize], |sum| sum.size);
        let mut open = self.below[at as usize].clone();
        let mut below = 0;
        while let Some(node) = open.pop() {
            if growing[node as usize].is_some() {
                below += gained(&self.all[node as usize], |sum| sum.size);
            } else {
                open.extend(&self.below[node as usize]);
            }
        }
        below * 2 >= all
    }

    /// Whether the same objects in frames accumulate others: the objects of a pool differ with each job.
    fn collects(&self, held: u32, node: u32) -> bool {
        let turnover = &self.tree.turnover;
        let counts = self.own[held as usize].windows(2);
        let are_as_many = counts.into_iter().all(|pair| pair[0].count == pair[1].count);
        held != node && are_as_many && turnover.is_lasting(held) && turnover.is_lasting(node)
    }

    /// The number of threads or fibers that reference it other than by a thread-local, and the node that they
    /// reference.
    fn stacks(&self, node: u32) -> Option<(u64, u32)> {
        let path = self.tree.path(node);
        let node = |at: u32| &self.tree.nodes[at as usize];
        let mut pairs = path.windows(2);
        let at = pairs.position(|pair| is_in_frame(node(pair[0]), node(pair[1])))?;
        let threads = self.own[path[at] as usize].last()?.count;
        Some((threads, path[at + 1]))
    }

    /// The nodes from a growing one down to where most of its growth is.
    pub fn most(&self, from: u32) -> Vec<u32> {
        let gains = |at: &u32| gained(&self.all[*at as usize], |sum| sum.size);
        let next = |at: &u32| {
            let largest = self.below[*at as usize].iter().copied().max_by_key(gains)?;
            (gains(&largest) * 2 > gains(at)).then_some(largest)
        };
        std::iter::successors(Some(from), next).collect()
    }

    /// Growth in bytes since the first heap, including everything below.
    pub fn gained(&self, at: u32) -> u64 {
        gained(&self.all[at as usize], |sum| sum.size)
    }

    /// Growth of a node's objects since the first heap.
    pub fn more(&self, at: u32) -> Sum {
        let own = &self.own[at as usize];
        Sum { count: gained(own, |sum| sum.count), size: gained(own, |sum| sum.size) }
    }

    /// Growth in malloc blocks since the first heap, of a growing node and everything below.
    pub fn blocks(&self, found: &Growing) -> Sum {
        let mut blocks = Sum::default();
        let mut open = found.alike.clone();
        while let Some(at) = open.pop() {
            if self.tree.nodes[at as usize].nature == Nature::Block {
                blocks.add(self.more(at));
            }
            open.extend(&self.below[at as usize]);
        }
        blocks
    }

    pub(super) fn add_lines(&self, found: &mut [Growing]) {
        let mut of = vec![None; self.own.len()];
        for (number, found) in found.iter().enumerate() {
            for &node in found.alike.iter().chain(&found.beside) {
                of[node as usize] = Some(number);
            }
        }
        for at in 1..of.len() {
            of[at] = of[at].or(of[self.tree.nodes[at].parent as usize]);
        }
        let mut lines: Vec<FxHashMap<(NameId, Made), (Sum, Sum)>> = Vec::new();
        lines.resize_with(found.len(), FxHashMap::default);
        for (&(node, made), sums) in &self.tree.lines {
            let Some(number) = of[node as usize] else {
                continue;
            };
            let class = self.tree.nodes[node as usize].class;
            let (first, last) = lines[number].entry((class, made)).or_default();
            if self.tree.heaps > 1 {
                first.add(sums.first().copied().unwrap_or_default());
            }
            last.add(sums.get(self.tree.heaps - 1).copied().unwrap_or_default());
        }
        for (found, lines) in found.iter_mut().zip(lines) {
            let more = lines.into_iter().map(|((class, made), (first, last))| {
                let more = Sum {
                    count: last.count.saturating_sub(first.count),
                    size: last.size.saturating_sub(first.size),
                };
                (class, made, more)
            });
            found.lines = more.filter(|(.., more)| more.size > 0).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_from_heap_to_heap_has_a_trend() {
        assert_eq!(Trend::of(&[10, 20], 5), Some(Trend::Unknown));
        assert_eq!(Trend::of(&[10, 12], 5), None);
        assert_eq!(Trend::of(&[10, 20, 30], 5), Some(Trend::Grows));
        assert_eq!(Trend::of(&[10, 20, 20], 5), None);
        assert_eq!(Trend::of(&[0, 100, 110], 5), Some(Trend::LevelsOff));
        assert_eq!(Trend::of(&[10, 20, 15, 30, 40], 5), Some(Trend::Grows));
        assert_eq!(Trend::of(&[10, 20, 15, 22, 11], 5), None);
        assert_eq!(Trend::of(&[10], 5), None);
        assert_eq!(Trend::of(&[], 5), None);
    }
}

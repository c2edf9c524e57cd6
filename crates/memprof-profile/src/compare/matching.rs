//! Matches lines of the side before with lines of the side after.
//!
//! A change to a file moves the lines below it. So lines are matched step by step, from certain to likely; each step sees only
//! lines that no earlier step has matched.

use std::hash::Hash;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use super::side::Site;

/// How two lines were matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Match {
    /// Same file, line, method, class, and text if known.
    Same,
    /// Same file, method, class and text on another line.
    Moved,
    /// Same file, class and text in a method of another name.
    MethodRenamed,
    /// Same file, method and class; the nearest unmatched line. Its text differs or is unknown.
    Nearest,
    /// Same method, class and text in another file, and neither file is on both sides.
    FileRenamed,
    /// Only after.
    New,
    /// Only before.
    Gone,
}

impl Match {
    /// All ways.
    pub const ALL: [Match; 7] = [
        Match::Same,
        Match::Moved,
        Match::MethodRenamed,
        Match::Nearest,
        Match::FileRenamed,
        Match::New,
        Match::Gone,
    ];
}

/// A line on both sides, or on one of them.
#[derive(Debug)]
pub(super) struct Pair<'s> {
    pub before: Option<&'s Site>,
    pub after: Option<&'s Site>,
    pub matched: Match,
}

impl Pair<'_> {
    /// The line's previous location, if it differs.
    pub fn was(&self) -> Option<String> {
        let (before, after) = (self.before?, self.after?);
        let moved = (&before.file, before.line) != (&after.file, after.line);
        moved.then(|| format!("{}:{}", before.file, before.line))
    }
}

/// With more lines of the same key on both sides, lines are matched in order.
const COMPARED: usize = 64;

struct Matcher<'s> {
    before: Vec<&'s Site>,
    after: Vec<&'s Site>,
    pairs: Vec<Pair<'s>>,
}

/// Matches the lines of two sides; with `sources`, also by text.
pub(super) fn pairs<'s>(before: &[&'s Site], after: &[&'s Site], sources: bool) -> Vec<Pair<'s>> {
    let (old, new) = (files(before), files(after));
    let only =
        |site: &Site| !(old.contains(site.file.as_str()) && new.contains(site.file.as_str()));
    let text = |site: &'s Site| site.source.as_deref().filter(|text| sources && !text.is_empty());
    let mut matcher = Matcher {
        before: before.to_vec(),
        after: after.to_vec(),
        pairs: Vec::with_capacity(after.len()),
    };
    matcher.step(Match::Same, |site| {
        let place = (&site.file, site.line, &site.method);
        Some((place, &site.class, text(site)))
    });
    matcher.step(Match::Moved, |site| Some((&site.file, &site.method, &site.class, text(site)?)));
    matcher.step(Match::MethodRenamed, |site| Some((&site.file, &site.class, text(site)?)));
    matcher.step(Match::Nearest, |site| Some((&site.file, &site.method, &site.class)));
    matcher.step(Match::FileRenamed, |site| {
        only(site).then_some(())?;
        Some((&site.method, &site.class, text(site)?))
    });
    matcher.rest()
}

fn files<'s>(sites: &[&'s Site]) -> FxHashSet<&'s str> {
    sites.iter().map(|site| site.file.as_str()).collect()
}

impl<'s> Matcher<'s> {
    /// Matches lines with the same key, nearest first.
    fn step<K: Hash + Eq>(&mut self, matched: Match, key: impl Fn(&'s Site) -> Option<K>) {
        let mut keys: FxHashMap<K, [Vec<&'s Site>; 2]> = FxHashMap::default();
        let mut unkeyed = [Vec::new(), Vec::new()];
        let sides = [std::mem::take(&mut self.before), std::mem::take(&mut self.after)];
        for (side, sites) in sides.into_iter().enumerate() {
            for site in sites {
                match key(site) {
                    Some(key) => keys.entry(key).or_default()[side].push(site),
                    None => unkeyed[side].push(site),
                }
            }
        }
        let mut left = unkeyed;
        for [mut before, mut after] in keys.into_values() {
            before.sort_by_key(|site| site.line);
            after.sort_by_key(|site| site.line);
            let mut used = [vec![false; before.len()], vec![false; after.len()]];
            for (old, new) in nearest(&before, &after) {
                (used[0][old], used[1][new]) = (true, true);
                self.pairs.push(Pair {
                    before: Some(before[old]),
                    after: Some(after[new]),
                    matched,
                });
            }
            for ((left, sites), used) in left.iter_mut().zip([before, after]).zip(used) {
                let unused = sites.into_iter().zip(used).filter(|(_, used)| !used);
                left.extend(unused.map(|(site, _)| site));
            }
        }
        [self.before, self.after] = left;
    }

    /// All pairs, and the unmatched lines of either side.
    fn rest(self) -> Vec<Pair<'s>> {
        let mut pairs = self.pairs;
        pairs.extend(self.after.into_iter().map(|site| Pair {
            before: None,
            after: Some(site),
            matched: Match::New,
        }));
        pairs.extend(self.before.into_iter().map(|site| Pair {
            before: Some(site),
            after: None,
            matched: Match::Gone,
        }));
        pairs
    }
}

/// Indices of matching lines, each used once. Both lists are sorted by line.
fn nearest(before: &[&Site], after: &[&Site]) -> Vec<(usize, usize)> {
    let few = before.len().min(after.len());
    if before.len() == after.len() || before.len().max(after.len()) > COMPARED {
        return (0..few).map(|index| (index, index)).collect();
    }
    let mut all: Vec<(u32, usize, usize)> = Vec::with_capacity(before.len() * after.len());
    for (old, one) in before.iter().enumerate() {
        for (new, other) in after.iter().enumerate() {
            all.push((one.line.abs_diff(other.line), old, new));
        }
    }
    all.sort_unstable();
    let mut used = (vec![false; before.len()], vec![false; after.len()]);
    let mut chosen = Vec::with_capacity(few);
    for (_, old, new) in all {
        if !used.0[old] && !used.1[new] {
            (used.0[old], used.1[new]) = (true, true);
            chosen.push((old, new));
        }
    }
    chosen
}

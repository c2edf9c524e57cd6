//! The line of the application behind a suspect, whose sites often lie in a gem.
//!
//! The search goes down the dominator tree from what a suspect retains. On each way it ends at the first object that the
//! application's code stands behind, and what that object retains is counted for its line. The line with the most is named.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::Nature;
use super::search::{Found, Search};
use crate::query::Pattern;
use crate::questions::procs;
use crate::questions::tally::percent;
use memprof_dump::record::NameId;
use memprof_heap::NONE;
use memprof_paths::{evaluated_at, is_application};

/// What an object has to do with a line of the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// It is a block or lambda written there.
    Block,
    /// It was allocated there.
    Allocation,
    /// It was allocated elsewhere, but its class was defined there.
    Class,
}

/// A line of the application.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OwnCode {
    /// What the objects have to do with the line.
    pub kind: Origin,
    /// Path.
    pub file: String,
    /// Line; 0 if not known.
    pub line: u32,
    /// Method.
    pub method: Option<String>,
    /// The class that retains the most of them.
    pub class: String,
    /// How many are of that class.
    pub of_class: u64,
    /// Objects.
    pub count: u64,
    /// Bytes that they retain.
    pub retained: u64,
    /// In percent of the memsize of the whole heap.
    pub percent: f64,
    /// In percent of what the suspect retains.
    pub share: f64,
}

/// A line that has to do with less than one in so many bytes of a suspect is not behind it.
const LEAST: u64 = 100;

type Place<'h> = (Origin, &'h str, u32);

/// File, line and method.
type OwnLine<'h> = (&'h str, u32, Option<&'h str>);

#[derive(Default)]
struct Tally<'h> {
    method: Option<&'h str>,
    count: u64,
    retained: u64,
    /// Count and retained bytes by class.
    classes: FxHashMap<u32, (u64, u64)>,
}

fn most<'h>(tallies: FxHashMap<Place<'h>, Tally<'h>>) -> Option<(Place<'h>, Tally<'h>)> {
    tallies
        .into_iter()
        .max_by_key(|&(place, ref tally)| (tally.retained, Reverse(place)))
}

/// Finds lines of the application.
pub(super) struct Finder<'s, 'h> {
    search: &'s Search<'h>,
    /// Files that are the application's, in place of what is no gem.
    pattern: Option<&'s Pattern>,
    facts: [Option<NameId>; 3],
    /// The class of each group of objects.
    classes: Vec<u32>,
    sites: FxHashMap<(u32, bool), Option<OwnLine<'h>>>,
    /// Lines of the application that called a library count for what the library allocated.
    calls: bool,
}

impl<'s, 'h> Finder<'s, 'h> {
    pub fn new(search: &'s Search<'h>, pattern: Option<&'s Pattern>) -> Finder<'s, 'h> {
        Finder {
            search,
            pattern,
            facts: procs::WRITTEN.map(|name| search.heap.names().find(name)),
            classes: search.heap.group_classes(),
            sites: FxHashMap::default(),
            calls: false,
        }
    }

    /// The line behind a suspect; `None` if no object that it retains has one. What the application wrote or allocated
    /// says more than what it had a library allocate.
    pub fn line(&mut self, found: &Found) -> Option<OwnCode> {
        self.calls = false;
        let line = self.most_below(found);
        self.calls = true;
        line.or_else(|| self.most_below(found))
    }

    fn most_below(&mut self, found: &Found) -> Option<OwnCode> {
        let below = match found.nature {
            Nature::List => self.elements(found).or_else(|| self.below(&[found.node])),
            Nature::Object | Nature::Group => self.below(&found.members),
        };
        let mut itself = FxHashMap::default();
        // What is below explains more, unless it is less than a tenth.
        let little = below
            .as_ref()
            .is_none_or(|(_, tally)| tally.retained.saturating_mul(10) < found.retained);
        if little && matches!(found.nature, Nature::Object) {
            self.count(found.node, found.retained, &mut itself);
        }
        let (place, tally) = most(itself).or(below)?;
        // Something of the application is below almost everything.
        if tally.retained.saturating_mul(LEAST) < found.retained {
            return None;
        }
        Some(self.described(place, &tally, found.retained))
    }

    /// The line of most elements of a list. What each retains alone is counted: the first retains all.
    fn elements(&mut self, list: &Found) -> Option<(Place<'h>, Tally<'h>)> {
        let mut tallies = FxHashMap::default();
        for (&element, part) in list.members.iter().zip(list.parts(self.search.retained)) {
            self.count(element, part, &mut tallies);
        }
        most(tallies)
    }

    fn below(&mut self, members: &[u32]) -> Option<(Place<'h>, Tally<'h>)> {
        let tree = self.search.tree;
        let mut tallies = FxHashMap::default();
        for &member in members {
            let Some(start) = tree.place(member) else {
                continue;
            };
            let (mut at, end) = (start as usize, tree.subtree_end(member) as usize);
            while at < end {
                let node = tree.nodes()[at];
                let known = self.count(node, self.search.retained.get(node), &mut tallies);
                at = if known {
                    tree.ends()[at] as usize
                } else {
                    at + 1
                };
            }
        }
        most(tallies)
    }

    /// Counts an object that has a line of the application.
    fn count(
        &mut self,
        node: u32,
        retained: u64,
        tallies: &mut FxHashMap<Place<'h>, Tally<'h>>,
    ) -> bool {
        let Some((place, method)) = self.place(node) else {
            return false;
        };
        let tally = tallies.entry(place).or_default();
        tally.method = tally.method.or(method);
        tally.count += 1;
        tally.retained = tally.retained.saturating_add(retained);
        let (count, sum) = tally.classes.entry(self.search.class(node)).or_default();
        (*count, *sum) = (*count + 1, sum.saturating_add(retained));
        true
    }

    fn place(&mut self, node: u32) -> Option<(Place<'h>, Option<&'h str>)> {
        if self.search.is_root(node) {
            return None;
        }
        match self.search.describer.words.internal_name(node) {
            Some("proc") => {
                if let Some((file, line, method)) = self.written(node) {
                    return Some(((Origin::Block, file, line), method));
                }
            }
            // The block or the code of a method says more than its entry in a table.
            Some("ment") => return None,
            _ => {}
        }
        let number = self.search.sites.get(node as usize).copied();
        if let Some((file, line, method)) = self.site(number.unwrap_or(NONE)) {
            return Some(((Origin::Allocation, file, line), method));
        }
        let group = *self.search.groups.get(node as usize)?;
        let class = *self.classes.get(group as usize)?;
        let number = self.search.sites.get(class as usize).copied();
        let (file, line, _) = self.site(number?)?;
        Some(((Origin::Class, file, line), None))
    }

    fn written(&self, node: u32) -> Option<(&'h str, u32, Option<&'h str>)> {
        let heap = self.search.heap;
        let place = procs::written(heap, node, self.facts)?;
        let (file, line) = self.own(heap.name(place.file?), place.line)?;
        Some((file, line, place.method.map(|name| heap.name(name))))
    }

    /// The line of the application behind an allocation: that of the site, or the one that called it.
    fn site(&mut self, number: u32) -> Option<OwnLine<'h>> {
        if let Some(&known) = self.sites.get(&(number, self.calls)) {
            return known;
        }
        let heap = self.search.heap;
        let site = heap.sites().get(number as usize);
        let caller = site
            .filter(|_| self.calls)
            .and_then(|site| heap.caller(site));
        let own = [site, caller].into_iter().flatten().find_map(|site| {
            let (file, line) = self.own(heap.name(site.file), site.line)?;
            Some((file, line, site.method.map(|name| heap.name(name))))
        });
        self.sites.insert((number, self.calls), own);
        own
    }

    /// The place if it is the application's; of evaluated code that does not say where it is written, where it was
    /// evaluated.
    fn own(&self, file: &'h str, line: u32) -> Option<(&'h str, u32)> {
        let (file, line) = evaluated_at(file).unwrap_or((file, line));
        let own = match self.pattern {
            Some(pattern) => pattern.matches(file),
            None => is_application(file),
        };
        own.then_some((file, line))
    }

    fn described(&self, (kind, file, line): Place<'h>, tally: &Tally<'h>, all: u64) -> OwnCode {
        let name = |class: u32| {
            let class = self.search.heap.classes().get(class as usize);
            class.map_or("", |class| self.search.heap.name(class.name))
        };
        let class = tally
            .classes
            .iter()
            .max_by_key(|&(&class, &(count, retained))| (retained, count, Reverse(name(class))));
        let (class, of_class) = class.map_or(("", 0), |(&class, &(count, _))| (name(class), count));
        OwnCode {
            kind,
            file: file.to_owned(),
            line,
            method: tally.method.map(str::to_owned),
            class: class.to_owned(),
            of_class,
            count: tally.count,
            retained: tally.retained,
            percent: self.search.describer.percent(tally.retained),
            share: percent(tally.retained, all),
        }
    }
}

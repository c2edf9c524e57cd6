//! What a suspect has accumulated, by class.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::search::{Found, Search};
use crate::order;
use crate::questions::Site;
use memprof_heap::NONE;

/// Classes that are named of what has accumulated.
const CLASSES: usize = 5;

/// Objects of one class that have accumulated.
#[derive(Clone, Debug, Serialize)]
pub struct Accumulated {
    /// Class, or what stands for it.
    pub class: String,
    /// Objects.
    pub count: u64,
    /// Bytes that they retain.
    pub retained: u64,
    /// The line that allocated more of them than any other.
    pub site: Option<Site>,
    /// How many of them it allocated.
    pub at_site: u64,
    /// First and last generation in which they were allocated.
    pub generations: Option<(u32, u32)>,
}

impl Accumulated {
    /// Whether one line allocated more than half of them.
    pub(super) fn is_mostly_at_site(&self) -> bool {
        self.at_site * 2 > self.count
    }

    /// The line that allocated most of them, if there is one.
    pub(super) fn main_site(&self) -> Option<&Site> {
        self.site.as_ref().filter(|_| self.is_mostly_at_site())
    }
}

impl Search<'_> {
    /// The classes of the members, the largest first.
    pub(super) fn accumulated(&self, found: &Found) -> Vec<Accumulated> {
        let mut by_class: FxHashMap<u32, (u64, Vec<u32>)> = FxHashMap::default();
        for (&node, part) in found.members.iter().zip(found.parts(self.retained)) {
            let (sum, nodes) = by_class.entry(self.class(node)).or_default();
            *sum = sum.saturating_add(part);
            nodes.push(node);
        }
        let mut all: Vec<Accumulated> = by_class
            .into_values()
            .map(|(sum, nodes)| self.of_class(sum, &nodes))
            .collect();
        order::sort_by(&mut all, |one, other| {
            other
                .retained
                .cmp(&one.retained)
                .then_with(|| one.class.cmp(&other.class))
        });
        all.truncate(CLASSES);
        all
    }

    fn of_class(&self, sum: u64, nodes: &[u32]) -> Accumulated {
        let most = self.main_line(nodes);
        let generations = || {
            nodes
                .iter()
                .filter_map(|&node| self.describer.generation(node))
        };
        Accumulated {
            class: nodes.first().map_or_else(String::new, |&node| {
                self.describer.words.class(node).to_owned()
            }),
            count: nodes.len() as u64,
            retained: sum,
            site: most.and_then(|(_, number)| self.describer.site_of(number)),
            at_site: most.map_or(0, |(count, _)| count),
            generations: generations().min().zip(generations().max()),
        }
    }

    /// How many of the nodes were allocated by the line that allocated more of them than any other, and the number of one
    /// of its sites: there is one for each method. Code in C has no line.
    fn main_line(&self, nodes: &[u32]) -> Option<(u64, u32)> {
        let mut sites: FxHashMap<u32, u64> = FxHashMap::default();
        for &node in nodes {
            let site = self.sites.get(node as usize).copied();
            *sites.entry(site.unwrap_or(NONE)).or_default() += 1;
        }
        let mut lines: FxHashMap<(&str, u32), (u64, u32)> = FxHashMap::default();
        for (number, count) in sites {
            let Some(site) = self.heap.sites().get(number as usize) else {
                continue;
            };
            if self.heap.name(site.file).is_empty() {
                continue;
            }
            let line = lines.entry((self.heap.name(site.file), site.line));
            let (sum, first) = line.or_insert((0, number));
            (*sum, *first) = (*sum + count, number.min(*first));
        }
        let most = lines
            .into_iter()
            .max_by_key(|&(line, (count, _))| (count, Reverse(line)));
        most.map(|(_, found)| found)
    }
}

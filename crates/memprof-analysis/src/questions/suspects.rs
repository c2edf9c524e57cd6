//! Leak suspects: what keeps a large part of the heap alive, and why.
//!
//! As in Eclipse's Memory Analyzer, an object that retains a tenth of the heap is looked at more closely. The search goes
//! down the dominator tree as long as there is a child that is as large as that. Where there is none, memory has
//! accumulated: that object is a suspect, with what it holds by class. What is left over beside large children, or
//! below the roots, is a suspect if the objects of one class together are as large.

mod sentence;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::describe::{Described, Describer, Site};
use super::path::{self, Path};
use super::{Error, Phrase};
use memprof_dump::record::Kind;
use memprof_heap::graph::Tree;
use memprof_heap::{Heap, NONE, Sizes};

/// Percent of the heap that make a suspect.
const THRESHOLD: f64 = 10.0;

/// Threads that a server may have waiting, each with a stack of its own: so many are no leak.
const POOL: usize = 100;

/// Classes that are named of what has accumulated.
const CLASSES: usize = 5;

/// `suspects`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// Percent of the heap that make a suspect; 10.
    pub threshold: Option<f64>,
    /// Maximum number of suspects; 10.
    pub limit: Option<usize>,
}

/// What a suspect is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Nature {
    /// One object.
    Object,
    /// Many objects of one class.
    Group,
}

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
    fn is_mostly_at_site(&self) -> bool {
        self.at_site * 2 > self.count
    }

    /// The line that allocated most of them, if there is one.
    fn main_site(&self) -> Option<&Site> {
        self.site.as_ref().filter(|_| self.is_mostly_at_site())
    }
}

/// What may be a leak.
#[derive(Clone, Debug, Serialize)]
pub struct Suspect {
    /// One object or many.
    pub kind: Nature,
    /// The object; of a group, the largest one.
    pub object: Described,
    /// Bytes retained.
    pub retained: u64,
    /// In percent of the memsize of the whole heap.
    pub percent: f64,
    /// What has accumulated, the largest first.
    pub accumulated: Vec<Accumulated>,
    /// From a root to the object; of a group, to the largest one.
    pub path: Path,
    /// What retains it, in words: the path without the object.
    pub retained_by: Phrase,
    /// Where the object, or most of what it accumulates, was allocated.
    pub site: Option<Site>,
    /// All of it in a sentence.
    pub sentence: String,
    /// The same, with places in files apart.
    pub phrase: Phrase,
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// Bytes that are reachable.
    pub total: u64,
    /// Percent that make a suspect.
    pub threshold: f64,
    /// The largest first.
    pub suspects: Vec<Suspect>,
    /// Suspects that are not returned.
    pub more: usize,
    /// In words, if there is nothing to tell, or something that spoils the picture.
    pub remarks: Vec<String>,
}

impl Question {
    /// The answer.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn answer(&self, heap: &Heap) -> Result<Answer, Error> {
        let threshold = self.threshold.unwrap_or(THRESHOLD);
        if !(threshold > 0.0 && threshold <= 100.0) {
            return Err(Error::Question(
                "threshold must be a percentage between 0 and 100".to_owned(),
            ));
        }
        let search = Search::new(heap, threshold)?;
        let mut found = search.found();
        found.sort_by_key(|found| (Reverse(found.retained), found.node));
        let limit = self.limit.unwrap_or(10);
        let more = found.len().saturating_sub(limit);
        found.truncate(limit);
        let suspects = found
            .into_iter()
            .map(|found| search.suspect(found))
            .collect::<Result<Vec<_>, _>>()?;
        let remarks = search.remarks(&suspects);
        Ok(Answer {
            total: search.total,
            threshold,
            suspects,
            more,
            remarks,
        })
    }
}

/// A suspect before it is described.
struct Found {
    nature: Nature,
    node: u32,
    retained: u64,
    members: Vec<u32>,
}

struct Search<'h> {
    heap: &'h Heap,
    describer: Describer<'h>,
    tree: &'h Tree,
    retained: &'h Sizes,
    shown: Vec<u32>,
    groups: &'h [u32],
    sites: &'h [u32],
    total: u64,
    least: u64,
}

impl<'h> Search<'h> {
    fn new(heap: &'h Heap, threshold: f64) -> Result<Search<'h>, Error> {
        let retained = heap.retained()?;
        let total = retained.get(heap.root());
        Ok(Search {
            heap,
            describer: Describer::new(heap)?,
            tree: heap.tree()?,
            retained,
            shown: heap.groups().iter().map(|group| group.shown).collect(),
            groups: heap.group_numbers()?,
            sites: heap.site_numbers()?,
            total,
            least: ((heap.memsizes()?.sum() as f64 * threshold / 100.0) as u64).max(1),
        })
    }

    fn class(&self, node: u32) -> u32 {
        let group = self.groups.get(node as usize);
        group
            .and_then(|&group| self.shown.get(group as usize))
            .copied()
            .unwrap_or(NONE)
    }

    fn is_root(&self, node: u32) -> bool {
        node >= self.heap.len()
    }

    /// Code that is loaded is no leak, as long as no single object has gathered it.
    fn is_code(&self, node: u32) -> bool {
        let group = self
            .groups
            .get(node as usize)
            .and_then(|&group| self.heap.groups().get(group as usize));
        group.is_some_and(|group| {
            matches!(
                group.kind,
                Kind::IMEMO | Kind::CLASS | Kind::MODULE | Kind::ICLASS
            )
        })
    }

    /// A thread or fiber of which nearly all is its stack. That is as large from the first call on.
    fn is_stack(&self, node: u32) -> bool {
        let name = self.describer.words.internal_name(node);
        let size = self.describer.size(node);
        matches!(name, Some("VM/thread" | "thread" | "fiber"))
            && size.saturating_mul(10) >= self.retained.get(node).saturating_mul(9)
    }

    fn found(&self) -> Vec<Found> {
        let mut found = Vec::new();
        let mut open = vec![self.heap.root()];
        while let Some(node) = open.pop() {
            if self.is_stack(node) {
                continue;
            }
            let (large, small): (Vec<u32>, Vec<u32>) = self
                .tree
                .children(node)
                .partition(|&child| self.retained.get(child) >= self.least);
            if large.is_empty() && !self.is_root(node) {
                let retained = self.retained.get(node);
                found.push(Found {
                    nature: Nature::Object,
                    node,
                    retained,
                    members: small,
                });
                continue;
            }
            if self.gathers(node, &small) {
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

    /// Whether what an object retains beside its large children makes it a suspect of its own. Roots and `Object` hold what
    /// has nothing in common.
    fn gathers(&self, node: u32, small: &[u32]) -> bool {
        if self.is_root(node) || self.describer.words.short(node) == "Object" {
            return false;
        }
        let sizes = small.iter().map(|&child| self.retained.get(child));
        sizes.fold(0, u64::saturating_add) >= self.least
    }

    /// Classes whose objects, none of them large, are together as large as a suspect.
    fn groups_of(&self, nodes: &[u32], found: &mut Vec<Found>) {
        let mut by_class: FxHashMap<u32, (u64, Vec<u32>)> = FxHashMap::default();
        for &node in nodes
            .iter()
            .filter(|&&node| !self.is_root(node) && !self.is_code(node))
        {
            let (sum, members) = by_class.entry(self.class(node)).or_default();
            *sum = sum.saturating_add(self.retained.get(node));
            members.push(node);
        }
        for (mut retained, mut members) in by_class.into_values() {
            // The main thread, or one that holds something, may be among those of a pool.
            let stacks = members.iter().filter(|&&node| self.is_stack(node));
            let sizes: Vec<u64> = stacks.map(|&node| self.retained.get(node)).collect();
            if (1..=POOL).contains(&sizes.len()) {
                members.retain(|&node| !self.is_stack(node));
                retained -= sizes.iter().sum::<u64>();
            }
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

    fn accumulated(&self, members: &[u32]) -> Vec<Accumulated> {
        let mut by_class: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for &node in members {
            by_class.entry(self.class(node)).or_default().push(node);
        }
        let mut all: Vec<Accumulated> = by_class
            .into_values()
            .map(|nodes| self.of_class(&nodes))
            .collect();
        all.sort_by(|one, other| {
            other
                .retained
                .cmp(&one.retained)
                .then_with(|| one.class.cmp(&other.class))
        });
        all.truncate(CLASSES);
        all
    }

    fn of_class(&self, nodes: &[u32]) -> Accumulated {
        let sum = nodes.iter().fold(0_u64, |sum, &node| {
            sum.saturating_add(self.retained.get(node))
        });
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

    fn suspect(&self, found: Found) -> Result<Suspect, Error> {
        let object = self.describer.describe(found.node);
        let accumulated = self.accumulated(&found.members);
        let nodes = path::to(self.heap, found.node)?;
        let path = path::described(&self.describer, &nodes);
        let percent = self.describer.percent(found.retained);
        let of_most = accumulated
            .first()
            .and_then(Accumulated::main_site)
            .cloned();
        let own = object.site.clone().filter(|site| !site.file.is_empty());
        let site = match found.nature {
            Nature::Object => of_most.or(own),
            Nature::Group => of_most,
        };
        let mut suspect = Suspect {
            kind: found.nature,
            object,
            retained: found.retained,
            percent,
            accumulated,
            path,
            retained_by: self.retained_by(&nodes),
            site,
            sentence: String::new(),
            phrase: Phrase::default(),
        };
        suspect.phrase = self.sentence(&suspect, &nodes);
        suspect.sentence = suspect.phrase.to_string();
        Ok(suspect)
    }

    /// The path to a suspect without the suspect itself.
    fn retained_by(&self, nodes: &[u32]) -> Phrase {
        path::holder(&self.describer.words, nodes)
    }
}

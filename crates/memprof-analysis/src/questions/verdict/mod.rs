//! The verdict: objects that grow from heap to heap of a process, what retains them, and which line allocated them.

mod alike;
mod also;
mod growth;
mod large;
mod lost;
mod merged;
pub mod merged_paths;
mod reading;
#[cfg(test)]
mod tests;
mod together;
mod turnover;
mod why;

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::describe::{Described, Describer, Site};
use super::memory::ledger;
use super::overview::process_facts;
use super::{Error, Limit, Phrase, Remark, own_files, tracking};
use crate::order;
use crate::query::Pattern;
use growth::{Growing, Search};
use memprof_dump::record::NameId;
use memprof_heap::{Heap, NONE, Own};
use memprof_ledger::{Facts, Growth as MemoryGrowth, Ledger};
use memprof_paths::{evaluated_at, is_application};
use merged::{HIDDEN, Line, Link, Made, Nature, Tree, is_global_scope};

pub use growth::Trend;
pub use lost::{Alike, Lost};
pub use merged::Sum;
pub use why::Why;

/// Percentage of the reachable bytes that makes a finding, if there is one heap.
const THRESHOLD: f64 = 1.0;

/// Maximum number of lines per finding.
const LINES: usize = 3;

/// In a single heap, a line is behind a finding if it allocated at least one in so many bytes of it.
const PART: u64 = 10;

/// A line that allocated less than one in so many bytes of the growth is insignificant.
const LITTLE: u64 = 100;

/// Maximum number of steps shown of a path.
const STEPS: usize = 12;

/// Heaps of a process, each reduced to a tree as it is added.
#[derive(Default)]
pub struct Verdict {
    tree: Tree,
    /// The sum of all processes at each time; `None` if that of one is unknown.
    ledgers: Vec<Option<Ledger>>,
    /// When the dumps were written, in microseconds since 1970.
    times: Vec<Option<i64>>,
    /// Unreferenced malloc blocks by size, at each time; `None` if a dump has no blocks.
    lost: Vec<Option<FxHashMap<u64, u64>>>,
    /// Whether the dump is read from the memory of a process, at each time.
    images: Vec<bool>,
    /// A dump has no roots, or is a part of a heap without the objects that they reference.
    rootless: bool,
}

/// The question.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// Maximum number of findings.
    pub limit: Limit<3>,
    /// With one heap: minimum percentage of the reachable bytes for a finding (default: 1).
    pub threshold: Option<f64>,
    /// A regexp for paths of application files (default: all files outside gems and the standard library).
    pub own: Option<String>,
}

impl Question {
    /// The verdict on one heap.
    ///
    /// # Errors
    /// If its index cannot be read, or the question is invalid.
    pub fn answer(&self, heap: &Heap) -> Result<Answer, Error> {
        let mut verdict = Verdict::default();
        verdict.add(heap, false)?;
        verdict.answer(self, heap)
    }

    fn threshold(&self) -> Result<f64, Error> {
        let percent = self.threshold.unwrap_or(THRESHOLD);
        if percent > 0.0 && percent <= 100.0 {
            return Ok(percent);
        }
        let expected = "threshold must be a percentage between 0 and 100".to_owned();
        Err(Error::Question(expected))
    }
}

/// Allocation site of objects that grow.
#[derive(Clone, Debug, Serialize)]
pub struct Allocated {
    /// Their class.
    pub class: String,
    /// The line.
    #[serde(flatten)]
    pub site: Site,
    /// Whether the line belongs to the application.
    pub own: bool,
    /// Growth since the first heap.
    #[serde(flatten)]
    pub more: Sum,
}

/// The kind of an object, which determines how it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Any object.
    Object,
    /// A class or module.
    Class,
    /// A thread.
    Thread,
    /// A fiber.
    Fiber,
}

/// Objects below those that grow.
#[derive(Clone, Debug, Serialize)]
pub struct Mostly {
    /// Path from the growing objects: `Document@pages -> Array[*]`.
    pub path: Phrase,
    /// Class of the objects.
    pub class: String,
    /// Growth since the first heap.
    #[serde(flatten)]
    pub more: Sum,
}

/// Objects that grow.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Class of the objects.
    pub class: String,
    /// Their kind.
    pub kind: Kind,
    /// Path to them, without indices and keys: `Registry::TENANTS -> Hash[*] -> Tenant@notes -> Array[*]`.
    pub retained_by: Phrase,
    /// Other referrers of at least half of them, which would still retain them.
    pub also: Vec<Phrase>,
    /// Number of places that only differ in the referrers of their referrers.
    pub places: usize,
    /// Each object is below the previous one.
    pub list: bool,
    /// Their number is constant: they grow themselves.
    pub in_place: bool,
    /// The trend.
    pub trend: Trend,
    /// Number of objects in each heap.
    pub count: Vec<u64>,
    /// Bytes in each heap, including everything that only they retain.
    pub size: Vec<u64>,
    /// Growth in bytes since the first heap; of one heap, all bytes.
    pub gained: u64,
    /// First and last generation of the tracked objects of the last heap.
    pub generations: Option<(u32, u32)>,
    /// Allocation sites of the new objects: objects of that class first, then those with the most bytes.
    pub lines: Vec<Allocated>,
    /// The application line behind it.
    pub own: Option<Allocated>,
    /// Where most of the growth is, if not in the objects themselves.
    pub mostly: Option<Mostly>,
    /// Malloc blocks in the growth; null if the heap has none.
    pub blocks: Option<Sum>,
    /// Why they are retained, as far as the heap shows the reason.
    pub why: Option<Why>,
    /// The largest object.
    pub example: Option<Described>,
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// Number of heaps; those of several processes at the same time are one.
    pub heaps: usize,
    /// Seconds from the first to the last; null if a dump has no time.
    pub seconds: Option<f64>,
    /// Growth of the RSS by cause, for one heap from nothing; null if a dump lacks the measurements.
    pub memory: Option<MemoryGrowth>,
    /// RSS at each heap; null if not in the dump.
    pub rss: Vec<Option<u64>>,
    /// Bytes of malloc blocks in use at each heap, resident or not; null if unknown.
    pub malloc: Vec<Option<u64>>,
    /// Reachable objects in each heap.
    pub reachable: Vec<Sum>,
    /// Why growth or size is unknown; null if it is known.
    pub unknown: Option<Remark>,
    /// Objects that grow, largest growth first; in one heap, objects that are large.
    pub findings: Vec<Finding>,
    /// Findings that are not returned.
    pub more: usize,
    /// Unreferenced malloc blocks, if the heaps have blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Lost>,
    /// The generation of the last heap: number of GC runs; null if not in the dump.
    pub generation: Option<u32>,
    /// memprof's own objects, which are not counted.
    pub left_out: Own,
    /// Possible errors of the answer.
    pub remarks: Vec<Remark>,
}

/// Whether a heap lacks most objects that its objects or its roots reference. If few objects are left, one of them may
/// be on the stack by chance.
fn is_part(heap: &Heap) -> Result<bool, Error> {
    let classes = heap.group_classes();
    let graph = heap.graph(&classes)?;
    let roots = 0..heap.categories().len();
    let found: usize = roots.map(|root| graph.edges(heap.category_node(root)).count()).sum();
    let lost = heap.dangling()?.filter(|&(from, _)| from >= heap.len()).count();
    Ok(heap.source.missing > u64::from(heap.len()) || lost > found)
}

impl Verdict {
    /// Adds a later heap than the last, or one of another process `beside` it: then both count together.
    ///
    /// # Errors
    /// If its index cannot be read.
    pub fn add(&mut self, heap: &Heap, beside: bool) -> Result<(), Error> {
        let ledger = ledger(heap)?;
        self.tree.add(heap, beside)?;
        // The root itself is reached.
        let reached = self.tree.last.iter().filter(|&&node| node != NONE);
        let reached = reached.count().saturating_sub(1);
        let unrooted = reached == 0 || heap.categories().is_empty();
        self.rootless |= unrooted || is_part(heap)?;
        let lost = lost::by_size(heap, &self.tree.last)?;
        match (self.lost.last_mut().filter(|_| beside), lost) {
            (Some(Some(known)), Some(lost)) => {
                for (size, count) in lost {
                    *known.entry(size).or_default() += count;
                }
            }
            (Some(known), None) => *known = None,
            (Some(None), Some(_)) => {}
            (None, lost) => self.lost.push(lost),
        }
        match self.ledgers.last_mut().filter(|_| beside) {
            Some(known) => {
                *known = match (known.take(), ledger) {
                    (Some(known), Some(ledger)) => Some(known.and(&ledger)),
                    _ => None,
                }
            }
            None => {
                self.ledgers.push(ledger);
                let header = process_facts::header(heap);
                self.times.push(header.get("time_us").and_then(|time| time.as_i64()));
                self.images.push(process_facts::is_image(&header));
            }
        }
        Ok(())
    }

    /// Seconds from the first heap to the last.
    fn seconds(&self) -> Option<f64> {
        let (first, last) = (self.times.first()?.as_ref()?, self.times.last()?.as_ref()?);
        Some((last - first) as f64 / 1e6)
    }

    /// The verdict on all heaps so far. `last` was added last.
    ///
    /// # Errors
    /// If an index cannot be read.
    pub fn answer(&self, question: &Question, last: &Heap) -> Result<Answer, Error> {
        let own = own_files(question.own.as_deref())?;
        let search = Search::new(&self.tree);
        let found = match self.tree.heaps {
            1 => search.large(question.threshold()?),
            _ => search.found(),
        };
        let (found, more) = question.limit.cut(found);
        let describer = Describer::new(last)?;
        let also = self.also(&found, last)?;
        let finding =
            |found: &Growing| self.finding(found, &search, last, &describer, own.as_ref());
        let findings =
            found.iter().zip(also).map(|(found, also)| Finding { also, ..finding(found) });
        let findings: Vec<Finding> = findings.collect();
        let lines = (findings.iter())
            .map(|finding| !finding.lines.is_empty())
            .reduce(|one, other| one || other);
        let nothing = Some(Ledger::new(Facts::default(), None));
        let first = match self.tree.heaps {
            1 => Some(&nothing),
            _ => self.ledgers.first(),
        };
        let memory = match (first, self.ledgers.last()) {
            (Some(Some(first)), Some(Some(last))) => Some(first.until(last)),
            _ => None,
        };
        Ok(Answer {
            heaps: self.tree.heaps,
            seconds: self.seconds(),
            memory,
            rss: (self.ledgers.iter())
                .map(|ledger| ledger.as_ref().map(|ledger| ledger.facts.rss))
                .collect(),
            malloc: (self.ledgers.iter())
                .map(|ledger| {
                    let allocator = ledger.as_ref()?.facts.allocator.as_ref()?;
                    Some(allocator.in_use() + allocator.mapped)
                })
                .collect(),
            reachable: search.reachable(),
            unknown: self.rootless.then_some(Remark::Unretained),
            findings,
            more,
            blocks: Lost::of(&self.lost),
            generation: (process_facts::header(last).get("generation"))
                .and_then(|number| u32::try_from(number.as_u64()?).ok()),
            left_out: last.source.own,
            remarks: self.remarks(last, lines),
        })
    }

    fn remarks(&self, last: &Heap, lines: Option<bool>) -> Vec<Remark> {
        let mut remarks = tracking::remarks(last, lines);
        let with_blocks = self.lost.iter().filter(|lost| lost.is_some()).count();
        if (1..self.lost.len()).contains(&with_blocks) {
            remarks.push(Remark::BlocksDiffer);
        }
        if self.images.contains(&true) && self.images.contains(&false) {
            remarks.push(Remark::ImagesDiffer);
        }
        remarks
    }

    /// The same as JSON.
    ///
    /// # Errors
    /// As [`Verdict::answer`].
    pub fn json(&self, question: &Question, last: Option<&Heap>) -> Result<String, Error> {
        let last = last.ok_or_else(|| Error::Question("a verdict needs a heap".to_owned()))?;
        Ok(serde_json::to_string(&self.answer(question, last)?)?)
    }

    fn finding(
        &self,
        found: &Growing,
        search: &Search<'_>,
        last: &Heap,
        describer: &Describer<'_>,
        own: Option<&Pattern>,
    ) -> Finding {
        let is_own = &|file: &str| match own {
            Some(pattern) => pattern.matches(file),
            None => is_application(file),
        };
        let below = search.most(found.node);
        let node = &self.tree.nodes[found.node as usize];
        let mut lines = self.by_line(found, |made| Some(made.at), is_own);
        let own_lines = self.by_line(found, |made| self.own_line(made, is_own), is_own);
        let each = found.more().max(1);
        let class = self.text(node.class);
        let has = |line: &Allocated, part: u64| {
            line.more.size * part >= found.gained() || line.more.count * 2 >= each
        };
        // In one heap most objects may be older than the tracking.
        let one = self.tree.heaps == 1;
        lines.retain(|line| !one || has(line, PART));
        // Small application allocations below are insignificant, unless there is one per object.
        let own = (own_lines.into_iter()).find(|line| match one {
            true => has(line, PART),
            false => line.class == class || has(line, LITTLE),
        });
        Finding {
            class: self.text(node.class).to_owned(),
            kind: match node.nature {
                Nature::Thread => Kind::Thread,
                Nature::Fiber => Kind::Fiber,
                Nature::Known => Kind::Class,
                _ if why::is_nameless_class(self.text(node.class)) => Kind::Class,
                _ => Kind::Object,
            },
            retained_by: self.retained_by(found.node),
            places: found.alike.len(),
            list: node.is_list(),
            in_place: found.in_place,
            trend: found.trend,
            count: (search.heaps(&found.own).iter()).map(|sum| sum.count).collect(),
            size: (search.heaps(&found.all).iter()).map(|sum| sum.size).collect(),
            generations: self.generations(found),
            gained: found.gained(),
            own: own
                .or_else(|| self.block(&below, search, is_own))
                .or_else(|| self.holder(found.node, is_own)),
            lines: lines.into_iter().take(LINES).collect(),
            mostly: self.mostly(&below, search, found.gained()),
            blocks: Some(search.blocks(found)).filter(|blocks| blocks.count > 0),
            why: why::why(search, found, &below, last),
            also: Vec::new(),
            example: node.example.map(|(_, id)| describer.describe(id)),
        }
    }

    /// New objects by allocation line: objects of the growing class first, whatever takes the most memory below.
    fn by_line(
        &self,
        found: &Growing,
        line: impl Fn(Made) -> Option<Line>,
        is_own: &dyn Fn(&str) -> bool,
    ) -> Vec<Allocated> {
        let mut sums: FxHashMap<(NameId, Line), Sum> = FxHashMap::default();
        for &(class, made, more) in &found.lines {
            if let Some(line) = line(made) {
                sums.entry((class, line)).or_default().add(more);
            }
        }
        let of = self.tree.nodes[found.node as usize].class;
        let mut lines: Vec<_> = sums.into_iter().collect();
        order::sort_by_key(&mut lines, |&((class, line), more)| {
            (class != of, Reverse(more.size), line, class.0)
        });
        let allocated = |((class, line), more)| Allocated {
            class: self.text(class).to_owned(),
            site: self.site(line),
            own: is_own(self.file(line).0),
            more,
        };
        lines.into_iter().map(allocated).collect()
    }

    /// The application line behind an allocation.
    fn own_line(&self, made: Made, is_own: &dyn Fn(&str) -> bool) -> Option<Line> {
        let mut lines = [Some(made.at), made.caller].into_iter().flatten();
        lines.find(|&line| is_own(self.file(line).0))
    }

    /// The block that grows, or contains most of the growth, if it is defined in the application.
    fn block(
        &self,
        below: &[u32],
        search: &Search<'_>,
        is_own: &dyn Fn(&str) -> bool,
    ) -> Option<Allocated> {
        below.iter().find_map(|&node| {
            let class = self.text(self.tree.nodes[node as usize].class);
            let (file, line) = class.strip_prefix("Proc ")?.rsplit_once(':')?;
            let (file, line) = evaluated_at(file).unwrap_or((file, line.parse().ok()?));
            is_own(file).then(|| Allocated {
                class: class.to_owned(),
                site: Site { file: file.to_owned(), line, method: None, caller: None },
                own: true,
                more: search.more(node),
            })
        })
    }

    /// The nearest retaining object that the application allocated, such as the `Set` around a `Hash`.
    fn holder(&self, node: u32, is_own: &dyn Fn(&str) -> bool) -> Option<Allocated> {
        let path = self.tree.path(node);
        // The allocation site of a class or a thread does not explain its contents.
        let holders = self.tree.known(&path).iter().rev().skip(1);
        let mut holders =
            holders.filter(|&&at| self.tree.nodes[at as usize].nature == Nature::Object);
        holders.find_map(|&at| {
            let lines = self
                .tree
                .lines
                .iter()
                .filter(|((of, _), sums)| *of == at && sums.len() == self.tree.heaps);
            let (line, more) = lines
                .filter_map(|(&(_, made), sums)| {
                    Some((self.own_line(made, is_own)?, *sums.last()?))
                })
                .max_by_key(|&(line, sum)| (sum.size, line))?;
            Some(Allocated {
                class: self.text(self.tree.nodes[at as usize].class).to_owned(),
                site: self.site(line),
                own: true,
                more,
            })
        })
    }

    /// The generations in which the tracked objects were allocated.
    fn generations(&self, found: &Growing) -> Option<(u32, u32)> {
        let nodes = found.alike.iter().map(|&at| &self.tree.nodes[at as usize]);
        let spans = || nodes.clone().filter_map(|node| node.generations);
        let first = spans().map(|(first, _)| first).min()?;
        Some((first, spans().map(|(_, last)| last).max()?))
    }

    /// The objects below with the largest growth, if that is a large part of it.
    fn mostly(&self, below: &[u32], search: &Search<'_>, gained: u64) -> Option<Mostly> {
        let size = |at: &usize| search.more(below[*at]).size;
        let at = (0..below.len()).max_by_key(size).filter(|&at| at > 0)?;
        let more = search.more(below[at]);
        (more.size * 3 >= gained).then(|| Mostly {
            path: self.steps(&below[..=at]),
            class: (self.text(self.tree.nodes[below[at] as usize].class)).to_owned(),
            more,
        })
    }

    fn text(&self, name: NameId) -> &str {
        self.tree.names.name(name)
    }

    /// For evaluated code, the place of the evaluation.
    fn file(&self, line: Line) -> (&str, u32) {
        let file = self.text(line.file);
        evaluated_at(file).unwrap_or((file, line.line))
    }

    fn site(&self, line: Line) -> Site {
        let (file, number) = self.file(line);
        Site {
            file: file.to_owned(),
            line: number,
            method: line.method.map(|name| self.text(name).to_owned()),
            caller: None,
        }
    }

    /// The path to a node without the node, from its last well-known step on.
    fn retained_by(&self, node: u32) -> Phrase {
        let path = self.tree.path(node);
        if self.tree.is_symbol_table(&path) {
            return Phrase::from("the table of symbols".to_owned());
        }
        let nature = |at: u32| self.tree.nodes[at as usize].nature;
        match nature(node) {
            // A reference from the VM explains nothing.
            Nature::Thread => return Phrase::from("running threads".to_owned()),
            Nature::Fiber if nature(self.tree.nodes[node as usize].parent) == Nature::Thread => {
                return Phrase::from("running fibers".to_owned());
            }
            _ => {}
        }
        self.steps(self.tree.known(&path))
    }

    /// A path without its last node.
    fn steps(&self, path: &[u32]) -> Phrase {
        self.joined(path, None)
    }

    /// The same with a last step.
    fn joined(&self, path: &[u32], last: Option<Phrase>) -> Phrase {
        let steps = path.windows(2).map(|pair| self.step(pair[0], pair[1]));
        let steps: Vec<Phrase> = steps.chain(last).collect();
        let omitted = steps.len().saturating_sub(STEPS);
        if omitted == 0 {
            return Phrase::default().steps(steps);
        }
        let (first, last) = (&steps[..STEPS / 2], &steps[STEPS / 2 + omitted..]);
        let gap = Phrase::from(format!("… {omitted} more …"));
        Phrase::default().steps(first.iter().cloned().chain([gap]).chain(last.iter().cloned()))
    }

    /// A step of a path, as in [`crate::questions::Words::step`].
    fn step(&self, from: u32, to: u32) -> Phrase {
        let (from, to) = (&self.tree.nodes[from as usize], &self.tree.nodes[to as usize]);
        let holder = self.text(from.class);
        let (link, label) = (to.label.0, self.text(to.label.1));
        Phrase::from(step(holder, link, label))
    }
}

/// A step of a path: the referrer and the label of its reference.
fn step(holder: &str, link: Link, label: &str) -> String {
    match link {
        Link::None => holder.to_owned(),
        Link::Variable if label == HIDDEN && holder.ends_with("Error") => {
            format!("{holder}(receiver)")
        }
        Link::Variable if !label.starts_with(['@', '.', '#']) => format!("{holder}({label})"),
        Link::Any | Link::Variable => format!("{holder}{label}"),
        Link::Constant if is_global_scope(holder) => label.to_owned(),
        Link::Constant => format!("{holder}::{label}"),
        Link::Global => label.to_owned(),
        Link::ThreadLocal => format!("{holder}[{label}]"),
        Link::ThreadVariable => format!("{holder}(variable {label})"),
        Link::Named => format!("{holder}({label})"),
    }
}

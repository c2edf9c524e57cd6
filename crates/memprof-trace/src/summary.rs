//! Summary of a file of traced requests.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::io::{self, Read};

use rustc_hash::FxHashMap;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use crate::allocations::{AllocationRow, Allocations};
use crate::cost_columns::Columns;
use crate::entry::Entry;
use crate::kinds::Kinds;
use crate::number::{Number, Sum};
use crate::requests;
use crate::statements::{Row, Statements};
use crate::stats::Cost;
use crate::time;

/// The grouping of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// The class of a job, or controller and action, or otherwise method and path.
    Action,
    /// Method and path, or the class of a job.
    Path,
    /// The response code.
    Status,
    /// The class of the exception, with a database's error code.
    Exception,
}

/// Options of a summary.
#[derive(Clone, Debug, Deserialize)]
pub struct Options {
    /// The grouping.
    pub by: By,
    /// The kind of cost to sort groups and requests by, highest first.
    pub sort: String,
    /// Maximum number of groups and requests listed.
    pub limit: usize,
}

/// Summary of a file of traced requests.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// Their number.
    pub requests: u64,
    /// Lines that were skipped.
    pub broken: u64,
    /// Line number of the first of them.
    pub first_broken: Option<u64>,
    /// From the options.
    pub by: By,
    /// From the options.
    pub sort: String,
    /// Time of the first request.
    pub from: Option<String>,
    /// Time of the last request.
    pub to: Option<String>,
    /// Groups, most costly first.
    pub groups: Vec<Group>,
    /// Number of groups not listed.
    pub more_groups: u64,
    /// Costs of all requests.
    pub costs: Vec<Cost>,
    /// The most costly requests.
    pub worst: Vec<Worst>,
    /// Number of requests not listed.
    pub more_worst: u64,
    /// SQL statements, repeated ones first.
    pub statements: Vec<Row>,
    /// Number of statements not listed.
    pub more_statements: u64,
    /// The lines that allocated most objects.
    pub allocations: Vec<AllocationRow>,
    /// Number of lines not listed.
    pub more_allocations: u64,
    /// All kinds of costs, in order of appearance.
    pub kinds: Vec<String>,
}

/// A group of requests.
#[derive(Debug, Serialize)]
pub struct Group {
    /// The common property.
    pub name: String,
    /// Number of requests.
    pub requests: u64,
    /// Their cost of the kind to sort by.
    pub cost: Number,
    /// Their costs by kind.
    pub costs: Vec<Cost>,
}

/// One request.
#[derive(Debug, Serialize)]
pub struct Worst {
    /// Its line in the file.
    pub line: u64,
    /// See [`By::Action`].
    pub action: String,
    /// See [`By::Path`].
    pub path: String,
    /// See [`By::Status`].
    pub status: String,
    /// Its time.
    pub start: Option<String>,
    /// Its costs by kind.
    #[serde(serialize_with = "as_map")]
    pub costs: Vec<(String, Number)>,
}

pub(crate) fn as_map<S: Serializer, K: AsRef<str>>(
    costs: &[(K, Number)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(costs.len()))?;
    for (kind, cost) in costs {
        map.serialize_entry(kind.as_ref(), cost)?;
    }
    map.end()
}

/// Reads a file to its end.
///
/// # Errors
/// If it cannot be read, or there is no space for temporary files.
pub fn read(input: impl Read, options: Options, progress: impl Fn(u64)) -> io::Result<Summary> {
    let mut reader = Reader::new(options);
    requests::each(input, progress, |place, entry| {
        let taken = match entry {
            Some(entry) => reader.take(place.line, &entry)?,
            None => false,
        };
        if !taken {
            reader.skip(place.line);
        }
        Ok(())
    })?;
    reader.finish()
}

/// Running totals of a group.
#[derive(Clone, Copy, Default)]
struct Totals {
    requests: u64,
    cost: Sum,
}

struct Reader {
    options: Options,
    kinds: Kinds,
    columns: Columns,
    groups: FxHashMap<String, u32>,
    totals: Vec<Totals>,
    worst: BinaryHeap<Candidate>,
    statements: Statements,
    allocations: Allocations,
    requests: u64,
    broken: u64,
    first_broken: Option<u64>,
    period: Option<(i64, i64)>,
}

impl Reader {
    fn new(options: Options) -> Reader {
        Reader {
            options,
            kinds: Kinds::default(),
            columns: Columns::default(),
            groups: FxHashMap::default(),
            totals: Vec::new(),
            worst: BinaryHeap::new(),
            statements: Statements::default(),
            allocations: Allocations::default(),
            requests: 0,
            broken: 0,
            first_broken: None,
            period: None,
        }
    }

    fn skip(&mut self, line: u64) {
        self.broken += 1;
        self.first_broken.get_or_insert(line);
    }

    /// False if there would be too many kinds of costs.
    fn take(&mut self, line: u64, entry: &Entry<'_>) -> io::Result<bool> {
        let new = entry.costs.iter();
        let new = new.filter(|(kind, _)| self.kinds.find(kind).is_none());
        if !self.kinds.has_room(new.count()) {
            return Ok(false);
        }
        self.requests += 1;
        let group = self.group(entry);
        let mut sorted = Number::Int(0);
        for (kind, cost) in &entry.costs {
            let number = self.kinds.number(kind);
            self.columns.push(number, group, *cost)?;
            if *kind == self.options.sort {
                sorted = *cost;
            }
        }
        let totals = &mut self.totals[group as usize];
        totals.requests += 1;
        totals.cost.add(sorted);
        if let Some(start) = entry.start {
            let (from, to) = self.period.unwrap_or((start, start));
            self.period = Some((from.min(start), to.max(start)));
        }
        self.statements.add(&entry.statements);
        self.allocations.add(&entry.allocations);
        self.compare(line, sorted, entry);
        Ok(true)
    }

    fn group(&mut self, entry: &Entry<'_>) -> u32 {
        let name = match self.options.by {
            By::Action => entry.action(),
            By::Path => entry.path(),
            By::Status => entry.status(),
            By::Exception => entry.exception(),
        };
        let next = self.totals.len() as u32;
        let group = *self.groups.entry(name).or_insert(next);
        if group == next {
            self.totals.push(Totals::default());
        }
        group
    }

    /// Keeps a request if it is one of the most costly so far.
    fn compare(&mut self, line: u64, cost: Number, entry: &Entry<'_>) {
        let full = self.worst.len() >= self.options.limit;
        let less = |least: &Candidate| cost.compare(&least.cost) != Ordering::Greater;
        if full && self.worst.peek().is_none_or(less) {
            return;
        }
        let costs = entry.costs.iter();
        let row = Worst {
            line,
            action: entry.action(),
            path: entry.path(),
            status: entry.status(),
            start: entry.start.map(time::text),
            costs: costs.map(|(kind, cost)| (kind.to_string(), *cost)).collect(),
        };
        if full {
            self.worst.pop();
        }
        self.worst.push(Candidate { cost, row });
    }

    fn finish(mut self) -> io::Result<Summary> {
        let worst = std::mem::take(&mut self.worst).into_sorted_vec();
        let all = self.groups.len() as u64;
        let mut groups: Vec<(String, u32)> = self.groups.drain().collect();
        groups.sort_unstable_by(|(one_name, one), (other_name, other)| {
            let cost = |group: u32| self.totals[group as usize].cost.total();
            let order = cost(*other).compare(&cost(*one));
            order.then_with(|| one_name.cmp(other_name))
        });
        groups.truncate(self.options.limit);
        let numbers: Vec<u32> = groups.iter().map(|&(_, number)| number).collect();
        let (statements, more_statements) =
            std::mem::take(&mut self.statements).finish(self.options.limit);
        let (allocations, more_allocations) =
            std::mem::take(&mut self.allocations).finish(self.options.limit);
        let (costs, mut of_groups) = self.costs(&numbers)?;
        let groups: Vec<Group> = groups
            .into_iter()
            .zip(&mut of_groups)
            .map(|((name, number), costs)| Group {
                name,
                requests: self.totals[number as usize].requests,
                cost: self.totals[number as usize].cost.total(),
                costs: std::mem::take(costs),
            })
            .collect();
        Ok(Summary {
            requests: self.requests,
            broken: self.broken,
            first_broken: self.first_broken,
            by: self.options.by,
            sort: self.options.sort,
            from: self.period.map(|(from, _)| time::text(from)),
            to: self.period.map(|(_, to)| time::text(to)),
            more_groups: all - groups.len() as u64,
            groups,
            costs,
            more_worst: self.requests - worst.len() as u64,
            worst: worst.into_iter().map(|candidate| candidate.row).collect(),
            statements,
            more_statements,
            allocations,
            more_allocations,
            kinds: self.kinds.names().to_vec(),
        })
    }

    /// The costs of all requests, and those of some groups.
    fn costs(&mut self, groups: &[u32]) -> io::Result<(Vec<Cost>, Vec<Vec<Cost>>)> {
        let places: FxHashMap<u32, usize> =
            groups.iter().enumerate().map(|(place, &group)| (group, place)).collect();
        let mut all = Vec::new();
        let mut of_groups = vec![Vec::new(); groups.len()];
        for kind in 0..self.kinds.names().len() as u32 {
            let mut values = Vec::new();
            let mut parts = vec![Vec::new(); groups.len()];
            self.columns.each(kind, |group, cost| {
                values.push(cost);
                if let Some(&place) = places.get(&group) {
                    parts[place].push(cost);
                }
            })?;
            let name = self.kinds.name(kind);
            all.extend(Cost::of(name, values, self.requests));
            for ((&group, values), costs) in groups.iter().zip(parts).zip(&mut of_groups) {
                let requests = self.totals[group as usize].requests;
                costs.extend(Cost::of(name, values, requests));
            }
        }
        Ok((all, of_groups))
    }
}

/// One of the most costly requests so far. The order is reversed, so that a heap pops the cheapest.
struct Candidate {
    cost: Number,
    row: Worst,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        let order = other.cost.compare(&self.cost);
        order.then_with(|| self.row.line.cmp(&other.row.line))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}

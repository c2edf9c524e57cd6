//! Queries on the requests of a [`Log`]. Questions and answers are JSON.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::allocations::{self, AllocationRow};
use crate::log::Log;
use crate::number::{Number, Sum};
use crate::statements::{self, Numbers, Totals};
use crate::stats::Cost;
use crate::summary::{By, Group, as_map};

/// Minimum length of a part of a timeline, in seconds.
const SHORTEST: f64 = 1e-6;
/// Maximum number of parts of a timeline.
const MOST_PARTS: usize = 10_000;

/// A question. `within` is a time range: from and to, in seconds after the first request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Question {
    /// Number of requests, their time range, and kinds of costs.
    Facts { within: Within },
    /// Costs of the requests.
    Costs { within: Within },
    /// Groups of requests, highest cost of a kind first.
    Groups { within: Within, by: By, sort: String, limit: usize },
    /// The most costly requests; with `only`, those of one group.
    Worst {
        within: Within,
        by: By,
        only: Option<String>,
        sort: String,
        limit: usize,
        offset: usize,
    },
    /// Equal parts of the time, each with its number of requests and the highest cost of one.
    Timeline { sort: String, parts: usize },
    /// SQL statements by text and caller: repeated ones first, then by time.
    Statements { within: Within, limit: usize },
    /// Allocating lines, by location and class, most objects first.
    Allocations { within: Within, limit: usize },
    /// One request, by its line.
    Request { line: u64 },
}

type Within = Option<(f64, Option<f64>)>;

#[derive(Serialize)]
struct Facts<'l> {
    requests: usize,
    broken: u64,
    first_broken: Option<u64>,
    /// Microseconds since the epoch.
    period: Option<(i64, i64)>,
    kinds: &'l [String],
}

#[derive(Serialize)]
struct Groups {
    groups: Vec<Group>,
    more: usize,
}

#[derive(Serialize)]
struct Worst<'l> {
    total: usize,
    requests: Vec<Row<'l>>,
}

#[derive(Serialize)]
struct Row<'l> {
    line: u64,
    action: &'l str,
    path: &'l str,
    status: &'l str,
    start: Option<i64>,
    #[serde(serialize_with = "as_map")]
    costs: Vec<(&'l str, Number)>,
}

#[derive(Serialize)]
struct SumOfStatements {
    statements: Vec<statements::Row>,
    more_statements: u64,
}

#[derive(Serialize)]
struct SumOfAllocations {
    allocations: Vec<AllocationRow>,
    more_allocations: u64,
}

/// A statement of one request.
#[derive(Serialize)]
struct OfRequest<'l> {
    sql: &'l str,
    caller: Option<&'l str>,
    #[serde(flatten)]
    numbers: Numbers,
}

#[derive(Serialize)]
struct One<'l> {
    #[serde(flatten)]
    row: Row<'l>,
    /// For each cost, the rank of the request among all, most costly first.
    #[serde(serialize_with = "as_map")]
    ranks: Vec<(&'l str, Number)>,
    statements: Vec<OfRequest<'l>>,
}

#[derive(Serialize)]
struct Timeline {
    from: i64,
    seconds: f64,
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Serialize)]
struct Part {
    requests: u64,
    max: Number,
    line: Option<u64>,
}

impl Log {
    /// Answers a question. The answer is null for a line that is not a request, or a timeline without times.
    ///
    /// # Errors
    /// If the question is invalid.
    pub fn ask(&self, question: &str) -> Result<String, serde_json::Error> {
        match serde_json::from_str(question)? {
            Question::Facts { within } => serde_json::to_string(&self.facts(within)),
            Question::Costs { within } => {
                let all = self.all_costs(&self.within(within));
                serde_json::to_string(&all)
            }
            Question::Groups { within, by, sort, limit } => {
                serde_json::to_string(&self.groups(&self.within(within), by, &sort, limit))
            }
            Question::Worst { within, by, only, sort, limit, offset } => {
                let mut chosen = self.within(within);
                if let Some(name) = only {
                    chosen.retain(|&request| self.name(request, by) == name);
                }
                serde_json::to_string(&self.worst(chosen, &sort, limit, offset))
            }
            Question::Timeline { sort, parts } => {
                let parts = parts.clamp(1, MOST_PARTS);
                serde_json::to_string(&self.timeline(&sort, parts))
            }
            Question::Statements { within, limit } => {
                serde_json::to_string(&self.sum_of_statements(&self.within(within), limit))
            }
            Question::Allocations { within, limit } => {
                serde_json::to_string(&self.sum_of_allocations(&self.within(within), limit))
            }
            Question::Request { line } => serde_json::to_string(&self.request(line)),
        }
    }

    fn period(&self) -> Option<(i64, i64)> {
        let starts = || self.requests.iter().filter_map(|request| request.start);
        Some((starts().min()?, starts().max()?))
    }

    /// The requests in a time range.
    fn within(&self, within: Within) -> Vec<usize> {
        let all = 0..self.requests.len();
        let Some((from, to)) = within else {
            return all.collect();
        };
        let Some((first, _)) = self.period() else {
            return Vec::new();
        };
        let part = from..=to.unwrap_or(f64::INFINITY);
        all.filter(|&request| {
            let start = self.requests[request].start;
            start.is_some_and(|start| part.contains(&seconds(start - first)))
        })
        .collect()
    }

    fn facts(&self, within: Within) -> Facts<'_> {
        Facts {
            requests: self.within(within).len(),
            broken: self.broken,
            first_broken: self.first_broken,
            period: self.period(),
            kinds: self.kinds.names(),
        }
    }

    fn all_costs(&self, requests: &[usize]) -> Vec<Cost> {
        let mut values = vec![Vec::new(); self.kinds.names().len()];
        for &request in requests {
            for (kind, cost) in self.numbered_costs(request) {
                values[kind as usize].push(cost);
            }
        }
        let names = self.kinds.names().iter().zip(values);
        names.filter_map(|(name, values)| Cost::of(name, values, requests.len() as u64)).collect()
    }

    fn groups(&self, requests: &[usize], by: By, sort: &str, limit: usize) -> Groups {
        let kind = self.kinds.find(sort);
        let mut members: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
        for &request in requests {
            let group = self.group(request, by);
            members.entry(group).or_default().push(request);
        }
        let mut groups: Vec<(Number, &str, Vec<usize>)> = members
            .into_values()
            .map(|requests| {
                let costs = requests.iter().map(|&request| self.cost(request, kind));
                let cost = costs.collect::<Sum>().total();
                (cost, self.name(requests[0], by), requests)
            })
            .collect();
        groups.sort_unstable_by(|one, other| {
            other.0.compare(&one.0).then_with(|| one.1.cmp(other.1))
        });
        let more = groups.len().saturating_sub(limit);
        groups.truncate(limit);
        let groups = groups.into_iter().map(|(cost, name, requests)| Group {
            name: name.to_owned(),
            requests: requests.len() as u64,
            cost,
            costs: self.all_costs(&requests),
        });
        Groups { groups: groups.collect(), more }
    }

    fn worst(&self, chosen: Vec<usize>, sort: &str, limit: usize, offset: usize) -> Worst<'_> {
        let kind = self.kinds.find(sort);
        let total = chosen.len();
        let mut costs: Vec<(Number, usize)> =
            chosen.into_iter().map(|request| (self.cost(request, kind), request)).collect();
        costs.sort_unstable_by(|one, other| other.0.compare(&one.0).then(one.1.cmp(&other.1)));
        let part = costs.into_iter().skip(offset).take(limit);
        Worst { total, requests: part.map(|(_, request)| self.row(request)).collect() }
    }

    fn row(&self, request: usize) -> Row<'_> {
        let facts = &self.requests[request];
        Row {
            line: facts.place.line,
            action: self.name(request, By::Action),
            path: self.name(request, By::Path),
            status: self.name(request, By::Status),
            start: facts.start,
            costs: self.costs(request).collect(),
        }
    }

    fn timeline(&self, sort: &str, count: usize) -> Option<Timeline> {
        let kind = self.kinds.find(sort);
        let (from, to) = self.period()?;
        let each = (seconds(to - from) / count as f64).max(SHORTEST);
        let none = Part { requests: 0, max: Number::Int(0), line: None };
        let mut parts = vec![none; count];
        for (number, request) in self.requests.iter().enumerate() {
            let Some(start) = request.start else { continue };
            let place = (seconds(start - from) / each).floor() as usize;
            let part = &mut parts[place.min(count - 1)];
            part.requests += 1;
            let cost = self.cost(number, kind);
            if part.line.is_none() || cost.compare(&part.max).is_gt() {
                part.max = cost;
                part.line = Some(request.place.line);
            }
        }
        Some(Timeline { from, seconds: each, parts })
    }

    fn sum_of_statements(&self, requests: &[usize], limit: usize) -> SumOfStatements {
        let mut all: FxHashMap<(u32, Option<u32>), Totals> = FxHashMap::default();
        for &request in requests {
            for sent in self.statements(request) {
                let totals = all.entry((sent.sql, sent.caller)).or_default();
                totals.add(sent.numbers);
            }
        }
        let text = |number: u32| self.text(number).to_owned();
        let rows = all.into_iter();
        let rows = rows.map(|((sql, caller), totals)| totals.row(text(sql), caller.map(text)));
        let (statements, more_statements) = statements::first(rows, limit);
        SumOfStatements { statements, more_statements }
    }

    fn sum_of_allocations(&self, requests: &[usize], limit: usize) -> SumOfAllocations {
        let mut all: FxHashMap<(u32, u32), allocations::Totals> = FxHashMap::default();
        for &request in requests {
            for line in self.allocations(request) {
                let totals = all.entry((line.location, line.class)).or_default();
                totals.add(line.objects, line.bytes);
            }
        }
        let text = |number: u32| self.text(number).to_owned();
        let rows = all.into_iter();
        let rows = rows.map(|((location, class), totals)| totals.row(text(location), text(class)));
        let (allocations, more_allocations) = allocations::first(rows, limit);
        SumOfAllocations { allocations, more_allocations }
    }

    fn request(&self, line: u64) -> Option<One<'_>> {
        let request = self.find(line)?;
        let mut ranks: Vec<(u32, Number, i64)> =
            self.numbered_costs(request).map(|(kind, cost)| (kind, cost, 1)).collect();
        for other in 0..self.requests.len() {
            for (kind, cost, rank) in &mut ranks {
                *rank += i64::from(self.cost(other, Some(*kind)).compare(cost).is_gt());
            }
        }
        let ranks = ranks.into_iter();
        Some(One {
            row: self.row(request),
            ranks: ranks
                .map(|(kind, _, rank)| (self.kinds.name(kind), Number::Int(rank)))
                .collect(),
            statements: (self.statements(request).iter())
                .map(|sent| OfRequest {
                    sql: self.text(sent.sql),
                    caller: sent.caller.map(|caller| self.text(caller)),
                    numbers: sent.numbers,
                })
                .collect(),
        })
    }
}

fn seconds(microseconds: i64) -> f64 {
    microseconds as f64 / 1e6
}

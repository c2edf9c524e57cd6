//! SQL statements of requests, by text and caller.

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::number::{Number, Sum};

/// Maximum number of distinct statements summed up; a trace lists 50.
const MOST: usize = 20_000;

/// A statement in one request.
#[derive(Clone, Debug, Default)]
pub struct Statement {
    pub(crate) sql: String,
    pub(crate) caller: Option<String>,
    pub(crate) numbers: Numbers,
}

/// Numbers of a statement in one request.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Numbers {
    pub(crate) queries: Number,
    pub(crate) time: Number,
    pub(crate) slowest: Number,
    /// Whether the request repeats it.
    pub(crate) n_plus_one: bool,
}

/// A statement, over all requests.
#[derive(Debug, Serialize)]
pub struct Row {
    /// Its normalized text.
    pub sql: String,
    /// The line that sends it.
    pub caller: Option<String>,
    /// Requests that send it.
    pub requests: u64,
    /// Requests that repeat it.
    pub n_plus_one: u64,
    /// Number of times it was sent.
    pub queries: Number,
    /// Total time.
    pub time: Number,
    /// Longest time of one execution.
    pub slowest: Number,
}

/// Running totals of a statement.
#[derive(Default)]
pub(crate) struct Totals {
    requests: u64,
    repeated: u64,
    queries: Sum,
    time: Sum,
    slowest: Number,
}

impl Totals {
    pub(crate) fn add(&mut self, numbers: Numbers) {
        self.requests += 1;
        self.repeated += u64::from(numbers.n_plus_one);
        self.queries.add(numbers.queries);
        self.time.add(numbers.time);
        if numbers.slowest.compare(&self.slowest).is_gt() {
            self.slowest = numbers.slowest;
        }
    }

    pub(crate) fn row(self, sql: String, caller: Option<String>) -> Row {
        Row {
            sql,
            caller,
            requests: self.requests,
            n_plus_one: self.repeated,
            queries: self.queries.total(),
            time: self.time.total(),
            slowest: self.slowest,
        }
    }
}

/// All statements.
#[derive(Default)]
pub struct Statements {
    all: FxHashMap<(String, Option<String>), Totals>,
}

impl Statements {
    /// Adds the statements of a request.
    pub fn add(&mut self, statements: &[Statement]) {
        for statement in statements {
            let key = (statement.sql.clone(), statement.caller.clone());
            if self.all.len() >= MOST && !self.all.contains_key(&key) {
                continue;
            }
            self.all.entry(key).or_default().add(statement.numbers);
        }
    }

    /// See [`first`].
    pub fn finish(self, limit: usize) -> (Vec<Row>, u64) {
        let rows = self.all.into_iter();
        first(rows.map(|((sql, caller), totals)| totals.row(sql, caller)), limit)
    }
}

/// The first `limit` statements, repeated ones first, then by time, and the number of the others.
pub(crate) fn first(rows: impl Iterator<Item = Row>, limit: usize) -> (Vec<Row>, u64) {
    let mut rows: Vec<Row> = rows.collect();
    rows.sort_unstable_by(|one, other| {
        let repeated = (other.n_plus_one > 0).cmp(&(one.n_plus_one > 0));
        let slower = || other.time.compare(&one.time);
        let name = || (&one.sql, &one.caller).cmp(&(&other.sql, &other.caller));
        repeated.then_with(slower).then_with(name)
    });
    let more = rows.len().saturating_sub(limit);
    rows.truncate(limit);
    (rows, more as u64)
}

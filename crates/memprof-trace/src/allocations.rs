//! The lines that allocated most objects in requests, by location and class.

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::number::{Number, Sum};

/// The most different lines that are summed up.
const MOST: usize = 20_000;

/// A line of one request.
#[derive(Clone, Debug, Default)]
pub struct Allocation {
    pub(crate) location: String,
    pub(crate) class: String,
    pub(crate) objects: Number,
    pub(crate) bytes: Number,
}

/// A line of all requests that list it.
#[derive(Debug, Serialize)]
pub struct AllocationRow {
    /// File, line and method.
    pub location: String,
    /// Class of the objects.
    pub class: String,
    /// Requests that list it: each lists only those with most objects.
    pub requests: u64,
    /// Objects allocated.
    pub objects: Number,
    /// Their bytes.
    pub bytes: Number,
}

#[derive(Default)]
struct Totals {
    requests: u64,
    objects: Sum,
    bytes: Sum,
}

/// All lines.
#[derive(Default)]
pub struct Allocations {
    all: FxHashMap<(String, String), Totals>,
}

impl Allocations {
    /// Adds those of a request.
    pub fn add(&mut self, lines: &[Allocation]) {
        for line in lines {
            let key = (line.location.clone(), line.class.clone());
            if self.all.len() >= MOST && !self.all.contains_key(&key) {
                continue;
            }
            let totals = self.all.entry(key).or_default();
            totals.requests += 1;
            totals.objects.add(line.objects);
            totals.bytes.add(line.bytes);
        }
    }

    /// So many of them, those with most objects first; and how many there are besides.
    pub fn finish(self, limit: usize) -> (Vec<AllocationRow>, u64) {
        let rows = self.all.into_iter();
        let mut rows: Vec<AllocationRow> = rows
            .map(|((location, class), totals)| AllocationRow {
                location,
                class,
                requests: totals.requests,
                objects: totals.objects.total(),
                bytes: totals.bytes.total(),
            })
            .collect();
        rows.sort_by(|one, other| {
            let more = other.objects.compare(&one.objects);
            more.then_with(|| (&one.location, &one.class).cmp(&(&other.location, &other.class)))
        });
        let more = rows.len().saturating_sub(limit);
        rows.truncate(limit);
        (rows, more as u64)
    }
}

//! The lines that allocated most objects in requests, by location and class.

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::number::{Number, Sum};

/// Maximum number of distinct lines summed up.
const MOST: usize = 20_000;

/// An allocating line in one request.
#[derive(Clone, Debug, Default)]
pub struct Allocation {
    pub(crate) location: String,
    pub(crate) class: String,
    pub(crate) objects: Number,
    pub(crate) bytes: Number,
}

/// An allocating line, over all requests that list it.
#[derive(Debug, Serialize)]
pub struct AllocationRow {
    /// File, line and method.
    pub location: String,
    /// Class of the objects.
    pub class: String,
    /// Requests that list it: each lists only its largest lines.
    pub requests: u64,
    /// Objects allocated.
    pub objects: Number,
    /// Their bytes.
    pub bytes: Number,
}

/// Running totals of a line.
#[derive(Default)]
pub(crate) struct Totals {
    requests: u64,
    objects: Sum,
    bytes: Sum,
}

impl Totals {
    pub(crate) fn add(&mut self, objects: Number, bytes: Number) {
        self.requests += 1;
        self.objects.add(objects);
        self.bytes.add(bytes);
    }

    pub(crate) fn row(self, location: String, class: String) -> AllocationRow {
        AllocationRow {
            location,
            class,
            requests: self.requests,
            objects: self.objects.total(),
            bytes: self.bytes.total(),
        }
    }
}

/// All lines.
#[derive(Default)]
pub struct Allocations {
    all: FxHashMap<(String, String), Totals>,
}

impl Allocations {
    /// Adds the lines of a request.
    pub fn add(&mut self, lines: &[Allocation]) {
        for line in lines {
            let key = (line.location.clone(), line.class.clone());
            if self.all.len() >= MOST && !self.all.contains_key(&key) {
                continue;
            }
            self.all.entry(key).or_default().add(line.objects, line.bytes);
        }
    }

    /// See [`first`].
    pub fn finish(self, limit: usize) -> (Vec<AllocationRow>, u64) {
        let rows = self.all.into_iter();
        first(rows.map(|((location, class), totals)| totals.row(location, class)), limit)
    }
}

/// The first `limit` lines, most objects first, and the number of the others.
pub(crate) fn first(
    rows: impl Iterator<Item = AllocationRow>,
    limit: usize,
) -> (Vec<AllocationRow>, u64) {
    let mut rows: Vec<AllocationRow> = rows.collect();
    rows.sort_unstable_by(|one, other| {
        let more = other.objects.compare(&one.objects);
        more.then_with(|| (&one.location, &one.class).cmp(&(&other.location, &other.class)))
    });
    let more = rows.len().saturating_sub(limit);
    rows.truncate(limit);
    (rows, more as u64)
}

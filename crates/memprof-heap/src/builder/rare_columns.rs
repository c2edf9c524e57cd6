//! Columns and rows that grow while a dump is read.

use crate::NONE;
use crate::label::Packed;

/// A column missing from most dumps: allocates memory from the first value on.
#[derive(Default)]
pub(in super::super) struct Rare(pub Vec<u32>);

impl Rare {
    pub fn set(&mut self, index: usize, value: u32) {
        self.0.resize(index, NONE);
        self.0.push(value);
    }

    /// Fills up the column, unless it has no values at all.
    pub fn complete(&mut self, count: usize) {
        if !self.0.is_empty() {
            self.0.resize(count, NONE);
        }
    }
}

/// References of one kind of source, by the target's code.
#[derive(Default)]
pub(in super::super) struct Rows {
    /// Where the references of each source begin.
    pub offsets: Vec<u32>,
    pub targets: Vec<u32>,
    /// Empty if no reference has a label.
    pub labels: Vec<Packed>,
}

impl Rows {
    pub fn push(&mut self, code: u32, label: Packed) {
        if label != Packed::NONE || !self.labels.is_empty() {
            self.labels.resize(self.targets.len(), Packed::NONE);
            self.labels.push(label);
        }
        self.targets.push(code);
    }

    /// Fills up the labels, unless no reference has one.
    pub fn complete(&mut self) {
        if !self.labels.is_empty() {
            self.labels.resize(self.targets.len(), Packed::NONE);
        }
    }
}

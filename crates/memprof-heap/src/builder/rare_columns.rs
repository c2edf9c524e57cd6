//! Columns and rows that grow while a dump is read.

use crate::NONE;
use crate::label::Packed;

/// A column that most dumps do not have: it takes room from the first value on.
#[derive(Default)]
pub(in super::super) struct Rare(pub Vec<u32>);

impl Rare {
    pub fn set(&mut self, index: usize, value: u32) {
        self.0.resize(index, NONE);
        self.0.push(value);
    }

    /// Has a value for each object, or none at all.
    pub fn complete(&mut self, count: usize) {
        if !self.0.is_empty() {
            self.0.resize(count, NONE);
        }
    }
}

/// References of one kind of source, by code of the target.
#[derive(Default)]
pub(in super::super) struct Rows {
    /// Where each source's references begin.
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

    /// Has a label for each reference, or none at all.
    pub fn complete(&mut self) {
        if !self.labels.is_empty() {
            self.labels.resize(self.targets.len(), Packed::NONE);
        }
    }
}

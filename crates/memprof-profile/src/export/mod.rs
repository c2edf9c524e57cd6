//! Profiles in the formats of other tools, one file per format.

pub mod collapsed;
pub mod firefox;
pub mod pprof;
pub mod speedscope;

use std::hash::Hash;
use std::str::FromStr;

use rustc_hash::FxHashMap;

use crate::group::{Kind, UnknownWord, parse_word};
use crate::profile::{Profile, SiteRow};

/// A format of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Lines of `frame;frame;frame weight`, as flame graph scripts expect.
    Collapsed,
    /// JSON of <https://www.speedscope.app>.
    Speedscope,
    /// JSON of <https://profiler.firefox.com>.
    Firefox,
    /// Compressed protocol buffer of <https://github.com/google/pprof>.
    Pprof,
}

impl FromStr for Format {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        parse_word(
            "format",
            word,
            &["collapsed", "speedscope", "firefox", "pprof"],
            &[Format::Collapsed, Format::Speedscope, Format::Firefox, Format::Pprof],
        )
    }
}

/// The number to export, where the format has room for only one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Bytes of all objects allocated.
    AllocatedBytes,
    /// Number of objects allocated.
    AllocatedObjects,
    /// Bytes of the objects live at the end.
    RetainedBytes,
    /// Number of objects live at the end.
    RetainedObjects,
}

impl Value {
    /// All values, in the order of exports.
    pub const ALL: [Value; 4] = [
        Value::AllocatedBytes,
        Value::AllocatedObjects,
        Value::RetainedBytes,
        Value::RetainedObjects,
    ];

    /// The kind of objects counted.
    pub fn kind(self) -> Kind {
        match self {
            Value::AllocatedBytes | Value::AllocatedObjects => Kind::Allocated,
            Value::RetainedBytes | Value::RetainedObjects => Kind::Retained,
        }
    }

    /// True if the unit is bytes, false if it is objects.
    pub fn is_bytes(self) -> bool {
        matches!(self, Value::AllocatedBytes | Value::RetainedBytes)
    }

    /// The value of `row`.
    pub fn of(self, row: &SiteRow) -> u64 {
        let amount = self.kind().of(row);
        if self.is_bytes() { amount.bytes } else { amount.objects }
    }

    /// The value in words, such as `allocated bytes`.
    pub fn title(self) -> &'static str {
        match self {
            Value::AllocatedBytes => "allocated bytes",
            Value::AllocatedObjects => "allocated objects",
            Value::RetainedBytes => "retained bytes",
            Value::RetainedObjects => "retained objects",
        }
    }
}

impl FromStr for Value {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        parse_word(
            "value",
            word,
            &["allocated_bytes", "allocated_objects", "retained_bytes", "retained_objects"],
            &Value::ALL,
        )
    }
}

/// `profile` in another tool's `format`. Formats with several values show `value` first.
///
/// The same profile always exports to the same bytes.
pub fn export(profile: &Profile, format: Format, value: Value) -> Vec<u8> {
    let mut out = Vec::new();
    match format {
        Format::Collapsed => collapsed::write(profile, value, &mut out),
        Format::Speedscope => speedscope::write(profile, value, &mut out),
        Format::Firefox => firefox::write(profile, value, &mut out),
        Format::Pprof => pprof::write(profile, &mut out),
    }
    .expect("memory takes all that is written to it");
    out
}

/// The values to export: those with a nonzero sum over `rows`, and always `wanted`.
fn shown(rows: &[SiteRow], wanted: Value) -> Vec<Value> {
    let mut values = Value::ALL.to_vec();
    values.retain(|&value| value == wanted || rows.iter().any(|row| value.of(row) > 0));
    values
}

/// Numbers keys in order of first appearance.
struct Ids<K> {
    ids: FxHashMap<K, u32>,
    keys: Vec<K>,
}

impl<K: Copy + Eq + Hash> Ids<K> {
    fn new() -> Self {
        Ids { ids: FxHashMap::default(), keys: Vec::new() }
    }

    /// The number of `key`, from 0, and whether it is new.
    fn get(&mut self, key: K) -> (u32, bool) {
        let next = self.keys.len() as u32;
        let id = *self.ids.entry(key).or_insert(next);
        if id == next {
            self.keys.push(key);
        }
        (id, id == next)
    }
}

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;

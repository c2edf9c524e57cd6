//! Kinds of costs, which have numbers here.

use rustc_hash::FxHashMap;

/// What a kind of cost is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Time.
    Seconds,
    /// Memory.
    Bytes,
    /// Calls, objects.
    Count,
}

impl Unit {
    /// Of a kind.
    pub fn of(kind: &str) -> Unit {
        match kind {
            "object_bytes" | "memory" => Unit::Bytes,
            "objects" | "gvl_waits" => Unit::Count,
            _ if kind.ends_with("_calls") => Unit::Count,
            _ => Unit::Seconds,
        }
    }
}

/// The most kinds that there may be: tracers have names of their own, and a line that is hostile has any number.
const MOST: usize = 1000;

/// All kinds, in the order in which they came.
#[derive(Default)]
pub struct Kinds {
    names: Vec<String>,
    numbers: FxHashMap<String, u32>,
}

impl Kinds {
    pub fn names(&self) -> &[String] {
        &self.names
    }

    pub fn name(&self, kind: u32) -> &str {
        &self.names[kind as usize]
    }

    pub fn find(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    /// Whether so many more may come.
    pub fn has_room(&self, more: usize) -> bool {
        self.names.len() + more <= MOST
    }

    pub fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }
}

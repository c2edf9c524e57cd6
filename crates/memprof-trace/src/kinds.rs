//! Kinds of costs, by number.

use rustc_hash::FxHashMap;

/// The unit of a kind of cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Time.
    Seconds,
    /// Memory.
    Bytes,
    /// Calls or objects.
    Count,
}

impl Unit {
    /// The unit of a kind.
    pub fn of(kind: &str) -> Unit {
        match kind {
            "object_bytes" | "memory" => Unit::Bytes,
            "objects" | "gvl_waits" => Unit::Count,
            _ if kind.ends_with("_calls") => Unit::Count,
            _ => Unit::Seconds,
        }
    }
}

/// Maximum number of kinds: tracers choose their own names, and a hostile line may have any number.
const MOST: usize = 1000;

/// All kinds, in order of appearance.
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

    /// Whether there is room for `more` kinds.
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

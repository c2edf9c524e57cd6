//! Keys of a comparison's rows. Each heap numbers its classes and sites in its own way; rows have one number for both.

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::rows::By;
use crate::questions::Error;
use memprof_heap::{Heap, NONE};

/// The key of a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum Key {
    /// Objects of a class.
    Class {
        /// Name.
        class: String,
    },
    /// Objects of a type.
    Type {
        /// Name, such as `string`.
        r#type: &'static str,
    },
    /// Objects allocated at a line.
    Site {
        /// Path; null if unknown.
        file: Option<String>,
        /// Line.
        line: Option<u32>,
    },
    /// Objects that were allocated in a file.
    File {
        /// Path; null if unknown.
        file: Option<String>,
    },
}

/// The rows of two heaps.
#[derive(Default)]
pub(super) struct Keys {
    rows: FxHashMap<Key, u32>,
}

/// The row of each object of one heap.
pub(super) struct Column<'h> {
    /// Group or site of each object.
    numbers: &'h [u32],
    /// Row of each group or site.
    rows: Vec<u32>,
    /// Row of objects without one.
    unknown: u32,
}

impl Column<'_> {
    pub fn row(&self, id: u32) -> u32 {
        let number = self.numbers.get(id as usize);
        number.and_then(|&number| self.rows.get(number as usize)).copied().unwrap_or(self.unknown)
    }
}

impl Keys {
    fn row(&mut self, key: Key) -> u32 {
        let next = self.rows.len() as u32;
        *self.rows.entry(key).or_insert(next)
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The keys of the rows, in their order.
    pub fn into_keys(self) -> Vec<Key> {
        let mut rows: Vec<(u32, Key)> =
            self.rows.into_iter().map(|(key, row)| (row, key)).collect();
        rows.sort_unstable_by_key(|&(row, _)| row);
        rows.into_iter().map(|(_, key)| key).collect()
    }

    /// The rows of a heap's objects.
    pub fn column<'h>(&mut self, heap: &'h Heap, by: By) -> Result<Column<'h>, Error> {
        let name = |name| Some(heap.name(name).to_owned());
        Ok(match by {
            By::Class => {
                let class = |class: u32| {
                    heap.classes().get(class as usize).map_or("", |class| heap.name(class.name))
                };
                let keys = heap
                    .groups()
                    .iter()
                    .map(|group| Key::Class { class: class(group.shown).to_owned() });
                let rows = keys.map(|key| self.row(key)).collect();
                Column { numbers: heap.group_numbers()?, rows, unknown: NONE }
            }
            By::Type => {
                let keys =
                    heap.groups().iter().map(|group| Key::Type { r#type: group.kind.name() });
                let rows = keys.map(|key| self.row(key)).collect();
                Column { numbers: heap.group_numbers()?, rows, unknown: NONE }
            }
            By::Site => {
                let keys = heap
                    .sites()
                    .iter()
                    .map(|site| Key::Site { file: name(site.file), line: Some(site.line) });
                let rows = keys.map(|key| self.row(key)).collect();
                let unknown = self.row(Key::Site { file: None, line: None });
                Column { numbers: heap.site_numbers()?, rows, unknown }
            }
            By::File => {
                let keys = heap.sites().iter().map(|site| Key::File { file: name(site.file) });
                let rows = keys.map(|key| self.row(key)).collect();
                let unknown = self.row(Key::File { file: None });
                Column { numbers: heap.site_numbers()?, rows, unknown }
            }
        })
    }
}

//! Names of a heap: the ones used in the dump, renumbered.

use super::NONE;
use memprof_dump::record::{NameId, Tables};

/// Interned texts.
#[derive(Default)]
pub struct Names {
    tables: Tables,
    /// Numbers here by the numbers in the dump's tables.
    own: Vec<u32>,
}

impl Names {
    /// The number of a text.
    pub(super) fn own(&mut self, text: &str) -> NameId {
        self.tables.intern(text)
    }

    /// The number of a text of the dump.
    #[inline]
    pub(super) fn of(&mut self, tables: &Tables, name: NameId) -> NameId {
        let index = name.0 as usize;
        match self.own.get(index) {
            Some(&own) if own != NONE => NameId(own),
            _ => self.add(tables, name),
        }
    }

    #[cold]
    fn add(&mut self, tables: &Tables, name: NameId) -> NameId {
        let index = name.0 as usize;
        if index >= self.own.len() {
            self.own.resize(index + 1, NONE);
        }
        let own = self.tables.intern(tables.name(name));
        self.own[index] = own.0;
        own
    }

    /// The text of a number; empty if the number is unknown.
    #[inline]
    pub fn name(&self, id: NameId) -> &str {
        self.tables.name(id)
    }

    /// The number of an interned text.
    pub fn find(&self, text: &str) -> Option<NameId> {
        self.tables.find_name(text)
    }

    /// All texts in order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len() as u32).map(|id| self.name(NameId(id)))
    }

    /// Number of texts.
    pub fn len(&self) -> usize {
        self.tables.names()
    }

    /// Whether it has no texts.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a> FromIterator<&'a str> for Names {
    fn from_iter<I: IntoIterator<Item = &'a str>>(texts: I) -> Names {
        let mut names = Names::default();
        texts.into_iter().for_each(|text| {
            names.own(text);
        });
        names
    }
}

//! Global variables: a variable of the VM points to a table from names to entries, which point to the variables.

use super::RubyHeap;
use crate::image::WORD;
use crate::ranges;

/// An entry: its variable, and the ID of its name.
const ENTRY: u64 = 2 * WORD;
/// In a variable: the value, or the address of a C variable with the value.
const DATA: u64 = WORD;
/// Two counters, the value, and the functions that get and set it.
const VARIABLE: u64 = 4 * WORD;
/// Every Ruby has more.
const PROOF: usize = 20;

impl RubyHeap<'_> {
    /// The objects in global variables by name, aliases last; empty if the table is not found.
    pub fn global_variables(&self) -> Vec<(String, u64)> {
        if self.ids.is_none() {
            return Vec::new();
        }
        let mut tables = Vec::new();
        for range in &self.analysis.map.statics {
            self.analysis.image.each_word(range.clone(), |_, word| {
                if word % WORD == 0 && self.room(word).is_some() {
                    tables.push(word);
                }
            });
        }
        let mut found = tables.into_iter().filter_map(|table| self.variables_of(table));
        found.next().unwrap_or_default()
    }

    fn variables_of(&self, table: u64) -> Option<Vec<(String, u64)>> {
        let pairs = self.id_table(table).filter(|pairs| pairs.len() >= PROOF)?;
        let mut variables = Vec::new();
        for (number, entry) in pairs {
            let name = self.ids.as_ref()?.of_number(self, number)?;
            let variable = self.memory.word(entry)?;
            let fits = self.room(entry)? >= ENTRY && self.room(variable)? >= VARIABLE;
            if !name.starts_with('$') || !fits {
                return None;
            }
            if let Some(object) = self.memory.word(variable + DATA).and_then(|data| self.held(data))
            {
                variables.push((name, object));
            }
        }
        // `$LOAD_PATH` rather than `$:`.
        variables.sort_by_cached_key(|(name, object)| {
            let is_word =
                name[1..].starts_with(|first: char| first.is_alphabetic() || first == '_');
            (!is_word, name.clone(), *object)
        });
        Some(variables)
    }

    /// The object that a variable has, itself or in a variable of C.
    fn held(&self, data: u64) -> Option<u64> {
        if self.slot(data).is_some() {
            return Some(data);
        }
        ranges::containing(&self.analysis.map.statics, data)?;
        self.memory.word(data).filter(|word| self.slot(*word).is_some())
    }
}

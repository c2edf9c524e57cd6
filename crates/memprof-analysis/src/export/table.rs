//! Objects and references as rows, for tabular formats.

use std::io;

use super::choice::Choice;
use super::naming::Naming;
use super::object_rows::{Row, Rows};
use super::references::References;
use super::{Counts, Options};
use memprof_heap::Heap;

/// The chosen part of a heap as two tables.
pub struct Table<'h> {
    heap: &'h Heap,
    choice: Choice,
    rows: Rows<'h>,
}

impl<'h> Table<'h> {
    /// Tables of a heap, or of a part of it.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn new(heap: &'h Heap, options: &Options<'_>) -> io::Result<Table<'h>> {
        let mut choice = Choice::new(heap, options, usize::MAX)?;
        // Roots are not objects, and a table has no rows that summarize others.
        (heap.len()..=heap.root()).for_each(|node| {
            choice.nodes.remove(node);
        });
        Ok(Table { heap, choice, rows: Rows::new(heap)? })
    }

    /// The objects.
    pub fn objects(&self) -> impl Iterator<Item = Row<'h>> {
        self.choice.nodes.iter().map(|id| self.rows.get(id))
    }

    /// Visits each reference: source, target, label. Stops at the first error.
    ///
    /// # Errors
    /// If `visit` fails, or the index cannot be read.
    pub fn references(
        &self,
        mut visit: impl FnMut(u32, u32, &str) -> io::Result<()>,
    ) -> io::Result<()> {
        let classes = self.heap.group_classes();
        let naming = Naming::new(self.heap)?;
        let graph = self.heap.graph(&classes)?;
        let references = References { graph, choice: &self.choice, naming: &naming, classes: true };
        for id in self.choice.nodes.iter() {
            references.of(id, |target, label| visit(id, target, &label))?;
        }
        Ok(())
    }

    /// Number of objects and of omitted objects.
    pub fn counts(&self) -> Counts {
        let counts = self.choice.counts();
        Counts { folded: 0, left_out: counts.left_out + counts.folded, ..counts }
    }
}

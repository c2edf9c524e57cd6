//! The interface of formats.

use std::io;

use super::format::Dump;
use super::record::{Edge, Label, NoteKind, Object, Shape, Tables, Value};

/// Writes one format: receives records in order.
///
/// The order is: the header note, other notes, roots, shapes, objects, the last notes, `finish`. An error means that
/// the output is lost (full disk, closed pipe); the caller stops and reports it.
pub trait Writer {
    /// A line about the process or the heap; `json` is one JSON object without line breaks.
    fn note(&mut self, tables: &Tables, kind: NoteKind, json: &str) -> io::Result<()>;

    /// References from roots of one category; called once for each category, or several times in a row.
    fn roots(&mut self, tables: &Tables, category: &str, edges: &[Edge<'_>]) -> io::Result<()>;

    /// A shape.
    fn shape(&mut self, tables: &Tables, shape: &Shape) -> io::Result<()>;

    /// Begins an object.
    fn object(&mut self, tables: &Tables, object: &Object<'_>) -> io::Result<()>;

    /// Edges of the current object. Called as often as needed; a key and its entry are never separated.
    fn edges(&mut self, tables: &Tables, edges: &[Edge<'_>]) -> io::Result<()>;

    /// Ends the object.
    fn end(&mut self, tables: &Tables) -> io::Result<()>;

    /// Ends the dump: writes buffered output and returns the counts. Only a `whole` dump gets the closing line: readers
    /// recognize a truncated dump by its absence.
    fn finish(&mut self, tables: &Tables, whole: bool) -> io::Result<super::record::Counts>;
}

/// Number of a template: the common part of objects that differ only in their address, memsize, contents, and when and where
/// they were allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TemplateId(pub u32);

/// Extensions for the walk over a live heap, where there is much to write while the program waits.
pub trait LiveWriter: Writer {
    /// Whether [`LiveWriter::edge`] is as fast as edges in batches.
    const ONE_BY_ONE: bool = false;

    /// False if only references are written, without labels: the walk then skips labels and values that are not references.
    const LABELS: bool = true;

    /// Begins an object without fields, and without age or id unless its whole template has the same. The caller ensures
    /// that objects of one template are alike.
    fn object_from_template(
        &mut self,
        tables: &Tables,
        _: TemplateId,
        object: &Object<'_>,
    ) -> io::Result<()> {
        self.object(tables, object)
    }

    /// An edge of the current object. A key's edge is followed by its entry's.
    fn edge(&mut self, tables: &Tables, edge: Edge<'_>) -> io::Result<()> {
        self.edges(tables, &[edge])
    }

    /// Consecutive addresses in an array, the first one at `index`. At most a few thousand.
    fn run(&mut self, tables: &Tables, index: u32, addresses: &[u64]) -> io::Result<()> {
        for (label, &address) in (index..).map(Label::Index).zip(addresses) {
            let edge = Edge { label, value: Value::Address(address), preview: None };
            self.edge(tables, edge)?;
        }
        Ok(())
    }
}

/// Any format.
impl LiveWriter for Dump {}

//! What a format implements.

use std::io;

use super::format::Dump;
use super::record::{Edge, Label, NoteKind, Object, Shape, Tables, Value};

/// One format: receives records in order, and writes them.
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

    /// An object begins.
    fn object(&mut self, tables: &Tables, object: &Object<'_>) -> io::Result<()>;

    /// Edges of the object that began last. Called as often as needed; a key and its entry are never parted.
    fn edges(&mut self, tables: &Tables, edges: &[Edge<'_>]) -> io::Result<()>;

    /// The object is complete.
    fn end(&mut self, tables: &Tables) -> io::Result<()>;

    /// Nothing more comes. Writes what is still held back and says what was written. Only a dump that is `whole` gets the
    /// closing line: without it, a reader sees that the dump was cut.
    fn finish(&mut self, tables: &Tables, whole: bool) -> io::Result<super::record::Counts>;
}

/// Number of a template: what objects have in common that are alike in all but their address, their memsize, what they hold, and when
/// and where they were allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TemplateId(pub u32);

/// What the walk over a live heap asks for besides: there is much of it, and the program waits.
pub trait LiveWriter: Writer {
    /// True if [`LiveWriter::edge`] is as fast as edges in batches.
    const ONE_BY_ONE: bool = false;

    /// False if only references are written, and no labels: the walk then looks neither for labels nor for values that are
    /// no references.
    const LABELS: bool = true;

    /// An object begins that has no fields, and neither age nor id unless all of its template have the same. Objects of
    /// one template are alike, as the caller vouches.
    fn object_from_template(
        &mut self,
        tables: &Tables,
        _: TemplateId,
        object: &Object<'_>,
    ) -> io::Result<()> {
        self.object(tables, object)
    }

    /// One edge of the object that began last. That of a key is followed by that of its entry.
    fn edge(&mut self, tables: &Tables, edge: Edge<'_>) -> io::Result<()> {
        self.edges(tables, &[edge])
    }

    /// Addresses that follow each other in an array, the first one at `index`. Not more than some thousands.
    fn run(&mut self, tables: &Tables, index: u32, addresses: &[u64]) -> io::Result<()> {
        for (label, &address) in (index..).map(Label::Index).zip(addresses) {
            let edge = Edge {
                label,
                value: Value::Address(address),
                preview: None,
            };
            self.edge(tables, edge)?;
        }
        Ok(())
    }
}

/// Any format.
impl LiveWriter for Dump {}

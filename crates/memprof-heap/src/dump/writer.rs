//! What a format implements.

use std::io;

use super::record::{Edge, NoteKind, Object, Shape, Tables};

/// One format: told of records in order, writes them.
///
/// The order is: the header note, other notes, roots, shapes, objects, the last notes, `finish`. An error means that
/// the output is lost (full disk, closed pipe); the caller stops and tells.
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

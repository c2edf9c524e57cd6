//! The target of readers: a writer, behind a filter for disallowed values.

use std::io;

use super::super::record::{Counts, Edge, Label, NameId, NoteKind, Object, Shape, Tables};
use super::super::values::{Policy, Values};
use super::super::writer::Writer;
use super::Stop;
use super::reduce;

/// Edges that a reader collects before passing them on.
pub(in super::super) const PIECE: usize = 1024;

/// The writer that receives the records.
pub(in super::super) struct Target<'w> {
    /// Texts of the records.
    pub tables: Tables,
    writer: &'w mut dyn Writer,
    values: Values,
    /// Address of the last object, if it is not complete yet.
    open: Option<u64>,
    /// The empty text.
    none: Option<NameId>,
}

/// Limit on an object's size. Bogus sizes must not make sums too large.
const LARGEST: u64 = 1 << 48;

/// Writer errors end the conversion, input errors do not.
fn output(result: io::Result<()>) -> Result<(), Stop> {
    result.map_err(Stop::Output)
}

impl<'w> Target<'w> {
    pub fn new(writer: &'w mut dyn Writer, values: Values) -> Target<'w> {
        Target { tables: Tables::default(), writer, values, open: None, none: None }
    }

    /// The number of the empty text.
    #[inline]
    pub fn no_name(&mut self) -> NameId {
        let tables = &mut self.tables;
        *self.none.get_or_insert_with(|| tables.intern(""))
    }

    /// Completes the open object.
    pub fn close(&mut self) -> Result<(), Stop> {
        match self.open.take() {
            Some(_) => output(self.writer.end(&self.tables)),
            None => Ok(()),
        }
    }

    pub fn note(&mut self, kind: NoteKind, json: &str) -> Result<(), Stop> {
        self.close()?;
        let reduced = match self.values.policy {
            Policy::Full => None,
            _ => reduce::note(&self.values, kind, json),
        };
        let json = reduced.as_deref().unwrap_or(json);
        output(self.writer.note(&self.tables, kind, json))
    }

    pub fn roots(&mut self, category: &str, edges: &mut [Edge<'_>]) -> Result<(), Stop> {
        self.close()?;
        self.reduce(edges);
        output(self.writer.roots(&self.tables, category, edges))
    }

    pub fn shape(&mut self, shape: &Shape) -> Result<(), Stop> {
        self.close()?;
        output(self.writer.shape(&self.tables, shape))
    }

    pub fn object(&mut self, object: &Object<'_>) -> Result<(), Stop> {
        self.close()?;
        self.open = Some(object.address);
        if self.values.policy == Policy::Full && object.memsize <= LARGEST {
            return output(self.writer.object(&self.tables, object));
        }
        let fields = reduce::fields(&self.values, &mut self.tables, object);
        let object = Object {
            detail: reduce::detail(&self.values, &mut self.tables, object.detail),
            fields: &fields,
            allocation: object
                .allocation
                .map(|known| reduce::allocation(&self.values, &mut self.tables, known)),
            memsize: object.memsize.min(LARGEST),
            ..*object
        };
        output(self.writer.object(&self.tables, &object))
    }

    /// Whether more edges of this object may follow.
    pub fn is_open(&self, address: u64) -> bool {
        self.open == Some(address)
    }

    /// Passes edges on and empties the list.
    pub fn edges(&mut self, edges: &mut Vec<Edge<'_>>) -> Result<(), Stop> {
        self.reduce(edges);
        let result = self.writer.edges(&self.tables, edges);
        edges.clear();
        output(result)
    }

    /// Passes edges on if there are many, but never a key without its entry.
    #[inline]
    pub fn passed(&mut self, edges: &mut Vec<Edge<'_>>) -> Result<(), Stop> {
        let many = edges.len() >= PIECE;
        if many && edges.last().is_some_and(|edge| edge.label != Label::Key) {
            return self.edges(edges);
        }
        Ok(())
    }

    pub fn finish(&mut self, whole: bool) -> io::Result<Counts> {
        self.close().map_err(Stop::into_error)?;
        self.writer.finish(&self.tables, whole)
    }

    fn reduce(&mut self, edges: &mut [Edge<'_>]) {
        if self.values.policy == Policy::Full {
            return;
        }
        for edge in edges {
            edge.value = reduce::value(&self.values, &mut self.tables, edge.value);
            if !self.values.previews() {
                edge.preview = None;
            }
        }
    }
}

//! A heap in the formats of other programs: one file per format.
//!
//! [`write()`] writes any of them. All formats choose objects (`choice`) and name them (`naming`) in the same way.

mod choice;
mod collapsed;
mod csv;
mod documents;
mod dot;
mod drawing;
mod flame_graph;
mod frames;
mod gexf;
mod gml;
mod heap_snapshot;
#[cfg(test)]
mod hostile_heaps;
mod naming;
pub mod object_rows;
mod out;
mod references;
pub mod table;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

pub(crate) use frames::Frames;
pub(crate) use gml::Gml;

use memprof_heap::Heap;
use memprof_heap::graph::BitSet;

/// A format of another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Chrome's DevTools.
    HeapSnapshot,
    /// Graph Modelling Language: Gephi, networkx, Cytoscape.
    Gml,
    /// Gephi's native format.
    Gexf,
    /// Graphviz.
    Dot,
    /// The dominator tree as collapsed stacks.
    Collapsed,
    /// The dominator tree as a page of HTML.
    FlameGraph,
    /// A table of objects: comma-separated values.
    ObjectsCsv,
    /// A table of references.
    ReferencesCsv,
    /// JSON lines for mongoimport.
    Documents,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 9] = [
        Format::HeapSnapshot,
        Format::Gml,
        Format::Gexf,
        Format::Dot,
        Format::Collapsed,
        Format::FlameGraph,
        Format::ObjectsCsv,
        Format::ReferencesCsv,
        Format::Documents,
    ];

    /// Name, as users type it.
    pub fn name(self) -> &'static str {
        match self {
            Format::HeapSnapshot => "heapsnapshot",
            Format::Gml => "gml",
            Format::Gexf => "gexf",
            Format::Dot => "dot",
            Format::Collapsed => "collapsed",
            Format::FlameGraph => "flamegraph",
            Format::ObjectsCsv => "objects-csv",
            Format::ReferencesCsv => "references-csv",
            Format::Documents => "mongo",
        }
    }

    /// The usual file extension of the format.
    pub fn ending(self) -> &'static str {
        match self {
            Format::HeapSnapshot => "heapsnapshot",
            Format::Gml => "gml",
            Format::Gexf => "gexf",
            Format::Dot => "dot",
            Format::Collapsed => "folded",
            Format::FlameGraph => "html",
            Format::ObjectsCsv => "objects.csv",
            Format::ReferencesCsv => "references.csv",
            Format::Documents => "jsonl",
        }
    }

    /// The format with this name.
    pub fn of_name(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }
}

/// The part of a heap to write.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'o> {
    /// Only these objects and the references between them. `None`: all, with the roots.
    pub members: Option<&'o BitSet>,
    /// Maximum number of objects (in a flame graph: frames); those that retain most are included. `None`: as many as viewers
    /// of the format can handle, or unlimited if programs read it.
    pub limit: Option<usize>,
    /// Maximum number of steps from the roots in the dominator tree.
    pub depth: Option<u32>,
    /// Excludes objects that retain fewer bytes than this.
    pub min_retained: u64,
}

/// Counts of what was written and what was omitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Objects (in a flame graph: frames).
    pub objects: u64,
    /// References between them.
    pub references: u64,
    /// Objects without a node of their own, counted in nodes named `(12 more)`.
    pub folded: u64,
    /// Requested objects that are not in the file at all.
    pub left_out: u64,
}

/// Writes a heap, or a part of it.
///
/// # Errors
/// If `out` fails, or the index of the heap cannot be read.
pub fn write(
    heap: &Heap,
    format: Format,
    options: &Options<'_>,
    out: &mut dyn Write,
) -> io::Result<Counts> {
    match format {
        Format::HeapSnapshot => heap_snapshot::write(heap, options, out),
        Format::Gml => gml::write(heap, options, out),
        Format::Gexf => gexf::write(heap, options, out),
        Format::Dot => dot::write(heap, options, out),
        Format::Collapsed => collapsed::write(heap, options, out),
        Format::FlameGraph => flame_graph::write(heap, options, out),
        Format::ObjectsCsv => csv::objects(heap, options, out),
        Format::ReferencesCsv => csv::references(heap, options, out),
        Format::Documents => documents::write(heap, options, out),
    }
}

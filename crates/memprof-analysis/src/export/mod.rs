//! A heap in the formats of other programs: one file a format.
//!
//! [`write()`] writes any of them. Which objects are in a file is chosen in one way for all formats (`choice`), and
//! objects have the same names in all of them (`naming`).

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
    /// Gephi's own.
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

    /// Name, as people give it.
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

    /// How files of the format usually end.
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

    /// The format of a name.
    pub fn of_name(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }
}

/// Which part of a heap is written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'o> {
    /// These objects only, and references among them. `None`: all, with the roots.
    pub members: Option<&'o BitSet>,
    /// Most objects (in a flame graph: frames). Those that retain most are kept. `None`: as many as the viewers of the format
    /// can bear; without bound in formats that are read by programs.
    pub limit: Option<usize>,
    /// Most steps from the roots in the dominator tree.
    pub depth: Option<u32>,
    /// Objects that retain fewer bytes than this are left out.
    pub min_retained: u64,
}

/// What was written, and what was not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Objects (in a flame graph: frames).
    pub objects: u64,
    /// References among them.
    pub references: u64,
    /// Objects that have no place of their own, and are counted in nodes that are named `(12 more)`.
    pub folded: u64,
    /// Objects that were asked for and are not in the file at all.
    pub left_out: u64,
}

/// Writes a heap, or a part of it.
///
/// # Errors
/// Those of `out`, and if the index of the heap cannot be read.
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

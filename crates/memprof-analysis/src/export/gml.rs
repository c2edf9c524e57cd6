//! GML, for Gephi, networkx, Cytoscape, igraph.
//!
//! Source of truth: Michael Himsolt, "GML: A portable Graph File Format" (1997): ASCII; in texts `"`, `&` and all non-ASCII
//! characters are entities; integers have 32 bits, larger numbers are written as reals.

use std::io::{self, Write};

use super::drawing::Drawing;
use super::out::Out;
use super::{Counts, Options};
use memprof_heap::Heap;

/// Objects that Gephi can still lay out.
const LIMIT: usize = 20_000;

/// Writes the graph.
pub(super) fn write(heap: &Heap, options: &Options<'_>, out: &mut dyn Write) -> io::Result<Counts> {
    let drawing = Drawing::new(heap, options, LIMIT)?;
    out.write_all(b"Creator \"memprof\"\n")?;
    let mut gml = Gml::new(out);
    drawing.nodes(|node| {
        gml.node(node.id);
        gml.text("label", node.title);
        gml.text("type", node.kind);
        gml.text("class", node.class);
        gml.number("size", node.size);
        gml.number("retained", node.retained);
        gml.end()
    })?;
    let counts = drawing.edges(|edge| {
        gml.edge(edge.from, edge.to);
        gml.text("label", edge.label);
        gml.end()
    })?;
    gml.finish()?;
    Ok(counts)
}

/// Writes a graph: nodes, then edges, each with its attributes.
pub(crate) struct Gml<'w> {
    out: Out<'w>,
}

impl<'w> Gml<'w> {
    /// A directed graph.
    pub fn new(out: &'w mut dyn Write) -> Gml<'w> {
        let mut out = Out::new(out);
        out.push("graph\n[\n  directed 1\n");
        Gml { out }
    }

    /// Begins a node. Its attributes follow.
    pub fn node(&mut self, id: u32) {
        self.out.push("  node\n  [\n    id ");
        self.out.number(id);
    }

    /// Begins an edge. Its attributes follow.
    pub fn edge(&mut self, from: u32, to: u32) {
        self.out.push("  edge\n  [\n    source ");
        self.out.number(from);
        self.out.push("\n    target ");
        self.out.number(to);
    }

    /// A key; its value follows.
    fn key(&mut self, key: &str) {
        self.out.push("\n    ");
        self.out.push(key);
        self.out.push(" ");
    }

    /// A numeric attribute.
    pub fn number(&mut self, key: &str, number: u64) {
        self.key(key);
        self.out.number(number);
        if i32::try_from(number).is_err() {
            self.out.push(".0");
        }
    }

    /// A text attribute.
    pub fn text(&mut self, key: &str, text: &str) {
        self.key(key);
        let out = &mut self.out;
        out.push("\"");
        for character in text.chars() {
            match character {
                '"' => out.push("&quot;"),
                '&' => out.push("&amp;"),
                ' '..='~' => out.text.push(character as u8),
                _ => {
                    out.push("&#");
                    out.number(u32::from(character));
                    out.push(";");
                }
            }
        }
        out.push("\"");
    }

    /// Ends a node or an edge.
    pub fn end(&mut self) -> io::Result<()> {
        self.out.push("\n  ]\n");
        self.out.flush_if_full()
    }

    /// Ends the graph.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.push("]\n");
        self.out.finish()
    }
}

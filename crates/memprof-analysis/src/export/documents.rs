//! JSON lines for document databases: `mongoimport --db heap --collection objects --file heap.jsonl`.
//!
//! Source of truth: the first memprof's dumps, which were imported into MongoDB (`_id`, `file`, `line`, `type`,
//! `class_name`, `length`, `data`), and mongoimport's manual: one document per line, at most 16 MB each.
//! `references_left_out` counts an object's references that do not fit.

use std::io::{self, Write};

use super::choice::Choice;
use super::naming::Naming;
use super::object_rows::Rows;
use super::out::{Out, json};
use super::references::References;
use super::{Counts, Options};
use memprof_dump::record::Kind;
use memprof_heap::Heap;

/// Bytes of references and of labels in one document. BSON takes up to twice as much.
const ROOM: usize = 3 << 20;

/// Writes the documents.
pub(super) fn write(heap: &Heap, options: &Options<'_>, out: &mut dyn Write) -> io::Result<Counts> {
    let choice = Choice::new(heap, options, usize::MAX)?;
    let classes = heap.group_classes();
    let naming = Naming::new(heap)?;
    let references = References {
        graph: heap.graph(&classes)?,
        choice: &choice,
        naming: &naming,
        classes: false,
    };
    let mut documents = Documents {
        heap,
        rows: Rows::new(heap)?,
        texts: Naming::new(heap)?,
        references,
        out: Out::new(out),
        count: 0,
    };
    for node in choice.nodes.iter().filter(|&node| node != heap.root()) {
        if node < heap.len() {
            documents.object(node)?;
        } else {
            documents.root(node);
        }
        documents.references(node)?;
        documents.out.push("}\n");
        documents.out.flush_if_full()?;
    }
    documents.out.finish()?;
    let counts = choice.counts();
    Ok(Counts {
        references: documents.count,
        folded: 0,
        left_out: counts.left_out + counts.folded,
        ..counts
    })
}

struct Documents<'d, 'h, 'o> {
    heap: &'h Heap,
    rows: Rows<'h>,
    texts: Naming<'h>,
    references: References<'d, 'h>,
    out: Out<'o>,
    count: u64,
}

/// `"0x7f00"`, or `"root:vm"`.
fn id(out: &mut Vec<u8>, heap: &Heap, node: u32) {
    match heap.category(node) {
        Some(category) => json(out, &format!("root:{}", category.name)),
        None if node == heap.root() => out.extend_from_slice(b"\"root\""),
        None => {
            let end = out.len();
            write!(out, "\"{:#x}\"", heap.addresses().of(node))
                .unwrap_or_else(|_| out.truncate(end));
        }
    }
}

impl Documents<'_, '_, '_> {
    fn text(&mut self, key: &str, text: &str) {
        self.out.push(key);
        self.out.json(text);
    }

    fn number(&mut self, key: &str, number: impl itoa::Integer) {
        self.out.push(key);
        self.out.number(number);
    }

    fn root(&mut self, node: u32) {
        self.out.push("{\"_id\":");
        id(&mut self.out.text, self.heap, node);
        let name = self.heap.category(node).map_or("", |category| &category.name);
        self.text(",\"type\":\"root\",\"root\":", name);
    }

    fn object(&mut self, node: u32) -> io::Result<()> {
        let row = self.rows.get(node);
        self.out.push("{\"_id\":");
        id(&mut self.out.text, self.heap, node);
        if let Some(site) = row.site {
            self.text(",\"file\":", self.heap.name(site.file));
            if site.line > 0 {
                self.number(",\"line\":", site.line);
            }
            if let Some(method) = site.method {
                self.text(",\"method\":", self.heap.name(method));
            }
        }
        if let Some(generation) = row.generation {
            self.number(",\"generation\":", generation);
        }
        self.text(",\"type\":", row.kind);
        if let Some((_, class)) = self.references.graph.extra_of(node) {
            self.out.push(",\"class\":");
            id(&mut self.out.text, self.heap, class);
        }
        self.text(",\"class_name\":", row.class);
        if matches!(self.texts.kind(node), Kind::CLASS | Kind::MODULE) {
            if let Some(name) = self.heap.class_object(node).and_then(|class| class.name) {
                self.text(",\"name\":", self.heap.name(name));
            }
        }
        if let Some(length) = row.length {
            self.number(",\"length\":", length);
        }
        if let Some(text) = self.texts.text(node)? {
            if let Some(bytes) = text.bytes() {
                self.text(",\"data\":", &String::from_utf8_lossy(bytes));
                if text.length > bytes.len() as u64 {
                    self.out.push(",\"truncated\":true");
                }
            }
        }
        self.number(",\"memsize\":", row.size);
        self.number(",\"retained\":", row.retained);
        self.out.push(",\"dominator\":");
        match self.heap.dominators()?.parent_of(node) {
            Some(dominator) => id(&mut self.out.text, self.heap, dominator),
            None => self.out.push("null"),
        }
        self.out.push(",\"flags\":[");
        for (index, name) in row.flags.names().enumerate() {
            self.out.push(if index > 0 { ",\"" } else { "\"" });
            self.out.push(name);
            self.out.push("\"");
        }
        self.out.push("]");
        Ok(())
    }

    /// Writes `references`, and as many `labels` if any of them has one.
    fn references(&mut self, node: u32) -> io::Result<()> {
        let heap = self.heap;
        let (mut targets, mut labels) = (Vec::new(), Vec::new());
        let (mut written, mut left_out, mut any) = (0, 0_u64, false);
        self.references.of(node, |target, label| {
            if targets.len() + labels.len() > ROOM {
                left_out += 1;
                return Ok(());
            }
            if written > 0 {
                targets.push(b',');
                labels.push(b',');
            }
            id(&mut targets, heap, target);
            // Labels can be of any length, so they are shortened for readers.
            match super::naming::shown(&label) {
                label if label.is_empty() => labels.extend_from_slice(b"null"),
                label => json(&mut labels, &label),
            }
            any |= !label.is_empty();
            written += 1;
            Ok(())
        })?;
        self.count += written;
        self.out.push(",\"references\":[");
        self.out.text.extend_from_slice(&targets);
        self.out.push("]");
        if any {
            self.out.push(",\"labels\":[");
            self.out.text.extend_from_slice(&labels);
            self.out.push("]");
        }
        if left_out > 0 {
            self.number(",\"references_left_out\":", left_out);
        }
        Ok(())
    }
}

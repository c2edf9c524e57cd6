//! The edges of a record.

use super::super::record::{Edge, Label, Tables, Value};
use super::encode::{address, bytes, kind, varint};
use super::{Binary, label, record};

impl Binary {
    /// Begins a record with more edges of an object that began in an earlier block.
    pub(super) fn more(&mut self, object: u64, index: u32) {
        self.block.push(record::MORE);
        address(&mut self.block, object, 0);
        varint(&mut self.block, index.into());
        self.last.object = object;
        self.last.reference = object;
        self.last.index = index;
    }

    #[inline]
    pub(super) fn edge_list(&mut self, tables: &Tables, edges: &[Edge<'_>]) {
        let mut at = 0;
        while let Some(edge) = edges.get(at) {
            if let (Label::Index(index), Value::Address(_)) = (edge.label, edge.value) {
                if index == self.last.index {
                    let run = self.run(&edges[at..]);
                    if run > 0 {
                        at += run;
                        continue;
                    }
                }
            }
            self.edge(tables, edge);
            at += 1;
        }
    }

    /// Writes references of elements that follow each other; returns how many, 0 if it is not worth it.
    fn run(&mut self, edges: &[Edge<'_>]) -> usize {
        let first = self.last.index;
        let in_run = |(place, edge): &(usize, &Edge<'_>)| {
            edge.label == Label::Index(first.wrapping_add(*place as u32))
                && matches!(edge.value, Value::Address(_))
                && edge.preview.is_none()
        };
        let length = edges.iter().enumerate().take_while(in_run).count();
        if length < 2 {
            return 0;
        }
        self.block.push(label::RUN);
        varint(&mut self.block, length as u64);
        for edge in &edges[..length] {
            if let Value::Address(target) = edge.value {
                self.is_reference(edge);
                address(&mut self.block, target, self.last.reference);
                self.last.reference = target;
            }
        }
        self.last.index = first.wrapping_add(length as u32);
        length
    }

    /// Counts a reference, if this is one.
    #[inline]
    fn is_reference(&mut self, edge: &Edge<'_>) -> bool {
        let address = if self.last.root {
            self.tally.root(edge)
        } else {
            self.tally.reference(edge)
        };
        self.told.references += u32::from(address.is_some());
        address.is_some()
    }

    #[inline]
    fn edge(&mut self, tables: &Tables, edge: &Edge<'_>) {
        if matches!(edge.value, Value::Address(_)) && !self.is_reference(edge) {
            // The class, which the form has.
            return;
        }
        let (code, name) = match edge.label {
            Label::None => (label::NONE, None),
            Label::Index(index) if index == self.last.index => (label::NEXT, None),
            Label::Index(_) => (label::INDEX, None),
            Label::Key if edge.preview.is_some() => (label::KEY_PREVIEW, None),
            Label::Key => (label::KEY, None),
            Label::Entry if edge.preview.is_some() => (label::ENTRY_PREVIEW, None),
            Label::Entry => (label::ENTRY, None),
            Label::Ivar(name) => (label::IVAR, Some(name)),
            Label::ClassVariable(name) => (label::CLASS_VARIABLE, Some(name)),
            Label::Constant(name) => (label::CONSTANT, Some(name)),
            Label::Member(name) => (label::MEMBER, Some(name)),
            Label::Local(name) => (label::LOCAL, Some(name)),
            Label::Global(name) => (label::GLOBAL, Some(name)),
            Label::Method(name) => (label::METHOD, Some(name)),
            Label::Role(name) => (label::ROLE, Some(name)),
        };
        let out = &mut self.block;
        out.push(code << 4 | kind(edge.value));
        if let Some(name) = name {
            self.interned.name(out, tables, name);
        }
        if let Label::Index(index) = edge.label {
            if code == label::INDEX {
                varint(out, index.into());
            }
            self.last.index = index.wrapping_add(1);
        }
        if let (Label::Key | Label::Entry, Some(preview)) = (edge.label, edge.preview) {
            bytes(out, preview);
        }
        self.interned
            .payload(out, tables, edge.value, &mut self.last.reference);
    }
}

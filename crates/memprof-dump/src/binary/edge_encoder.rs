//! The edges of a record.

use super::super::record::{Edge, Label, NameId, Tables, Value};
use super::encode::kind;
use super::out::{Out, Window};
use super::{Binary, label, record};

impl Binary {
    /// Begins a record that continues an object from an earlier block.
    pub(super) fn more(&mut self, object: u64, index: u32) {
        let mut out = Out::new(&mut self.block, self.at);
        out.push(record::MORE);
        out.address(object, 0);
        out.varint(index.into());
        self.at = out.end();
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

    /// Writes references of consecutive elements; returns their number, 0 if a run is not worth it.
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
        for edge in &edges[..length] {
            self.is_reference(edge);
        }
        let addresses = edges[..length].iter().map(|edge| match edge.value {
            Value::Address(target) => target,
            _ => 0,
        });
        self.addresses(addresses);
        length
    }

    /// Writes a run that starts at the next index.
    #[inline(always)]
    pub(super) fn addresses(&mut self, addresses: impl ExactSizeIterator<Item = u64>) {
        let length = addresses.len();
        let mut out = Out::new(&mut self.block, self.at);
        out.push(label::RUN);
        out.varint(length as u64);
        let mut last = self.last.reference;
        for target in addresses {
            out.address(target, last);
            last = target;
        }
        self.at = out.end();
        self.last.reference = last;
        self.last.index = self.last.index.wrapping_add(length as u32);
    }

    /// Counts a reference, if this is one.
    #[inline(always)]
    fn is_reference(&mut self, edge: &Edge<'_>) -> bool {
        let address =
            if self.last.root { self.tally.root(edge) } else { self.tally.reference(edge) };
        self.counts.references += u32::from(address.is_some());
        address.is_some()
    }

    #[inline(always)]
    pub(super) fn edge(&mut self, tables: &Tables, edge: &Edge<'_>) {
        if matches!(edge.value, Value::Address(_)) && !self.is_reference(edge) {
            // The class, which is in the form.
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
        // Only keys and entries have a preview.
        let preview = edge.preview.filter(|_| matches!(edge.label, Label::Key | Label::Entry));
        let name = name.map(|name| (name, self.interned.number(name)));
        let value = match edge.value {
            Value::Symbol(name) | Value::Name(name) | Value::Json(name) => {
                Some((name, self.interned.number(name)))
            }
            _ => None,
        };
        let mut out = Out::new(&mut self.block, self.at);
        let last = &mut self.last;
        let new = |name: Option<Named>| matches!(name, Some((_, (_, true))));
        if preview.is_some() || new(name) || new(value) {
            let edge = Edge { preview, ..*edge };
            let reference = last.reference;
            out.apart(|out| with_text(out, tables, &edge, code, [name, value], reference));
        } else {
            let mut head = out.window();
            head.push(code << 4 | kind(edge.value));
            if let Some((_, (number, _))) = name {
                head.varint(number.into());
            }
            if let (label::INDEX, Label::Index(index)) = (code, edge.label) {
                head.varint(index.into());
            }
            payload(&mut head, edge.value, value, last.reference);
            let bytes = head.end();
            out.keep(bytes);
        }
        if let Label::Index(index) = edge.label {
            last.index = index.wrapping_add(1);
        }
        if let Value::Address(target) = edge.value {
            last.reference = target;
        }
        self.at = out.end();
    }
}

/// A value without its kind. `name` is the number of its text, if it has one.
#[inline(always)]
fn payload(out: &mut Window<'_>, value: Value, name: Option<Named>, base: u64) {
    match value {
        Value::Int(number) => out.zigzag(number),
        Value::Float(number) => out.fixed(number.to_bits()),
        Value::Address(target) => out.address(target, base),
        _ => {
            if let Some((_, (number, _))) = name {
                out.varint(number.into());
            }
        }
    }
}

/// A text, its number in the block, and whether it is new there.
type Named = (NameId, (u32, bool));

/// An edge with a text: a new name of its label or value, or the start of a key.
fn with_text(
    out: &mut Out<'_>,
    tables: &Tables,
    edge: &Edge<'_>,
    code: u8,
    [name, value]: [Option<Named>; 2],
    reference: u64,
) {
    let named = |out: &mut Out<'_>, name: Option<Named>| {
        if let Some((id, (number, new))) = name {
            out.varint(number.into());
            if new {
                out.bytes(tables.name(id).as_bytes());
            }
        }
    };
    out.push(code << 4 | kind(edge.value));
    named(out, name);
    if let (label::INDEX, Label::Index(index)) = (code, edge.label) {
        out.varint(index.into());
    }
    if let Some(preview) = edge.preview {
        out.bytes(preview);
    }
    named(out, value);
    if value.is_none() {
        let mut head = out.window();
        payload(&mut head, edge.value, None, reference);
        let bytes = head.end();
        out.keep(bytes);
    }
}

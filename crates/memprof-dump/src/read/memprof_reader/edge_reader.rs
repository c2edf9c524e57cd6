//! An object's contents. Containers and references were a single list when written; they are merged again.

use std::collections::VecDeque;
use std::ops::Range;

use super::labels::preview;
use crate::read::target::{PIECE, Target};
use crate::read::window::Window;
use crate::read::{Fallible, Stop};
use crate::record::{Edge, Kind, Label, Value};

/// Number of keys of named containers.
const NAMED: usize = 5;

/// A key for a part of the object's contents, by name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    Ivars,
    Members,
    Locals,
    Methods,
    Values,
}

/// The container for values with such a label.
fn container(label: Label) -> Option<Container> {
    match label {
        Label::Ivar(_) | Label::ClassVariable(_) | Label::Constant(_) => Some(Container::Ivars),
        Label::Member(_) => Some(Container::Members),
        Label::Local(_) | Label::Global(_) => Some(Container::Locals),
        Label::Method(_) => Some(Container::Methods),
        Label::None | Label::Index(_) | Label::Key | Label::Entry | Label::Role(_) => None,
    }
}

/// The value of `data`, if it is a list.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Data {
    /// Missing, or not a list.
    #[default]
    None,
    Elements,
    /// Keys and values alternate.
    Pairs,
}

/// Limit on unsuccessful comparisons of references per object. Only lines not written by memprof need that many.
const STEPS: usize = 1_000_000;

/// Number of elements whose room is kept between lines.
const KEPT: usize = 64 * 1024;

/// The contents of one line.
#[derive(Default)]
pub(super) struct Held {
    pub data: Data,
    /// Elements of `data`.
    pub elements: Vec<Value>,
    named: [VecDeque<(Label, Value)>; NAMED],
    addresses: Vec<u64>,
    /// One per reference, or none. The text of a [`Label::Entry`] is in `texts`.
    labels: Vec<Label>,
    entries: Vec<(usize, Range<usize>)>,
    texts: Vec<u8>,
    has_references: bool,
    /// Number of references passed on, and of entries among them.
    next: usize,
    next_entry: usize,
    hash: bool,
    /// Whether references are only in containers.
    classic: bool,
    steps: usize,
    pending: Vec<Edge<'static>>,
    previews: Vec<(usize, Range<usize>)>,
}

fn empty<T>(list: &mut Vec<T>) {
    list.clear();
    list.shrink_to(KEPT);
}

impl Held {
    pub fn clear(&mut self) {
        self.data = Data::None;
        empty(&mut self.elements);
        self.named.iter_mut().for_each(VecDeque::clear);
        empty(&mut self.addresses);
        empty(&mut self.labels);
        empty(&mut self.entries);
        empty(&mut self.texts);
        self.has_references = false;
        self.next = 0;
        self.next_entry = 0;
        self.steps = STEPS;
        self.pending.clear();
        self.previews.clear();
    }

    /// A value of a container.
    pub fn push(&mut self, container: Container, label: Label, value: Value) {
        self.named[container as usize].push_back((label, value));
    }

    /// A reference outside of the list.
    pub fn push_reference(&mut self, label: Label, address: u64) {
        if self.labels.len() < self.addresses.len() {
            self.labels.resize(self.addresses.len(), Label::None);
        }
        self.addresses.push(address);
        self.labels.push(label);
    }

    /// The value of `references`.
    #[inline(always)]
    pub fn references(&mut self, window: &mut Window<'_>) -> Fallible<()> {
        self.has_references = true;
        if !window.open(b'[', b']')? {
            return Ok(());
        }
        loop {
            window.ensure()?;
            self.addresses.push(window.address()?);
            if !window.more(b']')? {
                return Ok(());
            }
        }
    }

    pub fn has_references(&self) -> bool {
        self.has_references
    }

    /// The next label.
    #[inline(always)]
    pub fn label(&mut self, label: Label) {
        self.labels.push(label);
    }

    /// The next label, in brackets. For a hash, only the start of a string is needed.
    pub fn entry(&mut self, text: &[u8]) {
        let start = self.texts.len();
        if self.data != Data::Pairs || preview(text).is_some() {
            self.texts.extend_from_slice(text);
        }
        let end = self.texts.len();
        if end > start {
            self.entries.push((self.labels.len(), start..end));
        }
        self.labels.push(Label::Entry);
    }

    /// Fails if there are labels, but not one per reference.
    pub fn check(&self) -> Fallible<()> {
        match self.labels.len() {
            0 => Ok(()),
            count if count == self.addresses.len() => Ok(()),
            _ => Err(Stop::Broken),
        }
    }

    /// Passes on the references of a root.
    pub fn emit_roots(&mut self, category: &str, target: &mut Target<'_>) -> Fallible<()> {
        self.check()?;
        self.hash = false;
        for place in 0..self.addresses.len() {
            let edge = Edge {
                label: self.written(place, target),
                value: Value::Address(self.addresses[place]),
                preview: None,
            };
            self.pending.push(edge);
            if self.pending.len() >= PIECE {
                target.roots(category, &mut self.pending)?;
                self.pending.clear();
            }
        }
        if self.pending.is_empty() && !self.addresses.is_empty() {
            return Ok(());
        }
        target.roots(category, &mut self.pending)
    }

    /// Passes everything to `target`.
    pub fn emit(&mut self, kind: Kind, classic: bool, target: &mut Target<'_>) -> Fallible<()> {
        self.hash = self.data == Data::Pairs || (kind == Kind::HASH && self.data == Data::None);
        self.classic = classic;
        match self.data {
            Data::None => {}
            Data::Elements => self.elements(target)?,
            Data::Pairs => self.pairs(target)?,
        }
        self.emit_until(usize::MAX, target)?;
        for place in 0..NAMED {
            while let Some((label, value)) = self.named[place].pop_front() {
                self.push_immediate(label, value, target)?;
            }
        }
        self.flush(target)
    }

    fn elements(&mut self, target: &mut Target<'_>) -> Fallible<()> {
        for place in 0..self.elements.len() {
            let value = self.elements[place];
            let label = Label::Index(place as u32);
            if self.pass(value, label, target)?.is_some() {
                self.push_edge(label, value, None, target)?;
            }
        }
        Ok(())
    }

    fn pairs(&mut self, target: &mut Target<'_>) -> Fallible<()> {
        for place in 0..self.elements.len() / 2 {
            let key = self.elements[2 * place];
            let value = self.elements[2 * place + 1];
            self.pass(key, Label::Key, target)?;
            let found = self.pass(value, Label::Entry, target)?;
            let preview = found.flatten().and_then(|place| self.preview(place));
            self.push_edge(Label::Key, key, None, target)?;
            self.push_edge(Label::Entry, value, preview, target)?;
        }
        Ok(())
    }

    /// The label of a reference, as if the object were not a hash.
    fn written(&mut self, place: usize, target: &mut Target<'_>) -> Label {
        match self.labels.get(place) {
            Some(Label::Entry) => {
                let text = self.text(place).unwrap_or(0..0);
                let text = String::from_utf8_lossy(&self.texts[text]);
                Label::Role(target.tables.intern(&text))
            }
            Some(label) => *label,
            None => Label::None,
        }
    }

    /// The label of a reference.
    #[inline(always)]
    fn label_at(&mut self, place: usize, target: &mut Target<'_>) -> Label {
        match self.labels.get(place) {
            None => Label::None,
            Some(Label::Index(_) | Label::Entry) if self.hash => Label::Entry,
            Some(Label::Entry) => self.written(place, target),
            Some(Label::Role(name)) if self.hash && target.tables.name(*name) == "key" => {
                Label::Key
            }
            Some(label) => *label,
        }
    }

    /// The text of an entry's label.
    fn text(&mut self, place: usize) -> Option<Range<usize>> {
        // Usually they are requested in order.
        let found = match self.entries.get(self.next_entry) {
            Some((at, _)) if *at == place => self.next_entry,
            _ => self.entries.binary_search_by_key(&place, |entry| entry.0).ok()?,
        };
        self.next_entry = found + 1;
        Some(self.entries[found].1.clone())
    }

    /// The start of a hash key, from the label of a reference.
    fn preview(&mut self, place: usize) -> Option<Range<usize>> {
        let text = self.text(place)?;
        let inside = preview(&self.texts[text.clone()])?;
        Some(text.start + inside.start..text.start + inside.end)
    }

    /// Passes on a container's values before its own reference, which is not repeated there. Returns its label.
    fn before(&mut self, label: Label, target: &mut Target<'_>) -> Fallible<Label> {
        // Ruby's internal instance variables have no @, such as `mesg` of exceptions.
        let label = match label {
            Label::Role(name) if self.find(Label::Ivar(name)).is_some() => Label::Ivar(name),
            _ => label,
        };
        if let (Some(place), Some(found)) = (container(label), self.find(label)) {
            for _ in 0..found {
                if let Some((label, value)) = self.named[place as usize].pop_front() {
                    self.push_immediate(label, value, target)?;
                }
            }
            self.named[place as usize].pop_front();
        }
        Ok(label)
    }

    /// Number of values in its container before the one with this label.
    fn find(&mut self, label: Label) -> Option<usize> {
        let queue = &self.named[container(label)? as usize];
        let mut looked_at = queue.iter().take(self.steps);
        let found = looked_at.position(|(name, _)| *name == label);
        if found.is_none() {
            self.steps -= queue.len().min(self.steps);
        }
        found
    }

    /// Passes on a container's value, unless it is a reference: those come from the list.
    fn push_immediate(
        &mut self,
        label: Label,
        value: Value,
        target: &mut Target<'_>,
    ) -> Fallible<()> {
        match value {
            Value::Address(_) if !self.classic => Ok(()),
            _ => self.push_edge(label, value, None, target),
        }
    }

    /// If a container's value is a reference: skips it in the list of references, and passes on those before it. Returns its
    /// position there, if any. `None` if it is no longer in the list, having been passed on before.
    fn pass(
        &mut self,
        value: Value,
        wanted: Label,
        target: &mut Target<'_>,
    ) -> Fallible<Option<Option<usize>>> {
        let Value::Address(address) = value else {
            return Ok(Some(None));
        };
        if self.classic {
            return Ok(Some(None));
        }
        for place in self.next..self.addresses.len() {
            if self.addresses[place] == address && self.label_at(place, target) == wanted {
                self.emit_until(place, target)?;
                self.next = place + 1;
                return Ok(Some(Some(place)));
            }
            if self.steps == 0 {
                break;
            }
            self.steps -= 1;
        }
        Ok(None)
    }

    /// Passes on the references up to a position.
    fn emit_until(&mut self, end: usize, target: &mut Target<'_>) -> Fallible<()> {
        while self.next < end.min(self.addresses.len()) {
            let place = self.next;
            self.next += 1;
            // Meaningless without their pair.
            let label = match self.label_at(place, target) {
                Label::Key | Label::Entry => Label::None,
                label => label,
            };
            let label = self.before(label, target)?;
            self.push_edge(label, Value::Address(self.addresses[place]), None, target)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn push_edge(
        &mut self,
        label: Label,
        value: Value,
        preview: Option<Range<usize>>,
        target: &mut Target<'_>,
    ) -> Fallible<()> {
        if let Some(preview) = preview {
            self.previews.push((self.pending.len(), preview));
        }
        self.pending.push(Edge { label, value, preview: None });
        if self.pending.len() < PIECE || label == Label::Key {
            return Ok(());
        }
        self.flush(target)
    }

    fn flush(&mut self, target: &mut Target<'_>) -> Fallible<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if self.previews.is_empty() {
            return target.edges(&mut self.pending);
        }
        let mut edges: Vec<Edge<'_>> = self.pending.clone();
        for (place, text) in self.previews.drain(..) {
            edges[place].preview = self.texts.get(text);
        }
        self.pending.clear();
        target.edges(&mut edges)
    }
}

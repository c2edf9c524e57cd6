//! What an object holds. Containers and references were one list when they were written; they are put together again.

use std::collections::VecDeque;
use std::ops::Range;

use super::labels::preview;
use crate::read::target::{PIECE, Target};
use crate::read::window::Window;
use crate::read::{Fallible, Stop};
use crate::record::{Edge, Kind, Label, Value};

/// Keys of containers with names.
const NAMED: usize = 5;

/// A key whose value has what the object holds, by name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    Ivars,
    Members,
    Locals,
    Methods,
    Values,
}

/// The container that has values with such a label.
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
    /// It is not there, or no list.
    #[default]
    None,
    Elements,
    /// Keys and values by turns.
    Pairs,
}

/// References that are looked at in vain for one object. Only lines that memprof did not write need so many.
const STEPS: usize = 1_000_000;

/// Elements for which room is kept from line to line.
const KEPT: usize = 64 * 1024;

/// All that one line holds.
#[derive(Default)]
pub(super) struct Held {
    pub data: Data,
    /// Elements of `data`.
    pub elements: Vec<Value>,
    named: [VecDeque<(Label, Value)>; NAMED],
    addresses: Vec<u64>,
    /// As many, or none. [`Label::Entry`] has its text in `texts`.
    labels: Vec<Label>,
    entries: Vec<(usize, Range<usize>)>,
    texts: Vec<u8>,
    has_references: bool,
    /// References that were passed on, and entries among them.
    next: usize,
    next_entry: usize,
    hash: bool,
    /// References stand in containers only.
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

    /// A reference that has no place among the others.
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

    /// The next label, which is in brackets. Only the beginning of a string is needed of a hash's.
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

    /// Fails if there are labels, but not one for each reference.
    pub fn check(&self) -> Fallible<()> {
        match self.labels.len() {
            0 => Ok(()),
            count if count == self.addresses.len() => Ok(()),
            _ => Err(Stop::Broken),
        }
    }

    /// Passes the references of a root.
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

    /// Passes all to `target`.
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

    /// The label of a reference, as if it were of no hash.
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
        // Mostly they are asked for in order.
        let found = match self.entries.get(self.next_entry) {
            Some((at, _)) if *at == place => self.next_entry,
            _ => self
                .entries
                .binary_search_by_key(&place, |entry| entry.0)
                .ok()?,
        };
        self.next_entry = found + 1;
        Some(self.entries[found].1.clone())
    }

    /// The beginning of a hash key, out of the label of a reference.
    fn preview(&mut self, place: usize) -> Option<Range<usize>> {
        let text = self.text(place)?;
        let inside = preview(&self.texts[text.clone()])?;
        Some(text.start + inside.start..text.start + inside.end)
    }

    /// Passes what a container has before a reference of its own, which is left out there. Returns its label.
    fn before(&mut self, label: Label, target: &mut Target<'_>) -> Fallible<Label> {
        // Ruby's own instance variables have no @, as `mesg` of exceptions.
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

    /// How many values its container has before the one of this label.
    fn find(&mut self, label: Label) -> Option<usize> {
        let queue = &self.named[container(label)? as usize];
        let mut looked_at = queue.iter().take(self.steps);
        let found = looked_at.position(|(name, _)| *name == label);
        if found.is_none() {
            self.steps -= queue.len().min(self.steps);
        }
        found
    }

    /// Passes a container's value, unless it is a reference: that comes from the list of them.
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

    /// If a value of a container is a reference: goes past it in the list of references, and passes those before it.
    /// Returns its place there, if it has one. `None` if the list has it no more: then it was passed before.
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

    /// Passes the references up to a position.
    fn emit_until(&mut self, end: usize, target: &mut Target<'_>) -> Fallible<()> {
        while self.next < end.min(self.addresses.len()) {
            let place = self.next;
            self.next += 1;
            // Without their pair they are nothing.
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
        self.pending.push(Edge {
            label,
            value,
            preview: None,
        });
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

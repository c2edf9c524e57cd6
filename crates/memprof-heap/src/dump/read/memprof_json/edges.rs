//! What an object holds. Containers and references were one list when they were written; they are put together again.

use std::borrow::Cow;
use std::collections::VecDeque;

use serde_json::value::RawValue;

use crate::dump::read::json::{self, Object as Json};
use crate::dump::read::target::PIECE;
use crate::dump::read::{Fallible, Stop, Target};
use crate::dump::record::{Edge, Kind, Label, Tables, Value};

/// References with their labels.
pub(super) struct References<'a> {
    addresses: Vec<u64>,
    /// As many, or none.
    labels: Vec<&'a RawValue>,
}

impl<'a> References<'a> {
    pub fn new(json: &Json<'a>) -> Fallible<References<'a>> {
        let mut references = References {
            addresses: Vec::new(),
            labels: Vec::new(),
        };
        if let Some(list) = json.get("references") {
            json::each_element(list, |address| {
                let address = json::address(address.get()).ok_or(Stop::Broken)?;
                references.addresses.push(address);
                Ok(())
            })?;
        }
        if let Some(list) = json.get("labels") {
            json::each_element(list, |label| {
                references.labels.push(label);
                Ok(())
            })?;
        }
        let count = references.labels.len();
        if count != 0 && count != references.addresses.len() {
            return Err(Stop::Broken);
        }
        Ok(references)
    }

    fn get(&self, place: usize) -> Option<(u64, &'a str)> {
        let address = *self.addresses.get(place)?;
        let label = self.labels.get(place).map_or("null", |label| label.get());
        Some((address, label))
    }

    pub fn iter(&self) -> impl Iterator<Item = (u64, &'a str)> {
        (0..self.addresses.len()).filter_map(|place| self.get(place))
    }
}

/// The label that a reference has in `labels`.
pub(super) fn label(tables: &mut Tables, json: &str, hash: bool) -> Fallible<Label> {
    if json == "null" {
        return Ok(Label::None);
    }
    let text = json::text(json)?;
    let inside = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let index = inside.and_then(|inside| inside.parse().ok());
    Ok(match index {
        Some(index) if !hash => Label::Index(index),
        _ if hash && text == "key" => Label::Key,
        _ if hash && inside.is_some() => Label::Entry,
        _ => named(tables, &text),
    })
}

/// The label that is written like this, if it has a name.
fn named(tables: &mut Tables, text: &str) -> Label {
    if let Some(name) = text.strip_prefix('#') {
        return Label::Method(tables.intern(name));
    }
    if let Some(name) = text.strip_prefix('.') {
        return Label::Member(tables.intern(name));
    }
    if let Some(name) = text.strip_prefix("local ") {
        return Label::Local(tables.intern(name));
    }
    let name = tables.intern(text);
    if text.starts_with("@@") {
        Label::ClassVariable(name)
    } else if text.starts_with('@') {
        Label::Ivar(name)
    } else if text.starts_with('$') {
        Label::Global(name)
    } else if text.starts_with(char::is_uppercase) {
        Label::Constant(name)
    } else {
        Label::Role(name)
    }
}

/// Keys of containers with names.
const NAMED: [&str; 5] = ["ivars", "members", "locals", "methods", "values"];

/// Place in [`NAMED`] of the container that has values with such a label.
fn container(label: Label) -> Option<usize> {
    match label {
        Label::Ivar(_) | Label::ClassVariable(_) | Label::Constant(_) => Some(0),
        Label::Member(_) => Some(1),
        Label::Local(_) | Label::Global(_) => Some(2),
        Label::Method(_) => Some(3),
        Label::None | Label::Index(_) | Label::Key | Label::Entry | Label::Role(_) => None,
    }
}

/// Tells `target` of what an object holds.
pub(super) fn edges(json: &Json<'_>, kind: Kind, target: &mut Target<'_>) -> Fallible<()> {
    let data = json.get("data").filter(|data| data.starts_with('['));
    let first = data.and_then(|data| data[1..].trim_start().bytes().next());
    let hash = first == Some(b'[') || (kind == Kind::HASH && data.is_none());
    let mut merge = Merge {
        references: References::new(json)?,
        next: 0,
        hash,
        named: Default::default(),
        steps: STEPS,
        pending: Vec::new(),
        target,
    };
    for (place, key) in NAMED.into_iter().enumerate() {
        if let Some(container) = json.get(key).filter(|json| json.starts_with('{')) {
            json::each_pair(container, |name, value| {
                merge.load(place, &name, value.get())
            })?;
        }
    }
    match data {
        Some(data) if hash => json::each_element(data, |pair| merge.entry(pair.get()))?,
        Some(data) => merge.elements(data)?,
        None => {}
    }
    merge.tell(usize::MAX)?;
    for place in 0..NAMED.len() {
        while let Some((label, value)) = merge.named[place].pop_front() {
            merge.push_immediate(label, value)?;
        }
    }
    merge.flush()
}

/// References that are looked at in vain for one object. Only lines that memprof did not write need so many.
const STEPS: usize = 1_000_000;

/// Puts containers and references together.
struct Merge<'a, 't, 'w> {
    references: References<'a>,
    /// References that were told.
    next: usize,
    hash: bool,
    /// What is left of the containers with names.
    named: [VecDeque<(Label, Value)>; NAMED.len()],
    steps: usize,
    pending: Vec<(Label, Value, Option<Cow<'a, str>>)>,
    target: &'t mut Target<'w>,
}

impl<'a> Merge<'a, '_, '_> {
    fn elements(&mut self, data: &'a str) -> Fallible<()> {
        let mut index = 0;
        json::each_element(data, |value| {
            let value = json::value(&mut self.target.tables, value.get())?;
            let text = format!("\"[{index}]\"");
            if self.pass(value, |label| label == text)?.is_some() {
                self.push(Label::Index(index), value, None)?;
            }
            index = index.wrapping_add(1);
            Ok(())
        })
    }

    fn entry(&mut self, pair: &'a str) -> Fallible<()> {
        let mut sides = Vec::with_capacity(2);
        json::each_element(pair, |side| {
            sides.push(json::value(&mut self.target.tables, side.get())?);
            Ok(())
        })?;
        let [key, value] = sides[..] else {
            return Err(Stop::Broken);
        };
        self.pass(key, |label| label == "\"key\"")?;
        let label = self.pass(value, |label| label.starts_with("\"["))?;
        let label = label.filter(|label| label.starts_with('"'));
        let text = label.map(json::text).transpose()?;
        self.push(Label::Key, key, None)?;
        self.push(Label::Entry, value, text.and_then(preview))
    }

    fn load(&mut self, place: usize, name: &str, json: &str) -> Fallible<()> {
        let tables = &mut self.target.tables;
        let value = json::value(tables, json)?;
        let label = match NAMED[place] {
            "members" => Label::Member(tables.intern(name)),
            "methods" => Label::Method(tables.intern(name)),
            "values" => Label::Role(tables.intern(name)),
            "locals" if !name.starts_with('$') => Label::Local(tables.intern(name)),
            "locals" => Label::Global(tables.intern(name)),
            _ => match named(tables, name) {
                label @ (Label::ClassVariable(_) | Label::Constant(_)) => label,
                _ => Label::Ivar(tables.intern(name)),
            },
        };
        self.named[place].push_back((label, value));
        Ok(())
    }

    /// Tells of what a container has before a reference of its own, which is left out there. Returns its label.
    fn before(&mut self, label: Label) -> Fallible<Label> {
        // Ruby's own instance variables have no @, as `mesg` of exceptions.
        let label = match label {
            Label::Role(name) if self.find(Label::Ivar(name)).is_some() => Label::Ivar(name),
            _ => label,
        };
        if let (Some(place), Some(found)) = (container(label), self.find(label)) {
            for _ in 0..found {
                if let Some((label, value)) = self.named[place].pop_front() {
                    self.push_immediate(label, value)?;
                }
            }
            self.named[place].pop_front();
        }
        Ok(label)
    }

    /// How many values its container has before the one of this label.
    fn find(&mut self, label: Label) -> Option<usize> {
        let queue = &self.named[container(label)?];
        let mut looked_at = queue.iter().take(self.steps);
        let found = looked_at.position(|(name, _)| *name == label);
        if found.is_none() {
            self.steps -= queue.len().min(self.steps);
        }
        found
    }

    /// Tells of a container's value, unless it is a reference: that comes from the list of them.
    fn push_immediate(&mut self, label: Label, value: Value) -> Fallible<()> {
        match value {
            Value::Address(_) => Ok(()),
            _ => self.push(label, value, None),
        }
    }

    /// If a value of a container is a reference: goes past it in the list of references, and tells of those before it.
    /// `None` if the list has it no more: then it was told already.
    fn pass(&mut self, value: Value, is_this: impl Fn(&str) -> bool) -> Fallible<Option<&'a str>> {
        let Value::Address(address) = value else {
            return Ok(Some("null"));
        };
        for place in self.next..self.references.addresses.len() {
            let Some((found, label)) = self.references.get(place) else {
                break;
            };
            if found == address && is_this(label) {
                self.tell(place)?;
                self.next = place + 1;
                return Ok(Some(label));
            }
            if self.steps == 0 {
                break;
            }
            self.steps -= 1;
        }
        Ok(None)
    }

    /// Tells of the references up to a place.
    fn tell(&mut self, end: usize) -> Fallible<()> {
        while self.next < end {
            let Some((address, text)) = self.references.get(self.next) else {
                break;
            };
            self.next += 1;
            let label = label(&mut self.target.tables, text, self.hash)?;
            // Without their pair they are nothing.
            let label = match label {
                Label::Key | Label::Entry => Label::None,
                label => label,
            };
            let label = self.before(label)?;
            self.push(label, Value::Address(address), None)?;
        }
        Ok(())
    }

    fn push(&mut self, label: Label, value: Value, preview: Option<Cow<'a, str>>) -> Fallible<()> {
        self.pending.push((label, value, preview));
        if self.pending.len() < PIECE || label == Label::Key {
            return Ok(());
        }
        self.flush()
    }

    fn flush(&mut self) -> Fallible<()> {
        let mut edges: Vec<Edge<'_>> = Vec::with_capacity(self.pending.len());
        edges.extend(self.pending.iter().map(|(label, value, preview)| Edge {
            label: *label,
            value: *value,
            preview: preview.as_ref().map(|text| text.as_bytes()),
        }));
        if !edges.is_empty() {
            self.target.edges(&mut edges)?;
        }
        drop(edges);
        self.pending.clear();
        Ok(())
    }
}

/// The beginning of a key that is a string, out of its entry's label.
fn preview(label: Cow<'_, str>) -> Option<Cow<'_, str>> {
    let inside = |text: &str| {
        let end = text.len().checked_sub(2)?;
        (text.starts_with("[\"") && text.ends_with("\"]") && end >= 2).then_some(2..end)
    };
    let range = inside(&label)?;
    Some(match label {
        Cow::Borrowed(text) => Cow::Borrowed(&text[range]),
        Cow::Owned(text) => Cow::Owned(text[range].to_owned()),
    })
}

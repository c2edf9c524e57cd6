//! References of an object: named where its layout is known, else the words that look like addresses, in its slot and in the
//! blocks that it owns.

use std::io;

use memprof_dump::Writer;
use memprof_dump::record::{Edge, Kind, Label, NameId, PREVIEW, Value};
use memprof_dump::values::beginning;
use rustc_hash::{FxHashMap, FxHashSet};

use super::sizes::exact;
use super::{CONSERVATIVE, Dump};
use crate::generic_variables::is_in_table;
use crate::ruby_heap::{Cells, Entries, Object, Values, VariableName};
use crate::st_table::StTable;

/// Edges written at once.
pub(super) const BATCH: usize = 2048;
/// Classes and shapes whose names are cached.
const REMEMBERED: usize = 1 << 16;

/// Buffers reused for each object.
#[derive(Default)]
pub struct Edges {
    seen: FxHashSet<u32>,
    next: Vec<u32>,
    variables: FxHashMap<u64, Vec<VariableName>>,
    members: FxHashMap<(u64, u64), Vec<String>>,
}

impl<W: Writer> Dump<'_, '_, W> {
    pub(super) fn edges(&mut self, object: &Object, edges: &mut Edges) -> io::Result<()> {
        self.edges_by_type(object, edges)?;
        self.generic_variables(object)
    }

    fn edges_by_type(&mut self, object: &Object, edges: &mut Edges) -> io::Result<()> {
        let heap = self.heap;
        let role = |dump: &mut Self, name: &str, target: u64| {
            let label = Label::Role(dump.tables.intern(name));
            dump.pass(&[plain(label, Value::Address(target))])
        };
        match object.kind() {
            Kind::STRING => match heap.string(object).and_then(|facts| facts.shared) {
                Some(shared) => role(self, "shared", shared),
                None => Ok(()),
            },
            // The bytes of numbers are not references.
            Kind::FLOAT | Kind::BIGNUM => Ok(()),
            Kind::ARRAY => match heap.array(object) {
                Some(array) => match array.shared {
                    // The elements belong to the shared array.
                    Some(shared) => role(self, "shared", shared),
                    None => self.cells(array.elements, |_, place| Label::Index(place as u32)),
                },
                None => self.conservative(object, edges),
            },
            Kind::HASH => match heap.hash(object) {
                Some(hash) => {
                    self.pairs(hash.entries)?;
                    match self.value(hash.default) {
                        Value::Address(_) if hash.default_proc => {
                            role(self, "default_proc", hash.default)
                        }
                        Value::Address(_) => role(self, "default", hash.default),
                        _ => Ok(()),
                    }
                }
                None => self.conservative(object, edges),
            },
            Kind::STRUCT => match heap.structure(object) {
                Some(cells) => {
                    let names = self.members(object, cells.count, edges);
                    self.cells(cells, |_, place| match names.get(place as usize) {
                        Some(name) => Label::Member(*name),
                        None => Label::Index(place as u32),
                    })
                }
                None => self.conservative(object, edges),
            },
            Kind::OBJECT => match heap.values(object) {
                Some(Values::Table { table, .. }) => self.variable_table(table),
                Some(Values::Cells(cells)) => {
                    let names = self.variables(object, edges);
                    self.cells(cells, |_, place| match names.get(place as usize) {
                        Some(Some(name)) => Label::Ivar(*name),
                        _ => Label::Index(place as u32),
                    })
                }
                None => self.conservative(object, edges),
            },
            _ => self.conservative(object, edges),
        }
    }

    /// Contiguous values. Unset ones are not references.
    fn cells(&mut self, cells: Cells, label: impl Fn(&Self, u64) -> Label) -> io::Result<()> {
        let mut batch = Vec::new();
        for (place, at) in (0..).zip(cells.addresses()) {
            let Some(word) = self.heap.memory.word(at) else {
                break;
            };
            let value = self.value(word);
            if value != Value::Undef {
                batch.push(plain(label(self, place), value));
            }
            if batch.len() == BATCH {
                self.check_stop()?;
                self.pass(&batch)?;
                batch.clear();
            }
        }
        self.pass(&batch)
    }

    fn pairs(&mut self, entries: Entries) -> io::Result<()> {
        let heap = self.heap;
        let mut key_text = Vec::new();
        for (number, (key, value)) in heap.pairs(entries).enumerate() {
            if number % BATCH == 0 {
                self.check_stop()?;
            }
            let text = heap
                .object(key)
                .filter(|key| key.kind() == Kind::STRING && self.values.previews())
                .and_then(|key| heap.string(&key));
            let preview = text.is_some_and(|facts| {
                let length = facts.length.min(PREVIEW as u64) as usize;
                heap.memory.bytes(facts.at, length, &mut key_text)
            });
            let pair = [
                plain(Label::Key, self.value(key)),
                Edge {
                    label: Label::Entry,
                    value: self.value(value),
                    preview: preview.then(|| beginning(&key_text, PREVIEW)),
                },
            ];
            self.writer.edges(&self.tables, &pair)?;
        }
        Ok(())
    }

    /// Values by the names of instance variables. A name without @ is VM-internal.
    fn variable_table(&mut self, table: StTable) -> io::Result<()> {
        let heap = self.heap;
        for (place, (id, word)) in (0..).zip(heap.st_entries(table)) {
            let name = heap.id_name(id).filter(|name| name.starts_with('@'));
            let label =
                name.map_or(Label::Index(place), |name| Label::Ivar(self.tables.intern(&name)));
            let value = self.value(word);
            self.pass(&[plain(label, value)])?;
        }
        Ok(())
    }

    /// The block or internal object with instance variables of an object whose contents are read exactly. For others it is one of
    /// the words found.
    fn generic_variables(&mut self, object: &Object) -> io::Result<()> {
        let heap = self.heap;
        if let Some(fields) = heap.analysis.references().fields_of(object.node) {
            let label = Label::Role(self.tables.intern("fields"));
            let edge = plain(label, Value::Address(heap.address(fields)));
            let edge = exact(heap, object).map(|_| edge);
            return self.pass(&Vec::from_iter(edge));
        }
        if !is_in_table(object.flags) {
            return Ok(());
        }
        let Some(contents) = exact(heap, object) else {
            return Ok(());
        };
        let contents: Vec<u64> = contents.collect();
        let label = Label::Role(self.tables.intern(CONSERVATIVE));
        let (analysis, references) = (heap.analysis, heap.analysis.references());
        let graph = references.graph();
        let blocks = graph.edges(object.node).filter(|target| *target < references.slots().start);
        for number in blocks {
            let block = analysis.block(number).map(|block| block.address);
            if block.is_none_or(|address| contents.contains(&address)) {
                continue;
            }
            if self.contents_of_objects.is_some() {
                self.pass(&Vec::from_iter(self.block_edge(label, number)))?;
            } else if analysis.owner_node(number) == Some(object.node) {
                let values = graph.edges(number).filter(|value| *value != object.node);
                let objects = values.filter(|value| heap.kind_of_node(*value).is_some());
                let edges = objects.map(|value| plain(label, Value::Address(heap.address(value))));
                self.pass(&Vec::from_iter(edges))?;
            }
        }
        Ok(())
    }

    fn variables(&mut self, object: &Object, edges: &mut Edges) -> Vec<Option<NameId>> {
        let known = &mut edges.variables;
        if known.len() > REMEMBERED {
            known.clear();
        }
        let names = known
            .entry(self.heap.variables_key(object))
            .or_insert_with(|| self.heap.variable_names(object));
        let names = names.iter();
        names.map(|name| name.as_ref().map(|name| self.tables.intern(name))).collect()
    }

    fn members(&mut self, object: &Object, count: u64, edges: &mut Edges) -> Vec<NameId> {
        let heap = self.heap;
        let known = &mut edges.members;
        if known.len() > REMEMBERED {
            known.clear();
        }
        let names = known.entry((object.class, count)).or_insert_with(|| {
            let real = heap.classes.real(heap, object.class);
            real.and_then(|class| heap.members(class, count)).unwrap_or_default()
        });
        names.iter().map(|name| self.tables.intern(name)).collect()
    }

    /// Constants and variables of a class by name, then all other words that look like references.
    fn conservative(&mut self, object: &Object, edges: &mut Edges) -> io::Result<()> {
        let heap = self.heap;
        edges.seen.clear();
        if let Some((class, _)) = heap.slot(object.class) {
            edges.seen.insert(class);
        }
        if matches!(object.kind(), Kind::CLASS | Kind::MODULE) {
            let constants = heap.constants.map(|constants| constants.of(heap, object));
            let variables = heap.classes.variables(heap, object);
            for (name, word) in constants.into_iter().flatten().chain(variables) {
                edges.seen.extend(heap.slot(word).map(|(node, _)| node));
                let id = self.tables.intern(&name);
                let label = match name.as_bytes() {
                    [b'@', b'@', ..] => Label::ClassVariable(id),
                    [b'@', ..] => Label::Ivar(id),
                    _ => Label::Constant(id),
                };
                let value = self.value(word);
                self.pass(&[plain(label, value)])?;
            }
        }
        let label = Label::Role(self.tables.intern(CONSERVATIVE));
        let references = heap.analysis.references();
        let graph = references.graph();
        let mut batch = Vec::new();
        edges.next.clear();
        edges.next.push(object.node);
        while let Some(node) = edges.next.pop() {
            for target in graph.edges(node) {
                if target == object.node || !edges.seen.insert(target) {
                    continue;
                }
                if target >= references.slots().start {
                    if heap.kind_of_node(target).is_some() {
                        batch.push(plain(label, Value::Address(heap.address(target))));
                    }
                } else if self.contents_of_objects.is_some() {
                    batch.extend(self.block_edge(label, target));
                } else {
                    match heap.analysis.owner_node(target) {
                        Some(owner) if owner == object.node => edges.next.push(target),
                        // A Proc references the variables of its environment, methods share a definition.
                        Some(owner)
                            if heap.kind_of_node(owner) == Some(Kind::IMEMO)
                                && edges.seen.insert(owner) =>
                        {
                            batch.push(plain(label, Value::Address(heap.address(owner))));
                        }
                        // Variables of C code lead to it, but only through blocks of objects, as this one.
                        None if heap.analysis.is_anchored(object.node)
                            && self.taken.insert(target) =>
                        {
                            edges.next.push(target);
                        }
                        _ => {}
                    }
                }
                if batch.len() == BATCH {
                    self.check_stop()?;
                    self.pass(&batch)?;
                    batch.clear();
                }
            }
        }
        self.pass(&batch)
    }

    pub(super) fn pass(&mut self, edges: &[Edge<'_>]) -> io::Result<()> {
        if edges.is_empty() {
            return Ok(());
        }
        self.writer.edges(&self.tables, edges)
    }
}

pub(super) fn plain(label: Label, value: Value) -> Edge<'static> {
    Edge { label, value, preview: None }
}

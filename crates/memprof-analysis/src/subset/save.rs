//! Subsets as dumps of any format, passed to a writer record by record.

use std::ops::Deref;

use super::Subset;
use super::subset_edges::View;
use crate::questions::Error;
use memprof_dump::Writer;
use memprof_dump::record::{
    Allocation, CodeRange, Content, Counts, Detail, Edge, Field, Kind, Label as Written, NameId,
    Object, Site, SiteId, Tables, Text, Value,
};
use memprof_heap::{Heap, Known, Label, NONE, Object as Read, Packed, Stored};

impl<H: Deref<Target = Heap> + Clone> Subset<H> {
    /// Passes the members to a writer, without references to groups and to nodes that are not members. A group is written as a
    /// root with its name. Annotations become facts of their objects. Changed references have no labels.
    ///
    /// # Errors
    /// If writing fails; also see [`Subset::all`].
    pub fn save(&self, writer: &mut dyn Writer) -> Result<Counts, Error> {
        let mut source = Source {
            heap: &self.heap,
            view: self.view()?,
            labels: if self.edges.own.is_some() { &[] } else { self.heap.labels()? },
            offsets: self.heap.graph(&[])?.offsets,
            tables: Tables::default(),
        };
        for (kind, json) in self.heap.notes() {
            writer.note(&source.tables, *kind, json)?;
        }
        for node in self.iter().filter(|&node| node >= self.heap.len()) {
            let category = self.heap.category(node).map(|category| &category.name);
            let name = category.or_else(|| self.grouped(node).map(|group| &group.name));
            let edges = source.edges(node, &|target| self.contains(target));
            writer.roots(&source.tables, name.map_or("", String::as_str), &edges)?;
        }
        for node in self.iter() {
            let Some(object) = self.heap.object(node)? else {
                continue;
            };
            let mut fields = source.facts(node);
            for (name, marks) in self.annotations() {
                if let Some(&mark) = marks.get(&node) {
                    let value = Value::Int(i64::try_from(mark).unwrap_or(i64::MAX));
                    fields.push(Field { name: source.tables.intern(name), value });
                }
            }
            source.object(&object, &fields, writer)?;
            let edges = source.edges(node, &|target| self.contains(target));
            writer.edges(&source.tables, &edges)?;
            writer.end(&source.tables)?;
        }
        Ok(writer.finish(&source.tables, true)?)
    }
}

struct Source<'s> {
    heap: &'s Heap,
    view: View<'s>,
    /// Empty if references have no labels.
    labels: &'s [u32],
    offsets: &'s [u32],
    tables: Tables,
}

impl Source<'_> {
    fn name(&mut self, name: NameId) -> NameId {
        self.tables.intern(self.heap.name(name))
    }

    fn value(&mut self, value: Value) -> Value {
        match value {
            Value::Symbol(name) => Value::Symbol(self.name(name)),
            Value::Name(name) => Value::Name(self.name(name)),
            Value::Json(name) => Value::Json(self.name(name)),
            other => other,
        }
    }

    fn facts(&mut self, node: u32) -> Vec<Field> {
        let heap = self.heap;
        heap.facts()
            .of(node)
            .map(|(name, value)| Field { name: self.name(name), value: self.value(value) })
            .collect()
    }

    /// The address of an object; 0 if it has none.
    fn address(&self, node: u32) -> u64 {
        if node == NONE { 0 } else { self.heap.addresses().of(node) }
    }

    fn site(&mut self, site: &memprof_heap::Site) -> SiteId {
        let site = Site {
            file: self.name(site.file),
            line: site.line,
            method: site.method.map(|name| self.name(name)),
        };
        self.tables.intern_site(site)
    }

    fn object(
        &mut self,
        object: &Read,
        fields: &[Field],
        writer: &mut dyn Writer,
    ) -> Result<(), Error> {
        // A substitute for a class is not a class name.
        let class_name =
            Some(object.class.name).filter(|&name| !self.heap.name(name).starts_with('<'));
        let class_name = class_name.map(|name| self.name(name));
        let allocation = object.site.map(|site| {
            let generation = object.generation.unwrap_or(0);
            let caller = self.heap.caller(&site).copied();
            Allocation {
                site: self.site(&site),
                caller: caller.map(|caller| self.site(&caller)),
                generation: generation.into(),
                time: self.heap.time(generation).unwrap_or(0),
            }
        });
        let detail = self.detail(object);
        let record = Object {
            address: object.address,
            kind: object.group.kind,
            class: self.address(object.group.class),
            class_name,
            slot_size: object.slot_size.into(),
            memsize: object.memsize,
            shape_id: object.shape,
            flags: object.flags,
            age: object.age,
            object_id: self.heap.object_id(object.id),
            detail,
            fields,
            allocation,
        };
        writer.object(&self.tables, &record)?;
        Ok(())
    }

    fn detail<'o>(&mut self, object: &'o Read) -> Detail<'o> {
        let length = u64::from(object.length.unwrap_or(0));
        let internal = object.group.name;
        match object.group.kind {
            Kind::STRING => Detail::String(self.text(object)),
            Kind::SYMBOL => Detail::Symbol(self.text(object)),
            Kind::REGEXP => Detail::Regexp(self.text(object)),
            Kind::BIGNUM => Detail::Bignum(self.text(object)),
            Kind::ARRAY | Kind::STRUCT => Detail::Length(length),
            Kind::HASH => Detail::Hash { size: length, default: Value::Nil, default_proc: false },
            Kind::OBJECT => Detail::Object { ivars: length },
            Kind::DATA => Detail::Data { type_name: internal.map(|name| self.name(name)) },
            Kind::IMEMO => {
                let name = self.tables.intern(internal.map_or("", |name| self.heap.name(name)));
                Detail::Imemo { name, mid: None, called_id: None, receiver_class: 0 }
            }
            Kind::CLASS | Kind::MODULE | Kind::ICLASS => {
                let facts = self.heap.class_object(object.id);
                let name = facts.and_then(|facts| facts.name);
                let superclass = facts.map_or(NONE, |facts| facts.superclass);
                Detail::Class {
                    name: name.map(|name| self.name(name)),
                    real_name: None,
                    superclass: self.address(superclass),
                    super_name: None,
                    variations: None,
                }
            }
            _ => Detail::None,
        }
    }

    fn text<'o>(&mut self, object: &'o Read) -> Text<'o> {
        let content = match object.text.as_ref().map(|text: &'o Stored| &text.known) {
            Some(Known::All(bytes)) => Content::Full(bytes),
            Some(Known::Beginning(bytes, _) | Known::Truncated(bytes)) => Content::Truncated(bytes),
            Some(Known::Mark(mark)) => Content::Mark(*mark),
            None => Content::Absent,
        };
        let whole = object.text.as_ref().map(|text| text.length);
        let bytes = object.text.as_ref().and_then(Stored::bytes).unwrap_or(b"");
        // A heap does not know encodings; the beginning may end within a character.
        let is_text =
            std::str::from_utf8(bytes).map_or_else(|error| error.error_len().is_none(), |_| true);
        Text {
            length: whole.or(object.length.map(u64::from)),
            capacity: None,
            encoding: self.tables.intern(if is_text { "UTF-8" } else { "ASCII-8BIT" }),
            coderange: CodeRange::Unknown,
            content,
        }
    }

    fn edges(&mut self, node: u32, is_member: &dyn Fn(u32) -> bool) -> Vec<Edge<'static>> {
        let heap = self.heap;
        let mut edges = Vec::new();
        if self.labels.is_empty() {
            let mut targets = Vec::new();
            self.view.distinct(node, &mut targets);
            let members =
                targets.into_iter().filter(|&target| is_member(target) && target < heap.len());
            edges.extend(
                members.map(|target| edge(Written::None, Value::Address(self.address(target)))),
            );
            return edges;
        }
        let begin = self.offsets.get(node as usize).map_or(0, |&begin| begin as usize);
        let row = self.view.row(node);
        for (&target, index) in row.iter().zip(begin..) {
            let label = Packed(self.labels.get(index).copied().unwrap_or(0)).label();
            let there = is_member(target) && target < heap.len() && self.view.counts(target);
            let value = if there { Value::Address(self.address(target)) } else { Value::Nil };
            let open = edges.last().is_some_and(|edge: &Edge<'_>| edge.label == Written::Key);
            if open && label != Label::Entry {
                // The value of this key is not an object.
                edges.push(edge(Written::Entry, Value::Nil));
            }
            if !(there || open && label == Label::Entry) {
                continue;
            }
            let label = match label {
                Label::Entry if open => Written::Entry,
                Label::Entry | Label::None => Written::None,
                Label::Index(index) => Written::Index(index),
                Label::Key => Written::Key,
                Label::Under(name) => {
                    let key = Value::Name(self.name(name));
                    edges.push(edge(Written::Key, key));
                    Written::Entry
                }
                Label::Ivar(name) => Written::Ivar(self.name(name)),
                Label::ClassVariable(name) => Written::ClassVariable(self.name(name)),
                Label::Constant(name) => Written::Constant(self.name(name)),
                Label::Member(name) => Written::Member(self.name(name)),
                Label::Local(name) => Written::Local(self.name(name)),
                Label::Global(name) => Written::Global(self.name(name)),
                Label::Method(name) => Written::Method(self.name(name)),
                Label::Role(name) => Written::Role(self.name(name)),
            };
            edges.push(edge(label, value));
        }
        if edges.last().is_some_and(|edge| edge.label == Written::Key) {
            edges.push(edge(Written::Entry, Value::Nil));
        }
        edges
    }
}

fn edge(label: Written, value: Value) -> Edge<'static> {
    Edge { label, value, preview: None }
}

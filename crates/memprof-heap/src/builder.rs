//! Builds a heap while its dump is read: the records go into columns.

mod class_word;
mod labels;
mod rare_columns;

use std::fs::File;
use std::io;
use std::mem;

use rustc_hash::FxHashMap;

use super::groups::{ClassFacts, RawGroup};
use super::label::Packed;
use super::names::Names;
use super::pages::Pages;
use super::site::Site;
use super::sizes::Sizes;
use super::texts::TextWriter;
use super::{FOLDED, FREE, NONE};
use class_word::ClassWord;
use memprof_dump::Writer;
use memprof_dump::read::invalid;
use memprof_dump::record::{
    self, Allocation, Counts, Detail, Edge, Field, Kind, NameId, NoteKind, Object, SiteId, Tables,
    Value,
};
use memprof_dump::writer::LiveWriter;
pub(super) use rare_columns::{Rare, Rows};

/// An unknown age, in the upper byte of the flags.
const NO_AGE: u32 = 0xff;

/// A fact about an object without a column of its own.
pub(super) struct Fact {
    pub object: u32,
    pub name: NameId,
    pub value: Value,
}

/// Columns in the order of the dump; references by code.
pub struct Builder {
    pub(super) pages: Pages,
    pub(super) codes: Vec<u32>,
    pub(super) group: Vec<u32>,
    pub(super) flags: Vec<u32>,
    pub(super) memsize: Sizes,
    pub(super) slot_size: Vec<u16>,
    pub(super) length: Rare,
    pub(super) shape: Rare,
    pub(super) site: Rare,
    pub(super) generation: Rare,
    pub(super) text: Rare,
    pub(super) object_ids: Vec<(u32, u64)>,
    pub(super) rows: Rows,
    pub(super) roots: Vec<(String, Rows)>,
    pub(super) groups: Vec<RawGroup>,
    by_group: FxHashMap<RawGroup, u32>,
    last_group: Option<(RawGroup, u32)>,
    pub(super) classes: Vec<ClassFacts>,
    pub(super) facts: Vec<Fact>,
    pub(super) shapes: Vec<record::Shape>,
    pub(super) notes: Vec<(NoteKind, String)>,
    /// Start time of each generation that has one, in microseconds since the epoch.
    pub(super) times: FxHashMap<u32, u64>,
    pub(super) names: Names,
    pub(super) texts: TextWriter,
    pub(super) sites: Vec<Site>,
    /// Sites in libraries, with the application lines that called them.
    called_sites: FxHashMap<(u32, u32), u32>,
    site_numbers: Vec<u32>,
    /// The target of the last edge, if it is a key that is not an object.
    key: Option<Value>,
    /// Whether the last record was a free slot, which is skipped together with its references.
    is_free: bool,
    /// The object in the class word of the last object, where it is not its class.
    class_word: Option<u64>,
    counts: Counts,
}

/// Size counted for the stack of a thread or fiber. Its memsize includes a stack of 1 MiB or of its maximum size, but only the
/// first pages are in memory: deep recursion is rare.
const STACK: u64 = 16 << 10;

/// Bytes counted for an object.
fn counted(tables: &Tables, object: &Object<'_>) -> u64 {
    let type_name = match object.detail {
        Detail::Data { type_name } => type_name.map(|name| tables.name(name)),
        _ => None,
    };
    match type_name {
        Some("VM/thread" | "thread" | "fiber") => object.memsize.min(STACK),
        _ => object.memsize,
    }
}

impl Builder {
    /// Writes texts into `texts`, from its current position.
    pub fn new(texts: File) -> io::Result<Builder> {
        Ok(Builder {
            pages: Pages::default(),
            codes: Vec::new(),
            group: Vec::new(),
            flags: Vec::new(),
            memsize: Sizes::default(),
            slot_size: Vec::new(),
            length: Rare::default(),
            shape: Rare::default(),
            site: Rare::default(),
            generation: Rare::default(),
            text: Rare::default(),
            object_ids: Vec::new(),
            rows: Rows::default(),
            roots: Vec::new(),
            groups: Vec::new(),
            by_group: FxHashMap::default(),
            last_group: None,
            classes: Vec::new(),
            facts: Vec::new(),
            shapes: Vec::new(),
            notes: Vec::new(),
            times: FxHashMap::default(),
            names: Names::default(),
            texts: TextWriter::new(texts)?,
            sites: Vec::new(),
            called_sites: FxHashMap::default(),
            site_numbers: Vec::new(),
            key: None,
            is_free: false,
            class_word: None,
            counts: Counts::default(),
        })
    }

    fn group(&mut self, group: RawGroup) -> u32 {
        if let Some((last, number)) = self.last_group {
            if last == group {
                return number;
            }
        }
        let next = self.groups.len() as u32;
        let number = *self.by_group.entry(group).or_insert(next);
        if number == next {
            self.groups.push(group);
        }
        self.last_group = Some((group, number));
        number
    }

    fn site(&mut self, tables: &Tables, id: SiteId) -> u32 {
        let index = id.0 as usize;
        if index >= self.site_numbers.len() {
            self.site_numbers.resize(index + 1, NONE);
        }
        if self.site_numbers[index] == NONE {
            let Some(site) = tables.site(id) else {
                return NONE;
            };
            self.site_numbers[index] = self.sites.len() as u32;
            self.sites.push(Site {
                file: self.names.of(tables, site.file),
                line: site.line,
                method: site.method.map(|name| self.names.of(tables, name)),
                caller: None,
            });
        }
        self.site_numbers[index]
    }

    /// The number of a site called from an application line.
    fn called_site(&mut self, tables: &Tables, allocation: Allocation) -> u32 {
        let site = self.site(tables, allocation.site);
        let caller = match allocation.caller {
            Some(caller) => self.site(tables, caller),
            None => NONE,
        };
        if site == NONE || caller == NONE {
            return site;
        }
        let next = self.sites.len() as u32;
        let number = *self.called_sites.entry((site, caller)).or_insert(next);
        if number == next {
            self.sites.push(Site { caller: Some(caller), ..self.sites[site as usize] });
        }
        number
    }

    fn detail(&mut self, tables: &Tables, object: &Object<'_>) -> io::Result<()> {
        let index = self.codes.len();
        let mut own = |name: Option<NameId>| name.map(|name| self.names.of(tables, name));
        match object.detail {
            Detail::String(text)
            | Detail::Symbol(text)
            | Detail::Regexp(text)
            | Detail::Bignum(text) => {
                if let Some(length) = text.length {
                    self.length.set(index, saturated(length));
                }
                let place = self.texts.push(&text)?;
                if place != NONE {
                    self.text.set(index, place);
                }
            }
            Detail::Length(length)
            | Detail::Hash { size: length, .. }
            | Detail::Object { ivars: length } => {
                self.length.set(index, saturated(length));
            }
            Detail::Class { name, superclass, .. } => {
                let facts = ClassFacts {
                    object: index as u32,
                    name: own(name),
                    superclass: match superclass {
                        0 => NONE,
                        address => self.pages.code(address)?,
                    },
                };
                self.classes.push(facts);
            }
            Detail::File { fd: Some(fd) } => {
                let name = self.names.own("fileno");
                self.fact(index, name, Value::Int(i64::from(fd)));
            }
            Detail::Imemo { mid, called_id, .. } => {
                for (key, name) in [("mid", mid), ("called_id", called_id)] {
                    if let Some(name) = name {
                        let (key, name) = (self.names.own(key), self.names.of(tables, name));
                        self.fact(index, key, Value::Name(name));
                    }
                }
            }
            Detail::None | Detail::Float(_) | Detail::Data { .. } | Detail::File { fd: None } => {}
        }
        Ok(())
    }

    fn fact(&mut self, object: usize, name: NameId, value: Value) {
        self.facts.push(Fact { object: object as u32, name, value });
    }

    fn fields(&mut self, tables: &Tables, fields: &[Field]) {
        let index = self.codes.len();
        for field in fields {
            let name = self.names.of(tables, field.name);
            let value = match field.value {
                Value::Name(text) => Value::Name(self.names.of(tables, text)),
                Value::Symbol(text) => Value::Symbol(self.names.of(tables, text)),
                Value::Json(text) => Value::Json(self.names.of(tables, text)),
                value => value,
            };
            self.fact(index, name, value);
        }
    }
}

fn saturated(length: u64) -> u32 {
    u32::try_from(length).unwrap_or(NONE).min(NONE - 1)
}

impl Writer for Builder {
    fn note(&mut self, _: &Tables, kind: NoteKind, json: &str) -> io::Result<()> {
        self.notes.push((kind, json.to_owned()));
        Ok(())
    }

    fn roots(&mut self, tables: &Tables, category: &str, edges: &[Edge<'_>]) -> io::Result<()> {
        let known = self.roots.iter().position(|(name, _)| name == category);
        let index = known.unwrap_or_else(|| {
            self.roots.push((category.to_owned(), Rows::default()));
            self.roots.len() - 1
        });
        let mut rows = mem::take(&mut self.roots[index].1);
        for edge in edges {
            let label = self.label(tables, edge);
            if let Value::Address(address) = edge.value {
                rows.push(self.pages.code(address)?, label);
                self.counts.roots += 1;
            }
        }
        self.roots[index].1 = rows;
        Ok(())
    }

    fn shape(&mut self, tables: &Tables, shape: &record::Shape) -> io::Result<()> {
        self.shapes.push(record::Shape {
            shape_type: self.names.of(tables, shape.shape_type),
            edge_name: shape.edge_name.map(|name| self.names.of(tables, name)),
            ..*shape
        });
        self.counts.shapes += 1;
        Ok(())
    }

    fn object(&mut self, tables: &Tables, object: &Object<'_>) -> io::Result<()> {
        // `dump_all(full: true)` also has a record for each free slot.
        self.is_free = object.kind == Kind::NONE;
        if self.is_free {
            return Ok(());
        }
        let index = self.codes.len();
        if index >= (NONE - 1024) as usize {
            return Err(invalid("more than 4 billion objects"));
        }
        self.detail(tables, object)?;
        self.fields(tables, object.fields);
        let name = match object.detail {
            Detail::Data { type_name } => type_name,
            Detail::Imemo { name, .. } => Some(name),
            _ => None,
        };
        let word = ClassWord::of(tables, object);
        self.class_word = word.reference();
        let class = match word.class() {
            0 => NONE,
            address => self.pages.code(address)?,
        };
        let group = RawGroup {
            kind: object.kind,
            class,
            class_name: object.class_name.map(|name| self.names.of(tables, name)),
            name: name.map(|name| self.names.of(tables, name)),
        };
        let group = self.group(group);
        self.group.push(group);
        let free = if object.is_free_block(tables) { FREE.0 | FOLDED.0 } else { 0 };
        let age = object.age.map_or(NO_AGE, u32::from) << 24;
        self.flags.push(object.flags.0 & 0xff_ffff | free | age);
        let memsize = counted(tables, object);
        self.memsize.push(memsize);
        self.slot_size.push(u16::try_from(object.slot_size).unwrap_or(u16::MAX));
        if let Some(shape) = object.shape_id {
            self.shape.set(index, shape);
        }
        if let Some(allocation) = object.allocation {
            let site = self.called_site(tables, allocation);
            self.site.set(index, site);
            let generation = saturated(allocation.generation);
            self.generation.set(index, generation);
            if allocation.time != 0 {
                self.times.insert(generation, allocation.time);
            }
        }
        if let Some(id) = object.object_id {
            self.object_ids.push((index as u32, id));
        }
        self.codes.push(self.pages.code(object.address)?);
        self.rows.offsets.push(self.rows.targets.len() as u32);
        self.key = None;
        self.counts.objects += 1;
        self.counts.memsize = self.counts.memsize.saturating_add(memsize);
        Ok(())
    }

    fn edges(&mut self, tables: &Tables, edges: &[Edge<'_>]) -> io::Result<()> {
        if self.is_free {
            return Ok(());
        }
        for edge in edges {
            let label = self.label(tables, edge);
            if let Value::Address(address) = edge.value {
                if self.class_word == Some(address) {
                    self.class_word = None;
                }
                let code = self.pages.code(address)?;
                self.rows.push(code, label);
                self.counts.references += 1;
            }
        }
        // Leaves room for the references that linking adds.
        if self.rows.targets.len() >= (NONE - (1 << 24)) as usize {
            return Err(invalid("more than 4 billion references"));
        }
        Ok(())
    }

    fn end(&mut self, _: &Tables) -> io::Result<()> {
        if let Some(address) = self.class_word.take() {
            let code = self.pages.code(address)?;
            self.rows.push(code, Packed::NONE);
            self.counts.references += 1;
        }
        Ok(())
    }

    fn finish(&mut self, _: &Tables, _: bool) -> io::Result<Counts> {
        let count = self.codes.len();
        for column in [
            &mut self.length,
            &mut self.shape,
            &mut self.site,
            &mut self.generation,
            &mut self.text,
        ] {
            column.complete(count);
        }
        self.rows.complete();
        Ok(self.counts)
    }
}

impl LiveWriter for Builder {}

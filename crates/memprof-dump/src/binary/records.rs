//! Reads the records of a block.

use super::super::read::{Fallible, Stop, Target, checked};
use super::super::record::{
    Allocation, Content, Detail, Edge, Field, Flags, Kind, Label, NameId, NoteKind, Object, Shape,
    Site, SiteId, Tables, Text, Value,
};
use super::decode::Cursor;
use super::form::{self, Form, Tag};
use super::{Last, label, record};

/// Pieces of the text of a future object, including those from earlier blocks.
pub(in super::super) struct Pieces {
    bytes: Vec<u8>,
    /// Limit on their bytes.
    most: u64,
}

impl Pieces {
    /// Starts without pieces, with a limit on their bytes.
    pub(in super::super) fn new(most: u64) -> Pieces {
        Pieces { bytes: Vec::new(), most }
    }

    fn add(&mut self, piece: &[u8]) -> Fallible<()> {
        if (self.bytes.len() + piece.len()) as u64 > self.most {
            return Err(Stop::TooLarge(self.most));
        }
        self.bytes.extend_from_slice(piece);
        Ok(())
    }
}

/// Passes the records of a block to `target`.
pub(in super::super) fn replay(
    block: &[u8],
    pieces: &mut Pieces,
    target: &mut Target<'_>,
) -> Fallible<()> {
    let mut records = Records {
        pieces,
        cursor: Cursor::new(block),
        names: Vec::new(),
        sites: Vec::new(),
        forms: Vec::new(),
        last: Last::default(),
    };
    let mut edges = Vec::new();
    while !records.cursor.is_empty() {
        records.record(target, &mut edges)?;
    }
    Ok(())
}

/// A block being read, and its definitions so far.
struct Records<'a, 'p> {
    pieces: &'p mut Pieces,
    cursor: Cursor<'a>,
    names: Vec<NameId>,
    sites: Vec<SiteId>,
    forms: Vec<Form>,
    last: Last,
}

impl<'a> Records<'a, '_> {
    fn record(&mut self, target: &mut Target<'_>, edges: &mut Vec<Edge<'a>>) -> Fallible<()> {
        match self.cursor.varint()? {
            number if number >= record::OBJECT => {
                self.object(number - record::OBJECT, target)?;
                self.edges(target, edges)
            }
            number => match number as u8 {
                record::NOTE => self.note(target),
                record::SHAPE => self.shape(target),
                record::ROOTS => self.roots(target, edges),
                _ => self.more(target, edges),
            },
        }
    }

    /// Reads the record of an object, up to its edges.
    fn object(&mut self, number: u64, target: &mut Target<'_>) -> Fallible<()> {
        if number == self.forms.len() as u64 {
            let form = self.form(&mut target.tables)?;
            self.forms.push(form);
        }
        let form = *self.forms.get(number as usize).ok_or(Stop::Broken)?;
        let tables = &mut target.tables;
        let address = self.cursor.address(self.last.behind)?;
        self.last.behind = address.wrapping_add(form.slot_size.into());
        self.last.reference = address;
        self.last.index = 0;
        let memsize = if form.fact(form::MEMSIZE) {
            u64::from(form.slot_size).wrapping_add(self.cursor.zigzag()? as u64)
        } else {
            form.slot_size.into()
        };
        let pieces = std::mem::take(&mut self.pieces.bytes);
        let detail = whole(self.detail(tables, &form, address)?, &pieces);
        let allocation = match form.fact(form::ALLOCATION) {
            true => Some(self.allocation(tables, &form)?),
            false => None,
        };
        let object_id = match form.fact(form::OBJECT_ID) {
            true => {
                let step = self.cursor.zigzag()? as u64;
                self.last.object_id = self.last.object_id.wrapping_add(step);
                Some(self.last.object_id)
            }
            false => None,
        };
        let fields = match form.fact(form::FIELDS) {
            true => self.fields(tables, address)?,
            false => Vec::new(),
        };
        target.object(&Object {
            address,
            kind: form.kind,
            class: form.class,
            class_name: form.class_name,
            slot_size: form.slot_size,
            memsize,
            shape_id: form.fact(form::SHAPE).then_some(form.shape_id),
            flags: form.flags,
            age: form.fact(form::AGE).then_some(form.age),
            object_id,
            detail,
            fields: &fields,
            allocation,
        })
    }

    fn form(&mut self, tables: &mut Tables) -> Fallible<Form> {
        let kind = Kind(self.cursor.byte()?);
        let facts = self.cursor.byte()?;
        let tag = self.cursor.byte()?;
        let tag = *Tag::ALL.get(usize::from(tag)).ok_or(Stop::Broken)?;
        let bits = self.cursor.byte()?;
        let has = |bit: u8| facts & bit != 0;
        Ok(Form {
            kind,
            facts,
            tag,
            bits,
            class: self.cursor.varint()?,
            slot_size: self.cursor.number()?,
            flags: Flags(self.cursor.number()?),
            shape_id: match has(form::SHAPE) {
                true => self.cursor.number()?,
                false => 0,
            },
            age: match has(form::AGE) {
                true => self.cursor.byte()?,
                false => 0,
            },
            class_name: self.optional_name(tables)?,
            name: self.optional_name(tables)?,
        })
    }

    fn allocation(&mut self, tables: &mut Tables, form: &Form) -> Fallible<Allocation> {
        let site = self.site(tables)?;
        let last = &mut self.last;
        last.generation = last.generation.wrapping_add(self.cursor.zigzag()? as u64);
        last.time = last.time.wrapping_add(self.cursor.zigzag()? as u64);
        let (generation, time) = (last.generation, last.time);
        Ok(Allocation {
            site,
            caller: match form.fact(form::CALLER) {
                true => Some(self.site(tables)?),
                false => None,
            },
            generation,
            time,
        })
    }

    fn fields(&mut self, tables: &mut Tables, object: u64) -> Fallible<Vec<Field>> {
        let mut fields = Vec::new();
        for _ in 0..self.cursor.varint()? {
            let name = self.name(tables)?;
            let kind = self.cursor.byte()?;
            let value = self.payload(tables, kind, object)?;
            fields.push(Field { name, value });
        }
        Ok(fields)
    }

    fn detail(&mut self, tables: &mut Tables, form: &Form, object: u64) -> Fallible<Detail<'a>> {
        Ok(match form.tag {
            Tag::None => Detail::None,
            Tag::String => Detail::String(self.text(form)?),
            Tag::Symbol => Detail::Symbol(self.text(form)?),
            Tag::Regexp => Detail::Regexp(self.text(form)?),
            Tag::Bignum => Detail::Bignum(self.text(form)?),
            Tag::Float => Detail::Float(f64::from_bits(self.cursor.fixed()?)),
            Tag::Length => Detail::Length(self.cursor.varint()?),
            Tag::Hash => {
                let size = self.cursor.varint()?;
                let kind = self.cursor.byte()?;
                Detail::Hash {
                    size,
                    default: self.payload(tables, kind, object)?,
                    default_proc: form.bit(form::FIRST),
                }
            }
            Tag::Object => Detail::Object { ivars: self.cursor.varint()? },
            Tag::Class => {
                let superclass = self.cursor.varint()?;
                let mut name = |bit| form.bit(bit).then(|| self.name(tables)).transpose();
                Detail::Class {
                    superclass,
                    name: name(form::FIRST)?,
                    real_name: name(form::SECOND)?,
                    super_name: name(form::THIRD)?,
                    variations: match form.bit(form::FOURTH) {
                        true => Some(self.cursor.number()?),
                        false => None,
                    },
                }
            }
            Tag::Data => Detail::Data { type_name: form.name },
            Tag::File => Detail::File {
                fd: match form.bit(form::FIRST) {
                    true => Some(i32::try_from(self.cursor.zigzag()?).map_err(|_| Stop::Broken)?),
                    false => None,
                },
            },
            Tag::Imemo => {
                let mut name = |bit| form.bit(bit).then(|| self.name(tables)).transpose();
                Detail::Imemo {
                    name: form.name.ok_or(Stop::Broken)?,
                    mid: name(form::FIRST)?,
                    called_id: name(form::SECOND)?,
                    receiver_class: match form.bit(form::THIRD) {
                        true => self.cursor.varint()?,
                        false => 0,
                    },
                }
            }
        })
    }

    fn text(&mut self, form: &Form) -> Fallible<Text<'a>> {
        let mut number = |bit| form.bit(bit).then(|| self.cursor.varint()).transpose();
        let length = number(form::LENGTH)?;
        let capacity = number(form::CAPACITY)?;
        let mut bytes = || match length {
            Some(length) if form.bit(form::EXACT) => self.cursor.take(length),
            _ => self.cursor.bytes(),
        };
        let content = match form.bits >> 2 & 3 {
            0 => Content::Full(bytes()?),
            1 => Content::Truncated(bytes()?),
            2 => Content::Mark(self.cursor.fixed()?),
            _ => Content::Absent,
        };
        Ok(Text {
            length,
            capacity,
            encoding: form.name.ok_or(Stop::Broken)?,
            coderange: form.coderange(),
            content,
        })
    }

    fn note(&mut self, target: &mut Target<'_>) -> Fallible<()> {
        let kinds = [
            NoteKind::Header,
            NoteKind::Finalizers,
            NoteKind::Globals,
            NoteKind::Frame,
            NoteKind::Lsof,
            NoteKind::Ps,
        ];
        let number = self.cursor.byte()?;
        if number == record::TEXT {
            return self.pieces.add(self.cursor.bytes()?);
        }
        let kind = kinds.into_iter().find(|kind| *kind as u8 == number);
        let json = checked(self.cursor.text()?.as_bytes())?;
        // Other formats write notes as lines, and contents are removed from an object's fields.
        if !json.starts_with('{') || json.contains('\n') {
            return Err(Stop::Broken);
        }
        target.note(kind.ok_or(Stop::Broken)?, json)
    }

    fn shape(&mut self, target: &mut Target<'_>) -> Fallible<()> {
        let shape = Shape {
            address: self.cursor.address(0)?,
            id: self.cursor.varint()?,
            parent_id: match self.cursor.byte()? {
                0 => None,
                _ => Some(self.cursor.varint()?),
            },
            depth: self.cursor.varint()?,
            shape_type: self.name(&mut target.tables)?,
            edge_name: self.optional_name(&mut target.tables)?,
            edges: self.cursor.varint()?,
            memsize: self.cursor.varint()?,
        };
        target.shape(&shape)
    }

    fn roots(&mut self, target: &mut Target<'_>, edges: &mut Vec<Edge<'a>>) -> Fallible<()> {
        let category = self.cursor.text()?;
        self.last.index = self.cursor.number()?;
        self.last.reference = 0;
        let mut emitted = false;
        while self.edge(&mut target.tables, edges)? {
            if edges.len() >= super::PIECE {
                target.roots(category, edges)?;
                edges.clear();
                emitted = true;
            }
        }
        if !emitted || !edges.is_empty() {
            target.roots(category, edges)?;
        }
        edges.clear();
        Ok(())
    }

    fn more(&mut self, target: &mut Target<'_>, edges: &mut Vec<Edge<'a>>) -> Fallible<()> {
        let object = self.cursor.address(0)?;
        self.last.index = self.cursor.number()?;
        self.last.reference = object;
        if target.is_open(object) {
            return self.edges(target, edges);
        }
        // The block with the start of the object was lost.
        while self.edge(&mut target.tables, edges)? {
            edges.clear();
        }
        edges.clear();
        Ok(())
    }

    fn edges(&mut self, target: &mut Target<'_>, edges: &mut Vec<Edge<'a>>) -> Fallible<()> {
        while self.edge(&mut target.tables, edges)? {
            target.passed(edges)?;
        }
        if edges.is_empty() {
            return Ok(());
        }
        target.edges(edges)
    }

    /// Reads an edge or a run; false at the end.
    fn edge(&mut self, tables: &mut Tables, edges: &mut Vec<Edge<'a>>) -> Fallible<bool> {
        let first = self.cursor.byte()?;
        match first {
            label::END => return Ok(false),
            label::RUN => return self.run(edges).map(|()| true),
            _ => {}
        }
        let mut preview = None;
        let label = match first >> 4 {
            label::NONE => Label::None,
            label::NEXT => Label::Index(self.last.index),
            label::INDEX => Label::Index(self.cursor.number()?),
            label::KEY => Label::Key,
            label::ENTRY => Label::Entry,
            label::KEY_PREVIEW => {
                preview = Some(self.cursor.bytes()?);
                Label::Key
            }
            label::ENTRY_PREVIEW => {
                preview = Some(self.cursor.bytes()?);
                Label::Entry
            }
            label::IVAR => Label::Ivar(self.name(tables)?),
            label::CLASS_VARIABLE => Label::ClassVariable(self.name(tables)?),
            label::CONSTANT => Label::Constant(self.name(tables)?),
            label::MEMBER => Label::Member(self.name(tables)?),
            label::LOCAL => Label::Local(self.name(tables)?),
            label::GLOBAL => Label::Global(self.name(tables)?),
            label::METHOD => Label::Method(self.name(tables)?),
            label::ROLE => Label::Role(self.name(tables)?),
            _ => return Err(Stop::Broken),
        };
        if let Label::Index(index) = label {
            self.last.index = index.wrapping_add(1);
        }
        let value = self.payload(tables, first & 15, self.last.reference)?;
        if let Value::Address(address) = value {
            self.last.reference = address;
        }
        edges.push(Edge { label, value, preview });
        Ok(true)
    }

    fn run(&mut self, edges: &mut Vec<Edge<'a>>) -> Fallible<()> {
        for _ in 0..self.cursor.varint()? {
            let address = self.cursor.address(self.last.reference)?;
            edges.push(Edge {
                label: Label::Index(self.last.index),
                value: Value::Address(address),
                preview: None,
            });
            self.last.reference = address;
            self.last.index = self.last.index.wrapping_add(1);
        }
        Ok(())
    }

    fn payload(&mut self, tables: &mut Tables, kind: u8, base: u64) -> Fallible<Value> {
        Ok(match kind {
            0 => Value::Nil,
            1 => Value::True,
            2 => Value::False,
            3 => Value::Undef,
            4 => Value::Int(self.cursor.zigzag()?),
            5 => Value::Float(f64::from_bits(self.cursor.fixed()?)),
            6 => Value::Symbol(self.name(tables)?),
            7 => Value::Address(self.cursor.address(base)?),
            8 => Value::Name(self.name(tables)?),
            9 => Value::Json(self.name(tables)?),
            _ => return Err(Stop::Broken),
        })
    }

    fn name(&mut self, tables: &mut Tables) -> Fallible<NameId> {
        let local = self.cursor.varint()?;
        self.numbered_name(tables, local)
    }

    fn optional_name(&mut self, tables: &mut Tables) -> Fallible<Option<NameId>> {
        match self.cursor.varint()? {
            0 => Ok(None),
            local => self.numbered_name(tables, local - 1).map(Some),
        }
    }

    fn numbered_name(&mut self, tables: &mut Tables, local: u64) -> Fallible<NameId> {
        if local == self.names.len() as u64 {
            self.names.push(tables.intern(self.cursor.text()?));
        }
        let name = self.names.get(local as usize);
        name.copied().ok_or(Stop::Broken)
    }

    fn site(&mut self, tables: &mut Tables) -> Fallible<SiteId> {
        let local = self.cursor.varint()?;
        if local == self.sites.len() as u64 {
            let site = match self.optional_name(tables)? {
                // A number that no site has.
                None => SiteId(u32::MAX),
                Some(file) => {
                    let line = self.cursor.number()?;
                    let method = self.optional_name(tables)?;
                    tables.intern_site(Site { file, line, method })
                }
            };
            self.sites.push(site);
        }
        let site = self.sites.get(local as usize);
        site.copied().ok_or(Stop::Broken)
    }
}

/// A text whose content came earlier in pieces. It has no content if some of them were lost.
#[inline]
fn whole<'a>(mut detail: Detail<'a>, pieces: &'a [u8]) -> Detail<'a> {
    if let Detail::String(text) = &mut detail {
        let all = text.length == Some(pieces.len() as u64) && !pieces.is_empty();
        if all && text.content == Content::Absent {
            text.content = Content::Full(pieces);
        }
    }
    detail
}

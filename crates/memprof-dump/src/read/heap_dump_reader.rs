//! Reads heap_dump's array, as written by memprof, or by the gem, whose ids are numbers.

mod gem;
mod heap_dump_facts;
mod roots;

use super::Fallible;
use super::keys::keys;
use super::lines::{End, Line, Lines};
use super::strings::Names;
use super::target::{PIECE, Target};
use super::value_reader::Values;
use super::window::Window;
use crate::record::{Edge, Field, Label, NameId, NoteKind, Tables, Value};
use heap_dump_facts::Facts;

keys! {
    Id "id"
    Bt "bt"
    Class "class"
    ClassName "class_name"
    File "file"
    Line "line"
    Method "method"
    CallerFile "caller_file"
    CallerLine "caller_line"
    CallerMethod "caller_method"
    Generation "generation"
    Memsize "memsize"
    Encoding "encoding"
    Val "val"
    Bytes "bytes"
    Truncated "truncated"
    Hash "hash"
    Length "length"
    Default "default"
    Name "name"
    Super "super"
    Ivs "ivs"
    GenericIvars "generic_ivars"
    Consts "consts"
    Methods "methods"
    Members "members"
    Vars "vars"
    Refs "refs"
    TypeName "type_name"
    Size "size"
    Fd "fd"
    ImemoType "imemo_type"
}

/// Reads lines.
pub(super) struct Reader {
    names: Names,
    values: Values,
    facts: Facts,
    key: Vec<u8>,
    /// The contents of this line's object.
    held: Vec<(Label, Value)>,
    fields: Vec<Field>,
    edges: Vec<Edge<'static>>,
    /// Whether the first line, which may give the origin of the dump, has been read.
    begun: bool,
}

impl Lines for Reader {
    fn begin(&mut self, _: &Window<'_>, _: &mut Target<'_>) -> Fallible<()> {
        Ok(())
    }

    fn line(&mut self, window: &mut Window<'_>, target: &mut Target<'_>) -> Fallible<Line> {
        if window.accept(b']') {
            window.end_line()?;
            return Ok(Line::Footer);
        }
        if !window.accept(b'[') {
            window.accept(b',');
        }
        if !std::mem::replace(&mut self.begun, true) {
            if roots::are_next(window) {
                return roots::read(window, target);
            }
            target.note(NoteKind::Header, "{\"source\":\"heap_dump\"}")?;
        }
        self.object(window, target)
    }

    fn is_whole(&self, end: &End) -> bool {
        end.footer
    }
}

impl Reader {
    pub fn new() -> Reader {
        Reader {
            names: Names::new(),
            values: Values::new(),
            facts: Facts::default(),
            key: Vec::new(),
            held: Vec::new(),
            fields: Vec::new(),
            edges: Vec::new(),
            begun: false,
        }
    }

    fn object(&mut self, window: &mut Window<'_>, target: &mut Target<'_>) -> Fallible<Line> {
        self.facts.clear();
        self.fields.clear();
        self.held.clear();
        self.held.shrink_to(64 * 1024);
        if window.open(b'{', b'}')? {
            loop {
                self.pair(window, &mut target.tables)?;
                if !window.more(b'}')? {
                    break;
                }
            }
        }
        // The last line may be followed by the end of the array.
        let footer = window.accept(b']');
        window.accept(b',');
        window.end_line()?;
        let object = self.facts.object(&self.fields, target)?;
        target.object(&object)?;
        for (label, value) in &self.held {
            self.edges.push(Edge { label: *label, value: *value, preview: None });
            if self.edges.len() >= PIECE && *label != Label::Key {
                target.edges(&mut self.edges)?;
            }
        }
        if !self.edges.is_empty() {
            target.edges(&mut self.edges)?;
        }
        Ok(if footer { Line::Footer } else { Line::Record })
    }

    fn pair(&mut self, window: &mut Window<'_>, tables: &mut Tables) -> Fallible<()> {
        let key = window.key(&mut self.key)?;
        let known = Known::of(key.word);
        if known == Known::Default {
            self.facts.default = Some(self.value(window, tables)?);
            return Ok(());
        }
        let facts = &mut self.facts;
        let names = &mut self.names;
        match known {
            Known::Id => facts.id(window)?,
            Known::Bt => facts.kind(window)?,
            Known::Class => facts.common.class = facts.reference(window)?,
            Known::Super => facts.superclass = facts.reference(window)?,
            Known::ClassName => facts.common.class_name = names.optional(window, tables)?,
            Known::File => facts.common.file = names.optional(window, tables)?,
            Known::Line => facts.common.line = window.count()?,
            Known::Method => facts.common.method = names.optional(window, tables)?,
            Known::CallerFile => facts.common.caller.file = names.optional(window, tables)?,
            Known::CallerLine => facts.common.caller.line = window.count()?,
            Known::CallerMethod => facts.common.caller.method = names.optional(window, tables)?,
            Known::Generation => facts.common.generation = window.count()?,
            Known::Memsize => facts.common.memsize = window.count()?,
            Known::Encoding => facts.common.encoding = names.optional(window, tables)?,
            Known::Name if facts.is_class() => {
                facts.common.name = names.optional(window, tables)?
            }
            Known::TypeName | Known::ImemoType => {
                facts.common.kind_name = names.optional(window, tables)?;
            }
            Known::Size => facts.size = window.count()?,
            Known::Length => facts.common.length = window.count()?,
            Known::Fd => facts.descriptor(window)?,
            Known::Bytes => facts.common.base64(window)?,
            Known::Truncated => facts.truncated = window.is_true()?,
            Known::Hash => facts.mark = Some(window.address_or_none()?),
            Known::Val => return self.val(window, tables),
            Known::Ivs | Known::GenericIvars => return self.named(window, tables, ivar),
            Known::Consts => return self.named(window, tables, |name, _| Label::Constant(name)),
            Known::Methods => return self.named(window, tables, |name, _| Label::Method(name)),
            Known::Members => return self.named(window, tables, |name, _| Label::Member(name)),
            Known::Vars => return self.named(window, tables, |name, _| Label::Local(name)),
            Known::Refs => return self.references(window),
            Known::Name | Known::Default | Known::Other => {
                let text = window.key_text(key, &self.key);
                // The digits of a large integer; none of them is an id.
                if text == b"digits" {
                    return window.skip_value();
                }
                let name = names.intern(tables, text);
                if facts.gem {
                    return self.push_addresses(window, name);
                }
                let value = self.values.read(window, tables, names)?;
                self.fields.push(Field { name, value });
            }
        }
        Ok(())
    }

    fn value(&mut self, window: &mut Window<'_>, tables: &mut Tables) -> Fallible<Value> {
        let value = self.values.read(window, tables, &mut self.names)?;
        Ok(match self.facts.gem {
            true => gem::value(value, tables),
            false => value,
        })
    }

    /// The value of `val`: a text, a number, elements, or entries.
    fn val(&mut self, window: &mut Window<'_>, tables: &mut Tables) -> Fallible<()> {
        match window.byte() {
            b'"' => self.facts.common.text(window),
            b'[' => self.list(window, tables),
            b'{' => self.entries(window, tables),
            _ => {
                self.facts.number = Some(self.values.read(window, tables, &mut self.names)?);
                Ok(())
            }
        }
    }

    fn list(&mut self, window: &mut Window<'_>, tables: &mut Tables) -> Fallible<()> {
        if !window.open(b'[', b']')? {
            return Ok(());
        }
        let pairs = window.byte() == b'[';
        let mut index: u32 = 0;
        loop {
            window.ensure()?;
            if pairs {
                window.expect(b'[')?;
                let key = self.value(window, tables)?;
                self.held.push((Label::Key, key));
                window.expect(b',')?;
                let value = self.value(window, tables)?;
                self.held.push((Label::Entry, value));
                window.expect(b']')?;
            } else {
                let value = self.value(window, tables)?;
                self.held.push((Label::Index(index), value));
            }
            index = index.wrapping_add(1);
            if !window.more(b']')? {
                self.facts.count = Some(index.into());
                return Ok(());
            }
        }
    }

    /// Entries of a hash in the gem's form: under the texts of their keys.
    fn entries(&mut self, window: &mut Window<'_>, tables: &mut Tables) -> Fallible<()> {
        if !window.open(b'{', b'}')? {
            return Ok(());
        }
        let mut count = 0;
        loop {
            let key = window.key(&mut self.key)?;
            let text = window.key_text(key, &self.key);
            let key = gem::key(text, tables, &mut self.names);
            self.held.push((Label::Key, key));
            let value = self.value(window, tables)?;
            self.held.push((Label::Entry, value));
            count += 1;
            if !window.more(b'}')? {
                self.facts.count = Some(count);
                return Ok(());
            }
        }
    }

    /// Values by name.
    fn named(
        &mut self,
        window: &mut Window<'_>,
        tables: &mut Tables,
        label: impl Fn(NameId, &mut Tables) -> Label,
    ) -> Fallible<()> {
        if window.byte() != b'{' {
            return window.skip_value();
        }
        if !window.open(b'{', b'}')? {
            return Ok(());
        }
        loop {
            let key = window.key(&mut self.key)?;
            let text = window.key_text(key, &self.key);
            let name = self.names.intern(tables, text);
            let label = label(name, tables);
            let value = self.value(window, tables)?;
            self.held.push((label, value));
            if !window.more(b'}')? {
                return Ok(());
            }
        }
    }

    /// The value of `refs`: ids.
    fn references(&mut self, window: &mut Window<'_>) -> Fallible<()> {
        if !window.open(b'[', b']')? {
            return Ok(());
        }
        loop {
            window.ensure()?;
            let address = self.facts.reference(window)?;
            if address != 0 {
                self.held.push((Label::None, Value::Address(address)));
            }
            if !window.more(b']')? {
                return Ok(());
            }
        }
    }

    /// The value of a key that only the gem has: every number in it that may be an id is taken for one.
    fn push_addresses(&mut self, window: &mut Window<'_>, name: NameId) -> Fallible<()> {
        let held = &mut self.held;
        window.numbers(|number| {
            if let Some(address) = gem::address(number) {
                held.push((Label::Role(name), Value::Address(address)));
            }
        })
    }
}

fn ivar(name: NameId, tables: &mut Tables) -> Label {
    match tables.name(name).starts_with("@@") {
        true => Label::ClassVariable(name),
        false => Label::Ivar(name),
    }
}

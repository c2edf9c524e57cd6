//! The keys of an object's line.

use super::edge_reader::{Container, Data, Held};
use super::labels::{Labels, named};
use super::memprof_facts::Facts;
use crate::read::Fallible;
use crate::read::collector;
use crate::read::keys::keys;
use crate::read::strings::Names;
use crate::read::target::Target;
use crate::read::value_reader::Values;
use crate::read::window::Window;
use crate::record::{Field, Flags, Label, Tables};

keys! {
    Id "_id"
    File "file"
    Line "line"
    Method "method"
    CallerFile "caller_file"
    CallerLine "caller_line"
    CallerMethod "caller_method"
    Generation "generation"
    Time "time"
    Type "type"
    Class "class"
    ClassName "class_name"
    Length "length"
    Data "data"
    Truncated "truncated"
    Hash "hash"
    Bytes "bytes"
    Negative "negative"
    Capacity "capacity"
    Encoding "encoding"
    Coderange "coderange"
    Default "default"
    DefaultProc "default_proc"
    IvarCount "ivar_count"
    Name "name"
    RealClassName "real_class_name"
    Super "super"
    SuperName "super_name"
    Singleton "singleton"
    VariationCount "variation_count"
    Struct "struct"
    Fileno "fileno"
    ImemoType "imemo_type"
    Mid "mid"
    CalledId "called_id"
    ReceiverClass "receiver_class"
    Ivars "ivars"
    Members "members"
    Locals "locals"
    Methods "methods"
    Values "values"
    Variables "variables"
    Shared "shared"
    Memsize "memsize"
    SlotSize "slot_size"
    ShapeId "shape_id"
    Embedded "embedded"
    Frozen "frozen"
    Fstring "fstring"
    Chilled "chilled"
    Broken "broken"
    TooComplex "too_complex"
    Flags "flags"
    References "references"
    Labels "labels"
    Code "code"
    Age "age"
    ObjectId "object_id"
}

/// State kept from line to line.
pub(super) struct Reading {
    pub names: Names,
    pub key: Vec<u8>,
    values: Values,
    collector: collector::Reader,
}

impl Reading {
    pub fn new() -> Reading {
        Reading {
            names: Names::new(),
            key: Vec::new(),
            values: Values::new(),
            collector: collector::Reader::default(),
        }
    }

    /// A key with its value.
    #[inline(always)]
    pub fn pair(
        &mut self,
        window: &mut Window<'_>,
        target: &mut Target<'_>,
        facts: &mut Facts,
        held: &mut Held,
        labels: &mut Labels,
        headed: bool,
    ) -> Fallible<()> {
        let key = window.key(&mut self.key)?;
        let tables = &mut target.tables;
        let names = &mut self.names;
        let flag = match Known::of(key.word) {
            Known::Id => return put(&mut facts.common.address, window.address().map(Some)),
            Known::Type => return facts.type_name(window),
            Known::Class => return put(&mut facts.common.class, window.address_or_none()),
            Known::ClassName => {
                return put(&mut facts.common.class_name, names.optional(window, tables));
            }
            Known::References => return held.references(window),
            Known::Labels => return labels.read(window, tables, names, held),
            Known::Memsize => return put(&mut facts.common.memsize, window.count()),
            Known::SlotSize => return put(&mut facts.common.slot_size, window.count()),
            Known::ShapeId => return put(&mut facts.common.shape_id, window.count()),
            Known::Code => return put(&mut facts.code, window.count()),
            Known::Length => return put(&mut facts.common.length, window.count()),
            Known::Capacity => return put(&mut facts.common.capacity, window.count()),
            Known::IvarCount => return put(&mut facts.ivars, window.count()),
            Known::VariationCount => return put(&mut facts.common.variations, window.count()),
            Known::Line => return put(&mut facts.common.line, window.count()),
            Known::Generation => return put(&mut facts.common.generation, window.count()),
            Known::Time => return put(&mut facts.common.time, window.count()),
            Known::File => return put(&mut facts.common.file, names.optional(window, tables)),
            Known::Method => return put(&mut facts.common.method, names.optional(window, tables)),
            Known::CallerFile => {
                return put(&mut facts.common.caller.file, names.optional(window, tables));
            }
            Known::CallerLine => return put(&mut facts.common.caller.line, window.count()),
            Known::CallerMethod => {
                return put(&mut facts.common.caller.method, names.optional(window, tables));
            }
            Known::Encoding => {
                return put(&mut facts.common.encoding, names.optional(window, tables));
            }
            Known::RealClassName => {
                return put(&mut facts.common.real_name, names.optional(window, tables));
            }
            Known::SuperName => {
                return put(&mut facts.common.super_name, names.optional(window, tables));
            }
            Known::Struct => {
                return put(&mut facts.common.kind_name, names.optional(window, tables));
            }
            Known::ImemoType => {
                return put(&mut facts.common.kind_name, names.optional(window, tables));
            }
            Known::Mid => return put(&mut facts.common.mid, names.optional(window, tables)),
            Known::CalledId => {
                return put(&mut facts.common.called_id, names.optional(window, tables));
            }
            Known::ReceiverClass => return put(&mut facts.receiver, window.address_or_none()),
            Known::Super => {
                facts.has_super = true;
                return put(&mut facts.superclass, window.address_or_none());
            }
            Known::Shared => {
                facts.common.flags.set(Flags::SHARED, true);
                return put(&mut facts.shared, window.address_or_none());
            }
            Known::Hash => {
                facts.mark = Some(window.address_or_none()?);
                return Ok(());
            }
            Known::Fileno => return facts.common.descriptor(window),
            Known::Coderange => return facts.common.coderange(window),
            Known::Default => {
                facts.default = Some(self.values.read(window, tables, names)?);
                return Ok(());
            }
            Known::DefaultProc => return put(&mut facts.default_proc, window.is_true()),
            Known::Truncated => return put(&mut facts.truncated, window.is_true()),
            Known::Bytes => return facts.common.base64(window),
            Known::Data => return self.data(window, tables, facts, held),
            Known::Ivars => return self.container(window, tables, held, Container::Ivars),
            Known::Members => return self.container(window, tables, held, Container::Members),
            Known::Locals => return self.container(window, tables, held, Container::Locals),
            Known::Methods => return self.container(window, tables, held, Container::Methods),
            Known::Values => return self.container(window, tables, held, Container::Values),
            Known::Variables if !headed && window.byte() == b'{' => {
                return self.container(window, tables, held, Container::Locals);
            }
            Known::Flags if window.byte() == b'{' => {
                facts.common.collector = self.collector.read(window)?;
                return Ok(());
            }
            Known::Flags | Known::Age | Known::ObjectId | Known::Negative => {
                return window.skip_value();
            }
            Known::Singleton => Flags::SINGLETON,
            Known::Embedded => Flags::EMBEDDED,
            Known::Frozen => Flags::FROZEN,
            Known::Fstring => Flags::FSTRING,
            Known::Chilled => Flags::CHILLED,
            Known::Broken => Flags::BROKEN,
            Known::TooComplex => Flags::TOO_COMPLEX,
            Known::Name if facts.is_class() => {
                return put(&mut facts.common.name, names.optional(window, tables));
            }
            Known::Name | Known::Variables | Known::Other => {
                let text = window.key_text(key, &self.key);
                let name = names.intern(tables, text);
                let value = self.values.read(window, tables, names)?;
                facts.field(Field { name, value }, key.word);
                return Ok(());
            }
        };
        let is_true = window.is_true()?;
        facts.common.flags.set(flag, is_true);
        Ok(())
    }

    /// The value of `data`: a text, a number, elements or entries.
    fn data(
        &mut self,
        window: &mut Window<'_>,
        tables: &mut Tables,
        facts: &mut Facts,
        held: &mut Held,
    ) -> Fallible<()> {
        match window.byte() {
            b'"' => facts.common.text(window),
            b'[' => self.list(window, tables, held),
            b'{' => window.skip_value(),
            _ => {
                facts.number = Some(self.values.read(window, tables, &mut self.names)?);
                Ok(())
            }
        }
    }

    fn list(
        &mut self,
        window: &mut Window<'_>,
        tables: &mut Tables,
        held: &mut Held,
    ) -> Fallible<()> {
        held.data = Data::Elements;
        held.elements.clear();
        if !window.open(b'[', b']')? {
            return Ok(());
        }
        let Reading { values, names, .. } = self;
        if window.byte() != b'[' {
            loop {
                held.elements.push(values.read(window, tables, names)?);
                if !window.more(b']')? {
                    return Ok(());
                }
            }
        }
        held.data = Data::Pairs;
        loop {
            window.ensure()?;
            window.expect(b'[')?;
            held.elements.push(values.read(window, tables, names)?);
            window.expect(b',')?;
            held.elements.push(values.read(window, tables, names)?);
            window.expect(b']')?;
            if !window.more(b']')? {
                return Ok(());
            }
        }
    }

    /// Values by name.
    fn container(
        &mut self,
        window: &mut Window<'_>,
        tables: &mut Tables,
        held: &mut Held,
        container: Container,
    ) -> Fallible<()> {
        if window.byte() != b'{' {
            return window.skip_value();
        }
        if !window.open(b'{', b'}')? {
            return Ok(());
        }
        let Reading { values, names, key, .. } = self;
        loop {
            let place = window.key(key)?;
            let text = window.key_text(place, key);
            let label = label(tables, names, container, text);
            let value = values.read(window, tables, names)?;
            held.push(container, label, value);
            if !window.more(b'}')? {
                return Ok(());
            }
        }
    }
}

/// Stores a value that was read.
#[inline(always)]
fn put<T>(place: &mut T, read: Fallible<T>) -> Fallible<()> {
    *place = read?;
    Ok(())
}

/// The label of a named value in a container.
fn label(tables: &mut Tables, names: &mut Names, container: Container, text: &[u8]) -> Label {
    match container {
        Container::Members => Label::Member(names.intern(tables, text)),
        Container::Methods => Label::Method(names.intern(tables, text)),
        Container::Values => Label::Role(names.intern(tables, text)),
        Container::Locals => {
            // memprof 0.3 writes the names as symbols.
            let text = text.strip_prefix(b":").unwrap_or(text);
            let name = names.intern(tables, text);
            match text.first() {
                Some(b'$') => Label::Global(name),
                _ => Label::Local(name),
            }
        }
        Container::Ivars => match text {
            [b'@', b'@', ..] => Label::ClassVariable(names.intern(tables, text)),
            [b'@', ..] => Label::Ivar(names.intern(tables, text)),
            _ => match named(tables, names, text) {
                label @ Label::Constant(_) => label,
                _ => Label::Ivar(names.intern(tables, text)),
            },
        },
    }
}

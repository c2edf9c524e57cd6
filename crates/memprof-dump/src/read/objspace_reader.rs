//! Reads the lines of `ObjectSpace.dump_all`, from Ruby 2.1 on.

use super::collector;
use super::keys::keys;
use super::line_facts::{self, Sizes};
use super::lines::{Line, Lines};
use super::strings::Names;
use super::target::{PIECE, Target};
use super::window::Window;
use super::word::Word;
use super::{Fallible, Stop};
use crate::objspace_json::kind_of;
use crate::record::{
    CodeRange, Content, Detail, Edge, Flags, Kind, Label, NameId, NoteKind, Object, Shape, Text,
    Value,
};

/// Slot size if a line does not contain it: before Ruby 3.2 all slots had the same.
const SLOT: u32 = 40;

keys! {
    Address "address"
    Type "type"
    ShapeId "shape_id"
    SlotSize "slot_size"
    Class "class"
    Frozen "frozen"
    ImemoType "imemo_type"
    Mid "mid"
    CalledId "called_id"
    ReceiverClass "receiver_class"
    Embedded "embedded"
    Fstring "fstring"
    Chilled "chilled"
    Shared "shared"
    Bytesize "bytesize"
    Capacity "capacity"
    Content "value"
    Encoding "encoding"
    Coderange "coderange"
    Broken "broken"
    Size "size"
    Length "length"
    Ivars "ivars"
    Default "default"
    VariationCount "variation_count"
    Superclass "superclass"
    Name "name"
    RealClassName "real_class_name"
    Singleton "singleton"
    Struct "struct"
    Fd "fd"
    References "references"
    File "file"
    Line "line"
    Method "method"
    Generation "generation"
    Memsize "memsize"
    Flags "flags"
    Root "root"
    Id "id"
    ParentId "parent_id"
    Depth "depth"
    ShapeType "shape_type"
    EdgeName "edge_name"
    Edges "edges"
}

/// Reads lines.
pub(super) struct Reader {
    facts: Facts,
    names: Names,
    collector: collector::Reader,
    references: Vec<u64>,
    edges: Vec<Edge<'static>>,
    key: Vec<u8>,
}

impl Lines for Reader {
    /// Notes the origin of the records, which these dumps omit.
    fn begin(&mut self, _: &Window<'_>, target: &mut Target<'_>) -> Fallible<()> {
        target.note(NoteKind::Header, "{\"source\":\"objspace\"}")
    }

    fn line(&mut self, window: &mut Window<'_>, target: &mut Target<'_>) -> Fallible<Line> {
        self.facts.clear();
        self.references.clear();
        if window.open(b'{', b'}')? {
            loop {
                self.pair(window, target)?;
                if !window.more(b'}')? {
                    break;
                }
            }
        }
        window.end_line()?;
        self.emit(target)?;
        Ok(Line::Record)
    }
}

impl Reader {
    pub fn new() -> Reader {
        Reader {
            facts: Facts::default(),
            names: Names::new(),
            collector: collector::Reader::default(),
            references: Vec::new(),
            edges: Vec::new(),
            key: Vec::new(),
        }
    }

    #[inline(always)]
    fn pair(&mut self, window: &mut Window<'_>, target: &mut Target<'_>) -> Fallible<()> {
        let key = window.key(&mut self.key)?;
        let facts = &mut self.facts;
        let names = &mut self.names;
        let tables = &mut target.tables;
        let flag = match Known::of(key.word) {
            Known::Address => {
                facts.common.address = Some(window.address()?);
                return Ok(());
            }
            Known::Type => return facts.subject(window),
            Known::Class => {
                facts.common.class = window.address_or_none()?;
                return Ok(());
            }
            Known::References => return self.references(window),
            Known::Flags => {
                facts.common.collector = self.collector.read(window)?;
                return Ok(());
            }
            Known::Memsize => {
                facts.common.memsize = window.count()?;
                return Ok(());
            }
            Known::ShapeId => {
                facts.common.shape_id = window.count()?;
                return Ok(());
            }
            Known::SlotSize => {
                facts.common.slot_size = window.count()?;
                return Ok(());
            }
            Known::Frozen => Flags::FROZEN,
            Known::Embedded => Flags::EMBEDDED,
            Known::Fstring => Flags::FSTRING,
            Known::Chilled => Flags::CHILLED,
            Known::Shared => Flags::SHARED,
            Known::Broken => Flags::BROKEN,
            Known::Singleton => Flags::SINGLETON,
            Known::Bytesize => {
                facts.common.length = window.count()?;
                return Ok(());
            }
            Known::Capacity => {
                facts.common.capacity = window.count()?;
                return Ok(());
            }
            Known::Content => return facts.content(window),
            Known::Encoding => {
                facts.common.encoding = names.optional(window, tables)?;
                return Ok(());
            }
            Known::Coderange => return facts.common.coderange(window),
            Known::Size | Known::Length | Known::Ivars => {
                facts.count = window.count()?;
                return Ok(());
            }
            Known::ImemoType | Known::Struct | Known::ShapeType => {
                facts.common.kind_name = names.unescaped(window, tables)?;
                return Ok(());
            }
            Known::Mid | Known::EdgeName => {
                facts.common.mid = names.unescaped(window, tables)?;
                return Ok(());
            }
            Known::CalledId => {
                facts.common.called_id = names.unescaped(window, tables)?;
                return Ok(());
            }
            Known::ReceiverClass | Known::Superclass | Known::Default => {
                facts.other = window.address_or_none()?;
                return Ok(());
            }
            Known::File => {
                facts.common.file = names.unescaped(window, tables)?;
                return Ok(());
            }
            Known::Line => {
                facts.common.line = window.count()?;
                return Ok(());
            }
            Known::Method => {
                facts.common.method = names.unescaped(window, tables)?;
                return Ok(());
            }
            Known::Generation => {
                facts.common.generation = window.count()?;
                return Ok(());
            }
            Known::VariationCount => {
                facts.common.variations = window.count()?;
                return Ok(());
            }
            Known::Name => {
                facts.common.name = names.unescaped(window, tables)?;
                return Ok(());
            }
            Known::RealClassName => {
                facts.common.real_name = names.unescaped(window, tables)?;
                return Ok(());
            }
            Known::Fd => return facts.common.descriptor(window),
            Known::Root => {
                facts.root = names.optional(window, tables)?;
                return Ok(());
            }
            Known::Id => {
                facts.id = window.count()?;
                return Ok(());
            }
            Known::ParentId => {
                facts.parent_id = window.count()?;
                return Ok(());
            }
            Known::Depth => {
                facts.depth = window.count()?;
                return Ok(());
            }
            Known::Edges => {
                facts.edges = window.count()?;
                return Ok(());
            }
            Known::Other => {
                // Two earlier, longer names of this fact.
                let text = window.key_text(key, &self.key);
                match text {
                    b"too_complex_shape" | b"complex_shape" => Flags::TOO_COMPLEX,
                    _ => return window.skip_value(),
                }
            }
        };
        let is_true = window.is_true()?;
        facts.common.flags.set(flag, is_true);
        Ok(())
    }

    #[inline(always)]
    fn references(&mut self, window: &mut Window<'_>) -> Fallible<()> {
        if !window.open(b'[', b']')? {
            return Ok(());
        }
        loop {
            window.ensure()?;
            self.references.push(window.address()?);
            if window.starts_with(b", ") {
                window.hold(8);
                window.skip(2);
            } else if !window.more(b']')? {
                return Ok(());
            }
        }
    }

    fn emit(&mut self, target: &mut Target<'_>) -> Fallible<()> {
        match self.facts.subject {
            Subject::Object(kind) => {
                let object = self.facts.object(kind, target)?;
                target.object(&object)?;
                self.emit_references(|edges| target.edges(edges))
            }
            Subject::Root => {
                let root = self.facts.root.ok_or(Stop::Broken)?;
                let category = target.tables.name(root).to_owned();
                if self.references.is_empty() {
                    return target.roots(&category, &mut []);
                }
                self.emit_references(|edges| target.roots(&category, edges))
            }
            Subject::Shape => {
                let shape = self.facts.shape(target)?;
                target.shape(&shape)
            }
            Subject::None => Err(Stop::Broken),
        }
    }

    #[inline(always)]
    fn emit_references(
        &mut self,
        mut emit: impl FnMut(&mut Vec<Edge<'static>>) -> Fallible<()>,
    ) -> Fallible<()> {
        for piece in self.references.chunks(PIECE) {
            self.edges.clear();
            self.edges.extend(piece.iter().map(|address| Edge {
                label: Label::None,
                value: Value::Address(*address),
                preview: None,
            }));
            emit(&mut self.edges)?;
        }
        Ok(())
    }
}

/// The subject of a line.
#[derive(Clone, Copy, Default)]
enum Subject {
    #[default]
    None,
    Object(Kind),
    Root,
    Shape,
}

/// One line without its references.
#[derive(Default)]
struct Facts {
    /// For a shape, the type is in `kind_name`, and the name of its edge in `mid`.
    common: line_facts::Facts,
    subject: Subject,
    /// Superclass, default proc of a hash, or class of a callcache's receiver.
    other: u64,
    /// Number of elements, entries, or instance variables.
    count: Option<u64>,
    root: Option<NameId>,
    id: Option<u64>,
    parent_id: Option<u64>,
    depth: Option<u64>,
    edges: Option<u64>,
}

impl Facts {
    #[inline(always)]
    fn clear(&mut self) {
        *self = Facts { common: self.common.cleared(), ..Facts::default() };
    }

    /// The value of `type`.
    #[inline(always)]
    fn subject(&mut self, window: &mut Window<'_>) -> Fallible<()> {
        let (word, length) = window.word().ok_or(Stop::Broken)?;
        self.subject = match subject(word) {
            Some(subject) => subject,
            None => {
                let text = window.slice(1, length - 1);
                Subject::Object(kind_of(std::str::from_utf8(text).unwrap_or("")))
            }
        };
        window.skip(length);
        Ok(())
    }

    /// The value of `value`: a string, or sometimes a number for a Float.
    #[inline(always)]
    fn content(&mut self, window: &mut Window<'_>) -> Fallible<()> {
        if window.byte() == b'"' {
            return self.common.text(window);
        }
        let rest = window.rest().iter();
        let length = rest.take_while(|byte| !matches!(byte, b',' | b'}' | b' ' | b'\n' | b'"'));
        let length = length.count().min(64);
        self.common.has_text = true;
        self.common.text.clear();
        self.common.text.extend_from_slice(window.slice(0, length));
        window.skip_value()
    }

    fn shape(&self, target: &mut Target<'_>) -> Fallible<Shape> {
        let common = &self.common;
        Ok(Shape {
            address: common.address.ok_or(Stop::Broken)?,
            id: self.id.ok_or(Stop::Broken)?,
            parent_id: self.parent_id,
            depth: self.depth.unwrap_or(0),
            shape_type: common.kind_name.unwrap_or_else(|| target.no_name()),
            edge_name: common.mid,
            edges: self.edges.unwrap_or(0),
            memsize: common.memsize.unwrap_or(0),
        })
    }

    #[inline(always)]
    fn object(&self, kind: Kind, target: &mut Target<'_>) -> Fallible<Object<'_>> {
        let unsaid = Sizes { slot: SLOT, memory: 0 };
        let detail = self.detail(kind, target)?;
        self.common.object(kind, detail, &[], unsaid, target)
    }

    #[inline(always)]
    fn text(&self, target: &mut Target<'_>) -> Text<'_> {
        let common = &self.common;
        let coderange = match common.coderange {
            Some(coderange) => coderange,
            None if common.flags.has(Flags::BROKEN) => CodeRange::Broken,
            None if common.has_text => CodeRange::SevenBit,
            None => CodeRange::Unknown,
        };
        let content = &common.text[..];
        let longer = |length: u64| length > content.len() as u64;
        Text {
            length: common.length,
            capacity: common.capacity,
            encoding: common.encoding.unwrap_or_else(|| target.no_name()),
            coderange,
            content: match common.has_text {
                true if common.length.is_some_and(longer) => Content::Truncated(content),
                true => Content::Full(content),
                // Since Ruby 3.2 an empty value is omitted.
                false if common.length == Some(0) => Content::Full(b""),
                false => Content::Absent,
            },
        }
    }

    #[inline(always)]
    fn detail(&self, kind: Kind, target: &mut Target<'_>) -> Fallible<Detail<'_>> {
        let common = &self.common;
        let count = self.count.ok_or(Stop::Broken);
        Ok(match kind {
            Kind::STRING => Detail::String(self.text(target)),
            Kind::SYMBOL => Detail::Symbol(self.text(target)),
            Kind::FLOAT => {
                let text = std::str::from_utf8(&common.text).unwrap_or("");
                let number = text.parse().ok();
                number.map_or(Detail::None, Detail::Float)
            }
            Kind::ARRAY => Detail::Length(count?),
            Kind::HASH => Detail::Hash {
                size: count?,
                default: match self.other {
                    0 => Value::Nil,
                    address => Value::Address(address),
                },
                default_proc: self.other != 0,
            },
            Kind::OBJECT => Detail::Object { ivars: count? },
            Kind::IMEMO => {
                // Missing before Ruby 2.4.
                let name = common.kind_name.unwrap_or_else(|| target.no_name());
                common.imemo(name, self.other)
            }
            _ => common.detail(kind, self.other),
        })
    }
}

/// The most common types of dumps; `None` for others.
#[inline(always)]
fn subject(word: Word) -> Option<Subject> {
    const ROOT: Word = Word::new("ROOT");
    const SHAPE: Word = Word::new("SHAPE");
    const STRING: Word = Word::new("STRING");
    const ARRAY: Word = Word::new("ARRAY");
    const IMEMO: Word = Word::new("IMEMO");
    const HASH: Word = Word::new("HASH");
    const OBJECT: Word = Word::new("OBJECT");
    const DATA: Word = Word::new("DATA");
    const CLASS: Word = Word::new("CLASS");
    const STRUCT: Word = Word::new("STRUCT");
    Some(match word {
        ROOT => Subject::Root,
        SHAPE => Subject::Shape,
        STRING => Subject::Object(Kind::STRING),
        ARRAY => Subject::Object(Kind::ARRAY),
        IMEMO => Subject::Object(Kind::IMEMO),
        HASH => Subject::Object(Kind::HASH),
        OBJECT => Subject::Object(Kind::OBJECT),
        DATA => Subject::Object(Kind::DATA),
        CLASS => Subject::Object(Kind::CLASS),
        STRUCT => Subject::Object(Kind::STRUCT),
        _ => return None,
    })
}

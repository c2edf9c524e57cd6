//! Reads the lines of `ObjectSpace.dump_all`, from Ruby 2.1 on.

mod objspace_facts;

use super::collector;
use super::keys::keys;
use super::lines::{Line, Lines};
use super::strings::Names;
use super::target::{PIECE, Target};
use super::window::Window;
use super::{Fallible, Stop};
use crate::record::{Edge, Flags, Label, NoteKind, Value};
use objspace_facts::{Facts, Subject};

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

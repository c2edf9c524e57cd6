//! The facts of a line.

use crate::objspace_json::kind_of;
use crate::read::line_facts::{self, Sizes};
use crate::read::target::Target;
use crate::read::window::Window;
use crate::read::word::Word;
use crate::read::{Fallible, Stop};
use crate::record::{CodeRange, Content, Detail, Flags, Kind, NameId, Object, Shape, Text, Value};

/// Slot size if a line does not contain it: before Ruby 3.2 all slots had the same.
const SLOT: u32 = 40;

/// The subject of a line.
#[derive(Clone, Copy, Default)]
pub(super) enum Subject {
    #[default]
    None,
    Object(Kind),
    Root,
    Shape,
}

/// One line without its references.
#[derive(Default)]
pub(super) struct Facts {
    /// For a shape, the type is in `kind_name`, and the name of its edge in `mid`.
    pub common: line_facts::Facts,
    pub subject: Subject,
    /// Superclass, default proc of a hash, or class of a callcache's receiver.
    pub other: u64,
    /// Number of elements, entries, or instance variables.
    pub count: Option<u64>,
    pub root: Option<NameId>,
    pub id: Option<u64>,
    pub parent_id: Option<u64>,
    pub depth: Option<u64>,
    pub edges: Option<u64>,
}

impl Facts {
    #[inline(always)]
    pub fn clear(&mut self) {
        *self = Facts {
            common: self.common.cleared(),
            ..Facts::default()
        };
    }

    /// The value of `type`.
    #[inline(always)]
    pub fn subject(&mut self, window: &mut Window<'_>) -> Fallible<()> {
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
    pub fn content(&mut self, window: &mut Window<'_>) -> Fallible<()> {
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

    pub fn shape(&self, target: &mut Target<'_>) -> Fallible<Shape> {
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
    pub fn object(&self, kind: Kind, target: &mut Target<'_>) -> Fallible<Object<'_>> {
        let unsaid = Sizes {
            slot: SLOT,
            memory: 0,
        };
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

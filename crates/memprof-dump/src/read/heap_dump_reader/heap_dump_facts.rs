//! The facts of a line.

use crate::objspace_json::kind_of;
use crate::read::line_facts::{self, Sizes, float};
use crate::read::target::Target;
use crate::read::value_reader::not_finite;
use crate::read::window::Window;
use crate::read::{Fallible, Stop};
use crate::record::{CodeRange, Content, Detail, Field, Kind, Object, Text, Value};

/// Size of a slot. Only the lines of data objects contain it.
const SLOT: u32 = 40;

/// One line without the object's contents.
#[derive(Default)]
pub(super) struct Facts {
    pub common: line_facts::Facts,
    /// Whether the gem wrote this line.
    pub gem: bool,
    kind: Option<Kind>,
    pub superclass: u64,
    pub size: Option<u64>,
    /// Number of elements or entries.
    pub count: Option<u64>,
    pub default: Option<Value>,
    pub number: Option<Value>,
    pub mark: Option<u64>,
    pub truncated: bool,
}

impl Facts {
    pub fn clear(&mut self) {
        *self = Facts { common: self.common.cleared(), ..Facts::default() };
    }

    /// The value of `id`: an address, or a number if the gem wrote it.
    pub fn id(&mut self, window: &mut Window<'_>) -> Fallible<()> {
        self.gem = window.byte() != b'"';
        self.common.address = Some(window.id()?).filter(|address| *address != 0);
        Ok(())
    }

    /// Another id; 0 if it is not valid.
    pub fn reference(&self, window: &mut Window<'_>) -> Fallible<u64> {
        window.id()
    }

    /// The value of `bt`, such as `T_STRING`.
    pub fn kind(&mut self, window: &mut Window<'_>) -> Fallible<()> {
        let (_, length) = window.word().ok_or(Stop::Broken)?;
        let text = window.slice(1, length - 1);
        let name = text.strip_prefix(b"T_").ok_or(Stop::Broken)?;
        self.kind = Some(kind_of(std::str::from_utf8(name).unwrap_or("")));
        window.skip(length);
        Ok(())
    }

    pub fn is_class(&self) -> bool {
        matches!(self.kind, Some(Kind::CLASS | Kind::MODULE | Kind::ICLASS))
    }

    pub fn descriptor(&mut self, window: &mut Window<'_>) -> Fallible<()> {
        let mut fd = None;
        window.numbers(|number| fd = i32::try_from(number).ok())?;
        self.common.fd = fd;
        Ok(())
    }

    pub fn object<'a>(
        &'a self,
        fields: &'a [Field],
        target: &mut Target<'_>,
    ) -> Fallible<Object<'a>> {
        let kind = self.kind.ok_or(Stop::Broken)?;
        let detail = self.detail(kind, target);
        self.common.object(kind, detail, fields, self.sizes(), target)
    }

    /// The gem gives an object's size without its slot, memprof both.
    fn sizes(&self) -> Sizes {
        let (slot, memory) = match (self.common.memsize, self.size) {
            (Some(memsize), Some(size)) => (memsize.checked_sub(size), memsize),
            (Some(memsize), None) => (None, memsize),
            (None, size) => (None, u64::from(SLOT).saturating_add(size.unwrap_or(0))),
        };
        let slot = slot.and_then(|slot| u32::try_from(slot).ok());
        Sizes { slot: slot.filter(|slot| *slot > 0).unwrap_or(SLOT), memory }
    }

    fn text(&self, target: &mut Target<'_>) -> Text<'_> {
        let common = &self.common;
        let whole = common.has_text && !self.truncated;
        let length = whole.then_some(common.text.len() as u64);
        Text {
            length: common.length.or(length),
            capacity: None,
            encoding: common.encoding.unwrap_or_else(|| target.no_name()),
            coderange: CodeRange::Unknown,
            content: match self.mark {
                Some(mark) => Content::Mark(mark),
                None if whole => Content::Full(&common.text),
                None if common.has_text => Content::Truncated(&common.text),
                None => Content::Absent,
            },
        }
    }

    fn detail(&self, kind: Kind, target: &mut Target<'_>) -> Detail<'_> {
        let common = &self.common;
        let count = self.count.unwrap_or(0);
        match kind {
            Kind::STRING => Detail::String(self.text(target)),
            Kind::SYMBOL => Detail::Symbol(self.text(target)),
            Kind::REGEXP => Detail::Regexp(self.text(target)),
            Kind::BIGNUM => Detail::Bignum(self.text(target)),
            Kind::FLOAT => {
                let number = self.number.and_then(float);
                let number = number.or_else(|| not_finite(&common.text));
                number.map_or(Detail::None, Detail::Float)
            }
            Kind::ARRAY => Detail::Length(count),
            Kind::HASH => Detail::Hash {
                size: count,
                default: self.default.unwrap_or(Value::Nil),
                default_proc: false,
            },
            Kind::IMEMO => {
                let name = common.kind_name.unwrap_or_else(|| target.no_name());
                common.imemo(name, 0)
            }
            _ => common.detail(kind, self.superclass),
        }
    }
}

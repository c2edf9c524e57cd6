//! The facts of an object.

use super::classic;
use super::edge_reader::Held;
use crate::memprof_json::{is_taken, kind_of};
use crate::read::line_facts::{self, Sizes, float};
use crate::read::target::Target;
use crate::read::value_reader::not_finite;
use crate::read::window::Window;
use crate::read::word::Word;
use crate::read::{Fallible, Stop};
use crate::record::{CodeRange, Content, Detail, Field, Kind, Label, Object, Tables, Text, Value};

/// One line without the object's contents.
#[derive(Default)]
pub(super) struct Facts {
    pub common: line_facts::Facts,
    pub type_name: TypeName,
    pub code: Option<u8>,
    pub truncated: bool,
    pub mark: Option<u64>,
    /// The value of `data`, if it is a number.
    pub number: Option<Value>,
    pub default: Option<Value>,
    pub default_proc: bool,
    pub ivars: Option<u64>,
    pub has_super: bool,
    pub superclass: u64,
    pub receiver: u64,
    pub shared: u64,
    fields: Vec<Field>,
    /// Position of `name` in `fields`; a class's name is not a field.
    name: Option<usize>,
}

/// The value of `type`.
#[derive(Clone, Copy, Default)]
pub(super) enum TypeName {
    #[default]
    Absent,
    Known(Kind),
    /// A type of Ruby 1.8, or none.
    Other(Kind),
}

impl Facts {
    pub fn clear(&mut self) {
        let mut fields = std::mem::take(&mut self.fields);
        fields.clear();
        *self = Facts { common: self.common.cleared(), fields, ..Facts::default() };
    }

    #[inline(always)]
    pub fn type_name(&mut self, window: &mut Window<'_>) -> Fallible<()> {
        const STRING: Word = Word::new("string");
        const ARRAY: Word = Word::new("array");
        const IMEMO: Word = Word::new("imemo");
        const HASH: Word = Word::new("hash");
        const OBJECT: Word = Word::new("object");
        const DATA: Word = Word::new("data");
        let (word, length) = window.word().ok_or(Stop::Broken)?;
        self.type_name = TypeName::Known(match word {
            STRING => Kind::STRING,
            ARRAY => Kind::ARRAY,
            IMEMO => Kind::IMEMO,
            HASH => Kind::HASH,
            OBJECT => Kind::OBJECT,
            DATA => Kind::DATA,
            _ => {
                let name = std::str::from_utf8(window.slice(1, length - 1)).unwrap_or("");
                match kind_of(name) {
                    Some(kind) => kind,
                    None => {
                        self.type_name = TypeName::Other(classic::kind(name));
                        window.skip(length);
                        return Ok(());
                    }
                }
            }
        });
        window.skip(length);
        Ok(())
    }

    pub fn is_class(&self) -> bool {
        use TypeName::Known;
        matches!(self.type_name, Known(Kind::CLASS | Kind::MODULE | Kind::ICLASS))
    }

    /// A fact for which this format has no key.
    pub fn field(&mut self, field: Field, key: Word) {
        if key == Word::new("name") {
            self.name = Some(self.fields.len());
        }
        self.fields.push(field);
    }

    pub fn kind(&self, classic: bool) -> Fallible<Kind> {
        match (self.code, self.type_name) {
            // Ruby 1.8 numbered its types differently.
            (Some(code), TypeName::Known(_) | TypeName::Other(_)) if !classic => Ok(Kind(code)),
            (_, TypeName::Known(kind)) => Ok(kind),
            (_, TypeName::Other(kind)) if classic => Ok(kind),
            _ => Err(Stop::Broken),
        }
    }

    /// The fields for a type. Must be returned afterwards.
    pub fn fields(&mut self, kind: Kind) -> Vec<Field> {
        let mut fields = std::mem::take(&mut self.fields);
        if let Some(place) = self.name.filter(|_| is_taken(kind, "name")) {
            let field = fields.remove(place);
            self.name = None;
            if let Value::Name(name) = field.value {
                self.common.name = Some(name);
            }
        }
        fields
    }

    pub fn reuse_fields(&mut self, fields: Vec<Field>) {
        self.fields = fields;
    }

    /// Turns values that lines of memprof 0.3 name outside of containers into references.
    pub fn roles(&mut self, kind: Kind, target: &mut Target<'_>, held: &mut Held) {
        let tables = &mut target.tables;
        let mut role = |tables: &mut Tables, name: &str, address| {
            if address != 0 {
                held.push_reference(Label::Role(tables.intern(name)), address);
            }
        };
        role(tables, "super", self.superclass);
        role(tables, "shared", self.shared);
        if let Some(Value::Address(address)) = self.default {
            role(tables, "default", address);
        }
        // For other types it is the address of a C struct.
        if kind == Kind::MATCH {
            let matched = crate::read::hex::address(&self.common.text);
            role(tables, "data", matched.unwrap_or(0));
        }
        for field in &self.fields {
            if let Value::Address(address) = field.value {
                held.push_reference(Label::Role(field.name), address);
            }
        }
        self.fields.retain(|field| !matches!(field.value, Value::Address(_)));
    }

    pub fn object<'a>(
        &'a self,
        kind: Kind,
        fields: &'a [Field],
        classic: bool,
        target: &mut Target<'_>,
    ) -> Fallible<Object<'a>> {
        let slot = if classic { classic::SLOT } else { 0 };
        let unsaid = Sizes { slot, memory: slot.into() };
        let detail = self.detail(kind, target)?;
        self.common.object(kind, detail, fields, unsaid, target)
    }

    fn text(&self, target: &mut Target<'_>) -> Text<'_> {
        let common = &self.common;
        Text {
            length: common.length,
            capacity: common.capacity,
            encoding: common.encoding.unwrap_or_else(|| target.no_name()),
            coderange: common.coderange.unwrap_or(CodeRange::Unknown),
            content: match self.mark {
                Some(mark) => Content::Mark(mark),
                None if !common.has_text => Content::Absent,
                None if self.truncated => Content::Truncated(&common.text),
                None => Content::Full(&common.text),
            },
        }
    }

    fn float(&self) -> Fallible<Detail<'static>> {
        let number = match self.number {
            Some(number) => float(number),
            None if self.common.has_text => not_finite(&self.common.text),
            None => return Ok(Detail::None),
        };
        number.map(Detail::Float).ok_or(Stop::Broken)
    }

    fn detail(&self, kind: Kind, target: &mut Target<'_>) -> Fallible<Detail<'_>> {
        let common = &self.common;
        Ok(match kind {
            Kind::STRING => Detail::String(self.text(target)),
            Kind::SYMBOL => Detail::Symbol(self.text(target)),
            Kind::REGEXP => Detail::Regexp(self.text(target)),
            Kind::BIGNUM => Detail::Bignum(self.text(target)),
            Kind::FLOAT => self.float()?,
            Kind::ARRAY | Kind::STRUCT => common.length.map_or(Detail::None, Detail::Length),
            Kind::HASH => match common.length {
                Some(size) => Detail::Hash {
                    size,
                    default: self.default.unwrap_or(Value::Nil),
                    default_proc: self.default_proc,
                },
                None => Detail::None,
            },
            Kind::OBJECT => match self.ivars {
                Some(ivars) => Detail::Object { ivars },
                None => Detail::None,
            },
            Kind::CLASS | Kind::MODULE | Kind::ICLASS if !self.has_super => Detail::None,
            Kind::IMEMO => match common.kind_name {
                Some(name) => common.imemo(name, self.receiver),
                None => Detail::None,
            },
            _ => common.detail(kind, self.superclass),
        })
    }
}

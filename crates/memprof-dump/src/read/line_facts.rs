//! Facts of an object common to all JSON line formats. Each format adds its own, or reads them in its own way.

use super::collector::Collector;
use super::target::Target;
use super::window::Window;
use super::word::Word;
use super::{Fallible, Stop};
use crate::record::{
    Allocation, CodeRange, Detail, Field, Flags, Kind, NameId, Object, Site, Value,
};
use crate::text::from_base64;

/// Room for text kept between lines: texts of many megabytes are rare.
const KEPT: usize = 1024 * 1024;

/// The facts of one line.
#[derive(Default)]
pub(super) struct Facts {
    pub address: Option<u64>,
    pub class: u64,
    pub class_name: Option<NameId>,
    pub memsize: Option<u64>,
    pub slot_size: Option<u32>,
    pub shape_id: Option<u32>,
    pub flags: Flags,
    pub collector: Collector,
    pub length: Option<u64>,
    pub capacity: Option<u64>,
    pub encoding: Option<NameId>,
    pub coderange: Option<CodeRange>,
    /// Name of a class.
    pub name: Option<NameId>,
    pub real_name: Option<NameId>,
    pub super_name: Option<NameId>,
    pub variations: Option<u32>,
    /// Kind of imemo, or type of data.
    pub kind_name: Option<NameId>,
    pub mid: Option<NameId>,
    pub called_id: Option<NameId>,
    pub fd: Option<i32>,
    pub file: Option<NameId>,
    pub line: Option<u32>,
    pub method: Option<NameId>,
    pub caller: Caller,
    pub generation: Option<u64>,
    pub time: Option<u64>,
    pub has_text: bool,
    pub text: Vec<u8>,
}

/// The application line behind an allocation.
#[derive(Default)]
pub(super) struct Caller {
    pub file: Option<NameId>,
    pub line: Option<u32>,
    pub method: Option<NameId>,
}

/// Default sizes for objects whose line does not contain them.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub slot: u32,
    pub memory: u64,
}

impl Facts {
    /// Empty facts that reuse the text buffer of these.
    #[inline(always)]
    pub fn cleared(&mut self) -> Facts {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        text.shrink_to(KEPT);
        Facts { text, ..Facts::default() }
    }

    /// The text of the object.
    #[inline(always)]
    pub fn text(&mut self, window: &mut Window<'_>) -> Fallible<()> {
        self.text.clear();
        self.has_text = true;
        window.string(&mut self.text)
    }

    /// All bytes of a text that is not UTF-8.
    pub fn base64(&mut self, window: &mut Window<'_>) -> Fallible<()> {
        self.text(window)?;
        let text = std::str::from_utf8(&self.text).map_err(|_| Stop::Broken)?;
        self.text = from_base64(text).ok_or(Stop::Broken)?;
        Ok(())
    }

    #[inline(always)]
    pub fn coderange(&mut self, window: &mut Window<'_>) -> Fallible<()> {
        const SEVEN_BIT: Word = Word::new("7bit");
        const VALID: Word = Word::new("valid");
        const BROKEN: Word = Word::new("broken");
        let Some((word, length)) = window.word() else {
            return window.skip_value();
        };
        self.coderange = Some(match word {
            SEVEN_BIT => CodeRange::SevenBit,
            VALID => CodeRange::Valid,
            BROKEN => CodeRange::Broken,
            _ => CodeRange::Unknown,
        });
        window.skip(length);
        Ok(())
    }

    /// A file descriptor, which may be negative.
    pub fn descriptor(&mut self, window: &mut Window<'_>) -> Fallible<()> {
        let negative = window.byte() == b'-';
        window.skip(negative.into());
        let number = window.count::<i32>()?;
        self.fd = if negative { number.map(|fd| -fd) } else { number };
        Ok(())
    }

    #[inline(always)]
    pub fn object<'a>(
        &self,
        kind: Kind,
        detail: Detail<'a>,
        fields: &'a [Field],
        unsaid: Sizes,
        target: &mut Target<'_>,
    ) -> Fallible<Object<'a>> {
        let mut flags = self.flags;
        flags.set(self.collector.flags, true);
        Ok(Object {
            address: self.address.ok_or(Stop::Broken)?,
            kind,
            class: self.class,
            class_name: self.class_name,
            slot_size: self.slot_size.unwrap_or(unsaid.slot),
            memsize: self.memsize.unwrap_or(unsaid.memory),
            shape_id: self.shape_id,
            flags,
            age: self.collector.age,
            object_id: self.collector.object_id,
            detail,
            fields,
            allocation: self.allocation(target),
        })
    }

    #[inline(always)]
    fn allocation(&self, target: &mut Target<'_>) -> Option<Allocation> {
        // memprof 0.3 has no generations, and no other format has times.
        let generation = match self.generation {
            None if self.time.is_none() => return None,
            generation => generation.unwrap_or(0),
        };
        let site = Site {
            file: self.file.unwrap_or_else(|| target.no_name()),
            line: self.line.unwrap_or(0),
            method: self.method,
        };
        let caller = self.caller.file.map(|file| Site {
            file,
            line: self.caller.line.unwrap_or(0),
            method: self.caller.method,
        });
        Some(Allocation {
            site: target.tables.intern_site(site),
            caller: caller.map(|caller| target.tables.intern_site(caller)),
            generation,
            time: self.time.unwrap_or(0),
        })
    }

    /// Facts of a class, of data or of a file.
    #[inline(always)]
    pub fn detail(&self, kind: Kind, superclass: u64) -> Detail<'static> {
        match kind {
            Kind::CLASS | Kind::MODULE | Kind::ICLASS => Detail::Class {
                name: self.name,
                real_name: self.real_name,
                superclass,
                super_name: self.super_name,
                variations: self.variations,
            },
            Kind::DATA => Detail::Data { type_name: self.kind_name },
            Kind::FILE => Detail::File { fd: self.fd },
            _ => Detail::None,
        }
    }

    /// Facts of an imemo of this kind.
    #[inline(always)]
    pub fn imemo(&self, name: NameId, receiver_class: u64) -> Detail<'static> {
        Detail::Imemo { name, mid: self.mid, called_id: self.called_id, receiver_class }
    }
}

/// The Float with this JSON value.
pub(super) fn float(value: Value) -> Option<f64> {
    match value {
        Value::Float(number) => Some(number),
        Value::Int(number) => Some(number as f64),
        _ => None,
    }
}

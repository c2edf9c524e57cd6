//! Keys of groups, for people and for queries.

use memprof_paths::guess_gem;
use serde::Serialize;

use super::super::words::place;
use super::by::{By, Keys};
use memprof_dump::record::{Kind, NameId};

/// The key of a group, as it is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Raw {
    Unknown,
    Name(NameId),
    /// The first bytes of a name.
    Prefix(NameId, u32),
    Type(Kind),
    Gem(NameId),
    Site(NameId, u32),
    Number(u64),
    /// Numbers with so many bits.
    Bits(u32),
    ClassObject(u32),
    Category(u32),
}

impl Raw {
    /// Its number, for kinds of keys that have small numbers of their own.
    #[inline]
    pub fn small(self) -> Option<usize> {
        match self {
            Raw::Number(number) => usize::try_from(number).ok(),
            Raw::Bits(bits) => Some(bits as usize),
            Raw::Category(category) => Some(category as usize),
            _ => None,
        }
    }

    /// The least and the largest number with this key, if it stands for numbers.
    pub fn range(self) -> Option<(u64, u64)> {
        match self {
            Raw::Number(number) => Some((number, number)),
            Raw::Bits(0) => Some((0, 0)),
            Raw::Bits(bits) => Some((1 << (bits - 1), u64::MAX >> (u64::BITS - bits))),
            _ => None,
        }
    }
}

/// The property that the objects of a group share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub enum Key {
    /// Unknown.
    Unknown,
    /// A number.
    Number(u64),
    /// A text; ranges of numbers as in a query.
    Text(String),
}

impl Keys<'_> {
    /// The key of a group.
    pub fn key(&self, group: u32) -> Key {
        let name = |name: NameId| self.heap.name(name);
        Key::Text(match self.raw.keys.get(group as usize).copied().unwrap_or(Raw::Unknown) {
            Raw::Unknown => return Key::Unknown,
            Raw::Number(number) => return Key::Number(number),
            Raw::Name(text) => name(text).to_owned(),
            Raw::ClassObject(object) => {
                match self.heap.class_object(object).and_then(|class| class.name) {
                    Some(text) => name(text).to_owned(),
                    None => format!("#<Class:{:#x}>", self.heap.addresses().of(object)),
                }
            }
            Raw::Prefix(text, length) => {
                name(text).get(..length as usize).unwrap_or_default().to_owned()
            }
            Raw::Type(kind) => kind.name().to_owned(),
            Raw::Gem(file) => guess_gem(name(file)).to_owned(),
            Raw::Site(file, line) => place(name(file), line),
            raw @ Raw::Bits(_) => {
                let (first, last) = raw.range().unwrap_or_default();
                format!("{first}..{last}")
            }
            Raw::Category(category) => match self.heap.categories().get(category as usize) {
                Some(category) => category.name.clone(),
                None => return Key::Unknown,
            },
        })
    }

    /// The filter that chooses the objects of a group.
    pub fn filter(&self, group: u32) -> Option<String> {
        let field = self.by.field()?;
        Some(match self.key(group) {
            Key::Unknown => format!("{field} is none"),
            Key::Number(number) => format!("{field} = {number}"),
            Key::Text(range) if matches!(self.by, By::Size | By::Length) => {
                format!("{field} in {range}")
            }
            Key::Text(text) => format!("{field} = {}", quoted(&text)),
        })
    }
}

/// A text as in a query.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            char if char.is_control() => quoted.push_str(&format!("\\u{{{:x}}}", u32::from(char))),
            char => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
}

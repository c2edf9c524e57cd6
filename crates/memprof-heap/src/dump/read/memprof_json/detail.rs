//! The facts of an object.

use std::borrow::Cow;

use super::edges;
use crate::dump::memprof_json::{is_taken, kind_of};
use crate::dump::read::facts::{self, name};
use crate::dump::read::json::{self, Object as Json};
use crate::dump::read::{Fallible, Stop, Target};
use crate::dump::record::{
    CodeRange, Content, Detail, Field, Flags, Kind, Object, Tables, Text, Value,
};
use crate::dump::text::from_base64;

pub(super) fn object(json: &Json<'_>, target: &mut Target<'_>) -> Fallible<()> {
    let tables = &mut target.tables;
    let kind = match json.number("code")? {
        Some(code) => Kind(code),
        None => kind_of(&json.text("type")?.unwrap_or_default()).ok_or(Stop::Broken)?,
    };
    let contents = Contents::of(json)?;
    let fields = fields(json, tables, kind)?;
    let collector = match json.get("flags") {
        Some(flags) => Json::new(flags)?,
        None => Json::new("{}")?,
    };
    let object = Object {
        address: json.address("_id").ok_or(Stop::Broken)?,
        kind,
        class: json.address("class").unwrap_or(0),
        class_name: name(json, tables, "class_name")?,
        slot_size: json.number("slot_size")?.unwrap_or(0),
        memsize: json.number("memsize")?.unwrap_or(0),
        shape_id: json.number("shape_id")?,
        flags: flags(json, &collector),
        age: collector.number("age")?,
        object_id: collector.number("object_id")?,
        detail: detail(json, tables, kind, &contents)?,
        fields: &fields,
        allocation: facts::allocation(json, tables)?,
    };
    target.object(&object)?;
    edges::edges(json, kind, target)
}

fn fields(json: &Json<'_>, tables: &mut Tables, kind: Kind) -> Fallible<Vec<Field>> {
    let mut fields = Vec::new();
    for (key, value) in json.pairs() {
        if !is_taken(kind, key) {
            fields.push(Field {
                name: tables.intern(key),
                value: json::value(tables, value.get())?,
            });
        }
    }
    Ok(fields)
}

fn flags(json: &Json<'_>, collector: &Json<'_>) -> Flags {
    let mut flags = Flags::default();
    let own = [
        (Flags::EMBEDDED, "embedded"),
        (Flags::FROZEN, "frozen"),
        (Flags::FSTRING, "fstring"),
        (Flags::CHILLED, "chilled"),
        (Flags::BROKEN, "broken"),
        (Flags::TOO_COMPLEX, "too_complex"),
        (Flags::SINGLETON, "singleton"),
    ];
    for (flag, key) in own {
        flags.set(flag, json.is_true(key));
    }
    flags.set(Flags::SHARED, json.has("shared"));
    facts::collector(collector, &mut flags);
    flags
}

/// What is written of the object's own text.
enum Contents<'a> {
    Text(Cow<'a, str>),
    Bytes(Vec<u8>),
    Mark(u64),
    Absent,
}

impl<'a> Contents<'a> {
    fn of(json: &Json<'a>) -> Fallible<Contents<'a>> {
        if let Some(bytes) = json.text("bytes")? {
            return Ok(Contents::Bytes(from_base64(&bytes).ok_or(Stop::Broken)?));
        }
        if let Some(mark) = json.address("hash") {
            return Ok(Contents::Mark(mark));
        }
        match json.get("data") {
            Some(data) if data.starts_with('"') => Ok(Contents::Text(json::text(data)?)),
            _ => Ok(Contents::Absent),
        }
    }

    fn content(&self, truncated: bool) -> Content<'_> {
        let bytes = match self {
            Contents::Text(text) => text.as_bytes(),
            Contents::Bytes(bytes) => bytes,
            Contents::Mark(mark) => return Content::Mark(*mark),
            Contents::Absent => return Content::Absent,
        };
        if truncated {
            Content::Truncated(bytes)
        } else {
            Content::Full(bytes)
        }
    }
}

fn text<'a>(
    json: &Json<'_>,
    tables: &mut Tables,
    contents: &'a Contents<'_>,
) -> Fallible<Text<'a>> {
    Ok(Text {
        length: json.number("length")?,
        capacity: json.number("capacity")?,
        encoding: tables.intern(&json.text("encoding")?.unwrap_or_default()),
        coderange: match json.get("coderange") {
            Some("\"7bit\"") => CodeRange::SevenBit,
            Some("\"valid\"") => CodeRange::Valid,
            Some("\"broken\"") => CodeRange::Broken,
            _ => CodeRange::Unknown,
        },
        content: contents.content(json.is_true("truncated")),
    })
}

fn detail<'a>(
    json: &Json<'_>,
    tables: &mut Tables,
    kind: Kind,
    contents: &'a Contents<'_>,
) -> Fallible<Detail<'a>> {
    Ok(match kind {
        Kind::STRING => Detail::String(text(json, tables, contents)?),
        Kind::SYMBOL => Detail::Symbol(text(json, tables, contents)?),
        Kind::REGEXP => Detail::Regexp(text(json, tables, contents)?),
        Kind::BIGNUM => Detail::Bignum(text(json, tables, contents)?),
        Kind::FLOAT => match json.get("data") {
            Some(data) => match json::value(tables, data)? {
                Value::Float(number) => Detail::Float(number),
                Value::Int(number) => Detail::Float(number as f64),
                _ => return Err(Stop::Broken),
            },
            None => Detail::None,
        },
        Kind::ARRAY | Kind::STRUCT => match json.number("length")? {
            Some(length) => Detail::Length(length),
            None => Detail::None,
        },
        Kind::HASH => match json.number("length")? {
            Some(size) => Detail::Hash {
                size,
                default: json::value(tables, json.get("default").unwrap_or("null"))?,
                default_proc: json.is_true("default_proc"),
            },
            None => Detail::None,
        },
        Kind::OBJECT => match json.number("ivar_count")? {
            Some(ivars) => Detail::Object { ivars },
            None => Detail::None,
        },
        Kind::CLASS | Kind::MODULE | Kind::ICLASS if json.has("super") => Detail::Class {
            name: name(json, tables, "name")?,
            real_name: name(json, tables, "real_class_name")?,
            superclass: json.address("super").unwrap_or(0),
            super_name: name(json, tables, "super_name")?,
            variations: json.number("variation_count")?,
        },
        Kind::DATA => Detail::Data {
            type_name: name(json, tables, "struct")?,
        },
        Kind::FILE => Detail::File {
            fd: json.number("fileno")?,
        },
        Kind::IMEMO => match name(json, tables, "imemo_type")? {
            Some(imemo) => Detail::Imemo {
                name: imemo,
                mid: name(json, tables, "mid")?,
                called_id: name(json, tables, "called_id")?,
                receiver_class: json.address("receiver_class").unwrap_or(0),
            },
            None => Detail::None,
        },
        _ => Detail::None,
    })
}

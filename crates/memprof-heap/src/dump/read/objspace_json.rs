//! Reading the lines of `ObjectSpace.dump_all`.

use super::facts::{self, name};
use super::json::{self, Object as Json};
use super::lines::Line;
use super::{Fallible, Stop, Target};
use crate::dump::objspace_json::kind_of;
use crate::dump::record::{
    CodeRange, Content, Detail, Edge, Flags, Kind, Label, NoteKind, Object, Shape, Tables, Text,
    Value,
};

/// Size of a slot where lines do not say it: before Ruby 3.2 all had the same.
const SLOT: u32 = 40;

/// What these dumps do not say.
pub(super) fn begin(target: &mut Target<'_>) -> Fallible<()> {
    target.note(NoteKind::Header, "{\"source\":\"objspace\"}")
}

/// A line.
pub(super) fn line(line: &[u8], target: &mut Target<'_>) -> Fallible<Line> {
    let line = std::str::from_utf8(line).map_err(|_| Stop::Broken)?;
    let json = Json::new(line)?;
    match json.text("type")?.as_deref() {
        Some("ROOT") => roots(&json, target)?,
        Some("SHAPE") => shape(&json, target)?,
        Some(kind) => object(&json, kind, target)?,
        None => return Err(Stop::Broken),
    }
    Ok(Line::Record)
}

/// Calls `each` with every reference.
fn references(
    json: &Json<'_>,
    mut each: impl FnMut(Edge<'static>) -> Fallible<()>,
) -> Fallible<()> {
    let Some(list) = json.get("references") else {
        return Ok(());
    };
    json::each_element(list, |address| {
        let address = json::address(address.get()).ok_or(Stop::Broken)?;
        each(Edge {
            label: Label::None,
            value: Value::Address(address),
            preview: None,
        })
    })
}

fn roots(json: &Json<'_>, target: &mut Target<'_>) -> Fallible<()> {
    let category = json.text("root")?.ok_or(Stop::Broken)?;
    let mut edges = Vec::new();
    references(json, |edge| {
        edges.push(edge);
        Ok(())
    })?;
    target.roots(&category, &mut edges)
}

fn shape(json: &Json<'_>, target: &mut Target<'_>) -> Fallible<()> {
    let shape_type = json.text("shape_type")?.unwrap_or_default();
    let shape_type = target.tables.intern(&shape_type);
    let shape = Shape {
        address: json.address("address").ok_or(Stop::Broken)?,
        id: json.number("id")?.ok_or(Stop::Broken)?,
        parent_id: json.number("parent_id")?,
        depth: json.number("depth")?.unwrap_or(0),
        shape_type,
        edge_name: name(json, &mut target.tables, "edge_name")?,
        edges: json.number("edges")?.unwrap_or(0),
        memsize: json.number("memsize")?.unwrap_or(0),
    };
    target.shape(&shape)
}

fn object(json: &Json<'_>, kind: &str, target: &mut Target<'_>) -> Fallible<()> {
    let kind = kind_of(kind);
    let tables = &mut target.tables;
    let value = json.text("value")?;
    let collector = Json::new(json.get("flags").unwrap_or("{}"))?;
    let object = Object {
        address: json.address("address").ok_or(Stop::Broken)?,
        kind,
        class: json.address("class").unwrap_or(0),
        class_name: None,
        slot_size: json.number("slot_size")?.unwrap_or(SLOT),
        memsize: json.number("memsize")?.unwrap_or(0),
        shape_id: json.number("shape_id")?,
        flags: flags(json, &collector),
        age: collector.number("age")?,
        object_id: collector.number("object_id")?,
        detail: detail(json, tables, kind, value.as_deref())?,
        fields: &[],
        allocation: facts::allocation(json, tables)?,
    };
    target.object(&object)?;
    let mut edges = Vec::new();
    references(json, |edge| {
        edges.push(edge);
        target.passed(&mut edges)
    })?;
    if edges.is_empty() {
        return Ok(());
    }
    target.edges(&mut edges)
}

fn flags(json: &Json<'_>, collector: &Json<'_>) -> Flags {
    let mut flags = Flags::default();
    let own = [
        (Flags::FROZEN, "frozen"),
        (Flags::EMBEDDED, "embedded"),
        (Flags::SHARED, "shared"),
        (Flags::FSTRING, "fstring"),
        (Flags::CHILLED, "chilled"),
        (Flags::BROKEN, "broken"),
        (Flags::SINGLETON, "singleton"),
        (Flags::TOO_COMPLEX, "too_complex_shape"),
    ];
    for (flag, key) in own {
        flags.set(flag, json.is_true(key));
    }
    facts::collector(collector, &mut flags);
    flags
}

fn text<'a>(json: &Json<'_>, tables: &mut Tables, value: Option<&'a str>) -> Fallible<Text<'a>> {
    let coderange = match json.get("coderange") {
        Some("\"7bit\"") => CodeRange::SevenBit,
        Some("\"valid\"") => CodeRange::Valid,
        Some("\"broken\"") => CodeRange::Broken,
        Some(_) => CodeRange::Unknown,
        None if json.is_true("broken") => CodeRange::Broken,
        None if value.is_some() => CodeRange::SevenBit,
        None => CodeRange::Unknown,
    };
    let length = json.number("bytesize")?;
    Ok(Text {
        length,
        capacity: json.number("capacity")?,
        encoding: tables.intern(&json.text("encoding")?.unwrap_or_default()),
        coderange,
        content: match value {
            Some(value) if length.is_some_and(|length| length > value.len() as u64) => {
                Content::Truncated(value.as_bytes())
            }
            Some(value) => Content::Full(value.as_bytes()),
            // Since Ruby 3.2 an empty value is left out.
            None if length == Some(0) => Content::Full(b""),
            None => Content::Absent,
        },
    })
}

fn detail<'a>(
    json: &Json<'_>,
    tables: &mut Tables,
    kind: Kind,
    value: Option<&'a str>,
) -> Fallible<Detail<'a>> {
    Ok(match kind {
        Kind::STRING => Detail::String(text(json, tables, value)?),
        Kind::SYMBOL => Detail::Symbol(text(json, tables, value)?),
        Kind::FLOAT => {
            let number = value.and_then(|value| value.parse().ok());
            number.map_or(Detail::None, Detail::Float)
        }
        Kind::ARRAY => Detail::Length(json.number("length")?.ok_or(Stop::Broken)?),
        Kind::HASH => {
            let default = json.address("default");
            Detail::Hash {
                size: json.number("size")?.ok_or(Stop::Broken)?,
                default: default.map_or(Value::Nil, Value::Address),
                default_proc: default.is_some(),
            }
        }
        Kind::OBJECT => Detail::Object {
            ivars: json.number("ivars")?.ok_or(Stop::Broken)?,
        },
        Kind::CLASS | Kind::MODULE | Kind::ICLASS => Detail::Class {
            name: name(json, tables, "name")?,
            real_name: name(json, tables, "real_class_name")?,
            superclass: json.address("superclass").unwrap_or(0),
            super_name: None,
            variations: json.number("variation_count")?,
        },
        Kind::DATA => Detail::Data {
            type_name: name(json, tables, "struct")?,
        },
        Kind::FILE => Detail::File {
            fd: json.number("fd")?,
        },
        Kind::IMEMO => Detail::Imemo {
            name: tables.intern(&json.text("imemo_type")?.ok_or(Stop::Broken)?),
            mid: name(json, tables, "mid")?,
            called_id: name(json, tables, "called_id")?,
            receiver_class: json.address("receiver_class").unwrap_or(0),
        },
        _ => Detail::None,
    })
}

//! The facts of a line.

use super::super::chunks::Chunks;
use super::super::kinds;
use super::super::record::{
    CodeRange, Content, Counts, Detail, Flags, Kind, Object, Shape, Tables, Text, Value,
};
use super::super::text::{self, address_field as address, name_field as name};
use super::edge_writer::value;

/// Whether a fact of the object cannot have this key, because it means something else in lines of this type.
pub(in super::super) fn is_taken(kind: Kind, key: &str) -> bool {
    match key {
        "name" => matches!(kind, Kind::CLASS | Kind::MODULE | Kind::ICLASS),
        "_id" | "age" | "broken" | "bytes" | "called_id" | "capacity" | "chilled" | "class"
        | "class_name" | "code" | "coderange" | "data" | "default" | "default_proc"
        | "embedded" | "encoding" | "file" | "fileno" | "flags" | "frozen" | "fstring"
        | "generation" | "hash" | "imemo_type" | "ivar_count" | "ivars" | "labels" | "length"
        | "line" | "locals" | "members" | "memsize" | "method" | "methods" | "mid" | "negative"
        | "object_id" | "real_class_name" | "receiver_class" | "references" | "shape_id"
        | "shared" | "singleton" | "slot_size" | "struct" | "super" | "super_name" | "time"
        | "too_complex" | "truncated" | "type" | "values" | "variation_count" => true,
        _ => false,
    }
}

/// Parts of lines, by the values that they are built from.
#[derive(Default)]
pub(super) struct Parts {
    heads: Chunks,
    tails: Chunks,
    /// Keys of facts that only some types have.
    keys: Chunks,
    encodings: Chunks,
}

/// The line up to the object's contents.
#[inline]
pub(super) fn head(out: &mut Vec<u8>, parts: &mut Parts, tables: &Tables, object: &Object<'_>) {
    out.extend_from_slice(b"{\"_id\":");
    text::address(out, object.address);
    if let Some(allocation) = object.allocation {
        if let Some(site) = tables.site(allocation.site) {
            name(out, tables, ",\"file\":", Some(site.file));
            if site.line != 0 {
                text::field(out, ",\"line\":", site.line);
            }
            name(out, tables, ",\"method\":", site.method);
        }
        if let Some(caller) = allocation.caller.and_then(|caller| tables.site(caller)) {
            name(out, tables, ",\"caller_file\":", Some(caller.file));
            text::field(out, ",\"caller_line\":", caller.line);
            name(out, tables, ",\"caller_method\":", caller.method);
        }
        text::field(out, ",\"generation\":", allocation.generation);
        if allocation.time != 0 {
            text::field(out, ",\"time\":", allocation.time);
        }
    }
    let class_name = object.class_name.map_or(0, |name| u64::from(name.0) + 1);
    let key = [object.class, class_name, object.kind.0.into(), 0];
    out.extend_from_slice(parts.heads.get(key, |out| {
        out.extend_from_slice(b",\"type\":\"");
        out.extend_from_slice(kinds::lower(object.kind).as_bytes());
        out.push(b'"');
        address(out, ",\"class\":", object.class);
        name(out, tables, ",\"class_name\":", object.class_name);
    }));
    detail(out, &mut parts.encodings, tables, object);
}

fn detail(out: &mut Vec<u8>, encodings: &mut Chunks, tables: &Tables, object: &Object<'_>) {
    match object.detail {
        Detail::None => {}
        Detail::String(ref string) | Detail::Symbol(ref string) | Detail::Regexp(ref string) => {
            content(out, encodings, tables, string);
        }
        Detail::Bignum(ref digits) => {
            if let Content::Full(digits) = digits.content {
                let negative = digits.first() == Some(&b'-');
                out.extend_from_slice(b",\"negative\":");
                value(out, tables, if negative { Value::True } else { Value::False });
            }
            content(out, encodings, tables, digits);
        }
        Detail::Float(number) => {
            out.extend_from_slice(b",\"data\":");
            text::float(out, number);
        }
        Detail::Length(length) => text::field(out, ",\"length\":", length),
        Detail::Hash { size, default, default_proc } => {
            text::field(out, ",\"length\":", size);
            out.extend_from_slice(b",\"default\":");
            value(out, tables, default);
            if default_proc {
                out.extend_from_slice(b",\"default_proc\":true");
            }
        }
        Detail::Object { ivars } => text::field(out, ",\"ivar_count\":", ivars),
        Detail::Class { .. } => class(out, tables, object),
        Detail::Data { type_name } => name(out, tables, ",\"struct\":", type_name),
        Detail::File { fd } => {
            if let Some(fd) = fd {
                text::field(out, ",\"fileno\":", fd);
            }
        }
        Detail::Imemo { name: imemo, mid, called_id, receiver_class } => {
            name(out, tables, ",\"imemo_type\":", Some(imemo));
            name(out, tables, ",\"mid\":", mid);
            name(out, tables, ",\"called_id\":", called_id);
            address(out, ",\"receiver_class\":", receiver_class);
        }
    }
}

fn class(out: &mut Vec<u8>, tables: &Tables, object: &Object<'_>) {
    let Detail::Class { name: own_name, real_name, superclass, super_name, variations } =
        object.detail
    else {
        return;
    };
    match own_name {
        Some(_) => name(out, tables, ",\"name\":", own_name),
        None => out.extend_from_slice(b",\"name\":null"),
    }
    name(out, tables, ",\"real_class_name\":", real_name);
    match superclass {
        0 => out.extend_from_slice(b",\"super\":false"),
        _ => address(out, ",\"super\":", superclass),
    }
    name(out, tables, ",\"super_name\":", super_name);
    if object.flags.has(Flags::SINGLETON) {
        out.extend_from_slice(b",\"singleton\":true");
    }
    if let Some(count) = variations {
        text::field(out, ",\"variation_count\":", count);
    }
}

fn content(out: &mut Vec<u8>, encodings: &mut Chunks, tables: &Tables, string: &Text<'_>) {
    if let Some(length) = string.length {
        text::field(out, ",\"length\":", length);
    }
    bytes_field(out, ",\"data\":", &string.content);
    if let Some(capacity) = string.capacity {
        text::field(out, ",\"capacity\":", capacity);
    }
    let key = [string.encoding.0.into(), string.coderange as u64 + 1, 0, 0];
    out.extend_from_slice(encodings.get(key, |out| encoding(out, tables, string)));
}

fn encoding(out: &mut Vec<u8>, tables: &Tables, string: &Text<'_>) {
    if !tables.name(string.encoding).is_empty() {
        name(out, tables, ",\"encoding\":", Some(string.encoding));
    }
    let range = match string.coderange {
        CodeRange::Unknown => return,
        CodeRange::SevenBit => ",\"coderange\":\"7bit\"",
        CodeRange::Valid => ",\"coderange\":\"valid\"",
        CodeRange::Broken => ",\"coderange\":\"broken\"",
    };
    out.extend_from_slice(range.as_bytes());
}

/// A string's bytes after `key`, or a mark in their place.
pub(in super::super) fn bytes_field(out: &mut Vec<u8>, key: &str, content: &Content<'_>) {
    let (bytes, truncated) = match *content {
        Content::Full(bytes) => (bytes, false),
        Content::Truncated(bytes) => (bytes, true),
        Content::Mark(mark) => {
            out.extend_from_slice(b",\"hash\":");
            return text::address(out, mark);
        }
        Content::Absent => return,
    };
    out.extend_from_slice(key.as_bytes());
    out.push(b'"');
    let whole = text::escape_bytes(out, bytes);
    out.push(b'"');
    if !whole {
        out.extend_from_slice(b",\"bytes\":\"");
        text::base64(out, bytes);
        out.push(b'"');
    }
    if truncated {
        out.extend_from_slice(b",\"truncated\":true");
    }
}

/// The facts after the object's contents.
#[inline]
pub(super) fn tail(out: &mut Vec<u8>, parts: &mut Parts, tables: &Tables, object: &Object<'_>) {
    for field in object.fields {
        let key = [field.name.0.into(), u64::from(object.kind.0) + 1, 0, 0];
        out.extend_from_slice(parts.keys.get(key, |out| {
            let own = is_taken(object.kind, tables.name(field.name));
            out.extend_from_slice(if own { b",\"own_" } else { b",\"" });
            text::name(out, tables, field.name);
            out.extend_from_slice(b"\":");
        }));
        value(out, tables, field.value);
    }
    if object.object_id.is_some() {
        return sizes_and_flags(out, object);
    }
    let number = |number: Option<u32>| number.map_or(0, |number| u64::from(number) + 1);
    let key = [
        object.memsize,
        u64::from(object.slot_size) << 32 | u64::from(object.flags.0),
        number(object.shape_id),
        number(object.age.map(u32::from)),
    ];
    out.extend_from_slice(parts.tails.get(key, |out| sizes_and_flags(out, object)));
}

fn sizes_and_flags(out: &mut Vec<u8>, object: &Object<'_>) {
    text::field(out, ",\"memsize\":", object.memsize);
    text::field(out, ",\"slot_size\":", object.slot_size);
    if let Some(id) = object.shape_id {
        text::field(out, ",\"shape_id\":", id);
    }
    let own = [
        (Flags::EMBEDDED, ",\"embedded\":true"),
        (Flags::FROZEN, ",\"frozen\":true"),
        (Flags::FSTRING, ",\"fstring\":true"),
        (Flags::CHILLED, ",\"chilled\":true"),
        (Flags::BROKEN, ",\"broken\":true"),
        (Flags::TOO_COMPLEX, ",\"too_complex\":true"),
    ];
    for (flag, text) in own {
        if object.flags.has(flag) {
            out.extend_from_slice(text.as_bytes());
        }
    }
    collector(out, object);
}

/// The GC's flags.
fn collector(out: &mut Vec<u8>, object: &Object<'_>) {
    const OPENING: &[u8] = b",\"flags\":{";
    out.extend_from_slice(OPENING);
    let start = out.len();
    let flag = |out: &mut Vec<u8>, flag: Flags, text: &str| {
        if object.flags.has(flag) {
            out.extend_from_slice(text.as_bytes());
        }
    };
    flag(out, Flags::WB_PROTECTED, "\"wb_protected\":true,");
    if let Some(age) = object.age {
        text::field(out, "\"age\":", age);
        out.push(b',');
    }
    flag(out, Flags::OLD, "\"old\":true,");
    flag(out, Flags::UNCOLLECTIBLE, "\"uncollectible\":true,");
    flag(out, Flags::MARKING, "\"marking\":true,");
    flag(out, Flags::MARKED, "\"marked\":true,");
    flag(out, Flags::PINNED, "\"pinned\":true,");
    flag(out, Flags::REMEMBERED, "\"remembered\":true,");
    if let Some(id) = object.object_id {
        text::field(out, "\"object_id\":", id);
        out.push(b',');
    }
    flag(out, Flags::SHAREABLE, "\"shareable\":true,");
    flag(out, Flags::FINALIZE, "\"finalize\":true,");
    if out.len() == start {
        out.truncate(start - OPENING.len());
    } else if let Some(last) = out.last_mut() {
        *last = b'}';
    }
}

/// The line of a shape.
pub(super) fn shape(out: &mut Vec<u8>, tables: &Tables, shape: &Shape) {
    text::field(out, "{\"_id\":\"shape:", shape.id);
    text::field(out, "\",\"type\":\"shape\",\"id\":", shape.id);
    out.extend_from_slice(b",\"address\":");
    text::address(out, shape.address);
    if let Some(parent) = shape.parent_id {
        text::field(out, ",\"parent_id\":", parent);
    }
    text::field(out, ",\"depth\":", shape.depth);
    name(out, tables, ",\"shape_type\":", Some(shape.shape_type));
    name(out, tables, ",\"edge_name\":", shape.edge_name);
    text::field(out, ",\"edges\":", shape.edges);
    text::field(out, ",\"memsize\":", shape.memsize);
    out.extend_from_slice(b"}\n");
}

/// The last line.
pub(super) fn footer(out: &mut Vec<u8>, counts: &Counts) {
    let counts = [
        (",\"objects\":", counts.objects),
        (",\"references\":", counts.references),
        (",\"memsize\":", counts.memsize),
        (",\"roots\":", counts.roots),
        (",\"shapes\":", counts.shapes),
    ];
    out.extend_from_slice(b"{\"_id\":\"footer\",\"type\":\"footer\"");
    for (key, count) in counts {
        text::field(out, key, count);
    }
    out.extend_from_slice(b"}\n");
}

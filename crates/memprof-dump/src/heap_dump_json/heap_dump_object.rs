//! The facts of an object's line.

use super::super::kinds;
use super::super::memprof_json::{bytes_field, value};
use super::super::record::{Content, Detail, Kind, Object, Tables, Text, Value};
use super::super::text::{self, address_field as address, name_field as name};

/// Keys of the format itself.
const KEYS: [&str; 31] = [
    "id",
    "bt",
    "bytes",
    "caller_file",
    "caller_line",
    "caller_method",
    "class",
    "class_name",
    "consts",
    "default",
    "encoding",
    "fd",
    "file",
    "generation",
    "generic_ivars",
    "hash",
    "imemo_type",
    "ivs",
    "length",
    "line",
    "members",
    "memsize",
    "method",
    "methods",
    "refs",
    "size",
    "super",
    "truncated",
    "type_name",
    "val",
    "vars",
];

/// The line up to the object's contents.
pub(super) fn head(out: &mut Vec<u8>, tables: &Tables, object: &Object<'_>) {
    out.extend_from_slice(b",{\"id\":");
    text::address(out, object.address);
    out.extend_from_slice(b",\"bt\":\"T_");
    out.extend_from_slice(kinds::upper(object.kind).as_bytes());
    out.push(b'"');
    address(out, ",\"class\":", object.class);
    name(out, tables, ",\"class_name\":", object.class_name);
    if let Some(allocation) = object.allocation {
        if let Some(site) = tables.site(allocation.site) {
            name(out, tables, ",\"file\":", Some(site.file));
            text::field(out, ",\"line\":", site.line);
            name(out, tables, ",\"method\":", site.method);
        }
        if let Some(caller) = allocation.caller.and_then(|caller| tables.site(caller)) {
            name(out, tables, ",\"caller_file\":", Some(caller.file));
            text::field(out, ",\"caller_line\":", caller.line);
            name(out, tables, ",\"caller_method\":", caller.method);
        }
        text::field(out, ",\"generation\":", allocation.generation);
    }
    text::field(out, ",\"memsize\":", object.memsize);
    detail(out, tables, object);
    for field in object.fields {
        let key = tables.name(field.name);
        let taken = KEYS.contains(&key) || (key == "name" && is_class(object.kind));
        out.extend_from_slice(if taken { b",\"own_" } else { b",\"" });
        text::escape(out, key);
        out.extend_from_slice(b"\":");
        value(out, tables, field.value);
    }
}

fn is_class(kind: Kind) -> bool {
    matches!(kind, Kind::CLASS | Kind::MODULE | Kind::ICLASS)
}

fn detail(out: &mut Vec<u8>, tables: &Tables, object: &Object<'_>) {
    match object.detail {
        Detail::String(ref text) | Detail::Regexp(ref text) => {
            let encoding = tables.name(text.encoding);
            if !encoding.is_empty() {
                text::string_field(out, ",\"encoding\":", encoding);
            }
            content(out, text);
        }
        Detail::Symbol(ref text) | Detail::Bignum(ref text) => content(out, text),
        Detail::Float(number) => {
            out.extend_from_slice(b",\"val\":");
            text::float(out, number);
        }
        Detail::Hash { default, .. } if default != Value::Nil => {
            out.extend_from_slice(b",\"default\":");
            value(out, tables, default);
        }
        Detail::Class { name: own_name, superclass, .. } => {
            name(out, tables, ",\"name\":", own_name);
            address(out, ",\"super\":", superclass);
        }
        Detail::Data { type_name } => {
            name(out, tables, ",\"type_name\":", type_name);
            let size = object.memsize.saturating_sub(object.slot_size.into());
            text::field(out, ",\"size\":", size);
        }
        Detail::File { fd: Some(fd) } => text::field(out, ",\"fd\":", fd),
        Detail::Imemo { name: imemo, .. } => {
            name(out, tables, ",\"imemo_type\":", Some(imemo));
        }
        _ => {}
    }
}

fn content(out: &mut Vec<u8>, string: &Text<'_>) {
    bytes_field(out, ",\"val\":", &string.content);
    if let (Some(length), false) = (string.length, matches!(string.content, Content::Full(_))) {
        text::field(out, ",\"length\":", length);
    }
}

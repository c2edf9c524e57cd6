//! Parts of a line.

use super::super::chunks::Chunks;
use super::super::kinds;
use super::super::record::{
    CodeRange, Content, Detail, Flags, Kind, Object, Shape, Tables, Text, Value,
};
use super::super::text::{self, address_field, name_field};
use super::encodings::{Encoding, Encodings};

/// Appends `key`, which includes its comma, if `condition` holds.
#[inline]
fn fact(out: &mut Vec<u8>, condition: bool, key: &str) {
    if condition {
        out.extend_from_slice(key.as_bytes());
    }
}

/// The fields of every object, after its address.
#[inline]
pub(super) fn head(out: &mut Vec<u8>, heads: &mut Chunks, object: &Object<'_>, ruby: (u8, u8)) {
    // Excludes the class: for the many internal objects of the VM, Ruby 3.1 has arbitrary values in its place.
    let key = [
        object.shape_id.map_or(0, |id| u64::from(id) + 1),
        object.slot_size.into(),
        object.kind.0.into(),
        0,
    ];
    out.extend_from_slice(heads.get(key, |out| shape_of(out, object, ruby)));
    class_of(out, object);
}

/// Like [`head`], without cached texts.
pub(super) fn head_of(out: &mut Vec<u8>, object: &Object<'_>, ruby: (u8, u8)) {
    shape_of(out, object, ruby);
    class_of(out, object);
}

fn shape_of(out: &mut Vec<u8>, object: &Object<'_>, ruby: (u8, u8)) {
    out.extend_from_slice(b", \"type\":\"");
    out.extend_from_slice(kinds::upper(object.kind).as_bytes());
    out.push(b'"');
    if ruby >= (3, 2) {
        if let Some(id) = object.shape_id {
            text::field(out, ", \"shape_id\":", id);
        }
        text::field(out, ", \"slot_size\":", object.slot_size);
    }
}

#[inline]
fn class_of(out: &mut Vec<u8>, object: &Object<'_>) {
    address_field(out, ", \"class\":", object.class);
    fact(out, object.flags.has(Flags::FROZEN), ", \"frozen\":true");
}

/// The fields by type.
#[inline]
pub(super) fn detail(
    out: &mut Vec<u8>,
    tables: &Tables,
    encodings: &mut Encodings,
    object: &Object<'_>,
    ruby: (u8, u8),
) {
    let flags = object.flags;
    match object.detail {
        Detail::String(ref string) => {
            string_detail(out, encodings.get(tables, string.encoding), flags, string, ruby);
        }
        Detail::Symbol(ref name) => {
            content(out, encodings.get(tables, name.encoding), flags, name, ruby);
        }
        Detail::Length(length) if object.kind == Kind::ARRAY => {
            text::field(out, ", \"length\":", length);
            let shared = length > 0 && flags.has(Flags::SHARED);
            fact(out, shared, ", \"shared\":true");
            let embedded = flags.has(Flags::EMBEDDED) && (length > 0 || ruby >= (3, 2));
            fact(out, embedded, ", \"embedded\":true");
        }
        Detail::Hash { size, default, default_proc } => {
            text::field(out, ", \"size\":", size);
            if let (Value::Address(address), true) = (default, default_proc) {
                address_field(out, ", \"default\":", address);
            }
        }
        Detail::Object { ivars } => {
            let embedded = flags.has(Flags::EMBEDDED) && ruby >= (3, 3);
            fact(out, embedded, ", \"embedded\":true");
            text::field(out, ", \"ivars\":", ivars);
            let too_complex = flags.has(Flags::TOO_COMPLEX) && ruby >= (3, 2);
            fact(out, too_complex, ", \"too_complex_shape\":true");
        }
        Detail::Class { .. } => class(out, tables, object, ruby),
        Detail::Data { type_name } => name_field(out, tables, ", \"struct\":", type_name),
        Detail::Float(number) => {
            out.extend_from_slice(b", \"value\":\"");
            text::general(out, number);
            out.push(b'"');
        }
        Detail::File { fd: Some(fd) } => text::field(out, ", \"fd\":", fd),
        Detail::Imemo { name, mid, called_id, receiver_class } => {
            name_field(out, tables, ", \"imemo_type\":", Some(name));
            if ruby >= (3, 3) {
                name_field(out, tables, ", \"mid\":", mid);
                name_field(out, tables, ", \"called_id\":", called_id);
                address_field(out, ", \"receiver_class\":", receiver_class);
            }
        }
        _ => {}
    }
}

fn string_detail(
    out: &mut Vec<u8>,
    encoding: &Encoding,
    flags: Flags,
    string: &Text<'_>,
    ruby: (u8, u8),
) {
    let broken = flags.has(Flags::BROKEN) || string.coderange == CodeRange::Broken;
    fact(out, flags.has(Flags::EMBEDDED), ", \"embedded\":true");
    fact(out, broken && ruby < (3, 2), ", \"broken\":true");
    fact(out, flags.has(Flags::FSTRING), ", \"fstring\":true");
    let chilled = flags.has(Flags::CHILLED) && ruby >= (3, 4);
    fact(out, chilled, ", \"chilled\":true");
    if flags.has(Flags::SHARED) {
        fact(out, true, ", \"shared\":true");
    } else {
        content(out, encoding, flags, string, ruby);
    }
    out.extend_from_slice(&encoding.field);
    if ruby >= (3, 2) {
        let range = match string.coderange {
            CodeRange::Unknown => ", \"coderange\":\"unknown\"",
            CodeRange::SevenBit => ", \"coderange\":\"7bit\"",
            CodeRange::Valid => ", \"coderange\":\"valid\"",
            CodeRange::Broken => ", \"coderange\":\"broken\"",
        };
        out.extend_from_slice(range.as_bytes());
        let broken = string.coderange == CodeRange::Broken;
        fact(out, broken, ", \"broken\":true");
    }
}

fn content(
    out: &mut Vec<u8>,
    encoding: &Encoding,
    flags: Flags,
    string: &Text<'_>,
    ruby: (u8, u8),
) {
    if let Some(length) = string.length {
        text::field(out, ", \"bytesize\":", length);
    }
    if let Some(capacity) = string.capacity {
        let has_capacity = !flags.has(Flags::EMBEDDED) && string.length != Some(capacity);
        if has_capacity {
            text::field(out, ", \"capacity\":", capacity);
        }
    }
    let (Content::Full(bytes) | Content::Truncated(bytes)) = string.content else {
        return;
    };
    // Ruby 3.1 scans the bytes if it has not done so yet; later versions omit empty values.
    let seven_bit = match string.coderange {
        CodeRange::SevenBit => true,
        CodeRange::Unknown => bytes.is_ascii(),
        CodeRange::Valid | CodeRange::Broken => false,
    };
    let empty = bytes.is_empty() && ruby >= (3, 2);
    if seven_bit && !empty && encoding.ascii {
        out.extend_from_slice(b", \"value\":\"");
        text::escape_bytes(out, bytes);
        out.push(b'"');
    }
}

fn class(out: &mut Vec<u8>, tables: &Tables, object: &Object<'_>, ruby: (u8, u8)) {
    let Detail::Class { name, real_name, superclass, variations, .. } = object.detail else {
        return;
    };
    if let (Some(count), Kind::CLASS, true) = (variations, object.kind, ruby >= (3, 2)) {
        text::field(out, ", \"variation_count\":", count);
    }
    address_field(out, ", \"superclass\":", superclass);
    if object.kind == Kind::ICLASS || object.class == 0 {
        return;
    }
    if name.is_some() {
        name_field(out, tables, ", \"name\":", name);
    } else {
        name_field(out, tables, ", \"real_class_name\":", real_name);
    }
    let singleton = object.flags.has(Flags::SINGLETON);
    fact(out, singleton, ", \"singleton\":true");
}

/// The text after the references, without the last brace.
#[inline]
pub(super) fn tail(
    out: &mut Vec<u8>,
    collectors: &mut Chunks,
    tables: &Tables,
    object: &Object<'_>,
    ruby: (u8, u8),
) {
    if let Some(allocation) = object.allocation {
        if let Some(site) = tables.site(allocation.site) {
            let file = tables.name(site.file);
            if !file.is_empty() {
                text::string_field(out, ", \"file\":", file);
            }
            if site.line != 0 {
                text::field(out, ", \"line\":", site.line);
            }
            name_field(out, tables, ", \"method\":", site.method);
        }
        text::field(out, ", \"generation\":", allocation.generation);
    }
    memsize(out, object.memsize);
    // With an object's own number, the text cannot be cached.
    if object.object_id.is_some() {
        return collector(out, object, ruby);
    }
    let age = object.age.map_or(0, |age| u64::from(age) + 1);
    let key = [object.flags.0.into(), age, 0, 0];
    out.extend_from_slice(collectors.get(key, |out| collector(out, object, ruby)));
}

#[inline]
pub(super) fn memsize(out: &mut Vec<u8>, memsize: u64) {
    if memsize > 0 {
        text::field(out, ", \"memsize\":", memsize);
    }
}

/// The GC's flags.
pub(super) fn collector(out: &mut Vec<u8>, object: &Object<'_>, ruby: (u8, u8)) {
    let start = out.len();
    let flag = |out: &mut Vec<u8>, flag: Flags, key: &str| {
        fact(out, object.flags.has(flag), key);
    };
    flag(out, Flags::WB_PROTECTED, ", \"wb_protected\":true");
    let modern = ruby >= (4, 0);
    if let (Some(age), true) = (object.age, modern) {
        text::field(out, ", \"age\":", age);
    }
    flag(out, Flags::OLD, ", \"old\":true");
    flag(out, Flags::UNCOLLECTIBLE, ", \"uncollectible\":true");
    flag(out, Flags::MARKING, ", \"marking\":true");
    flag(out, Flags::MARKED, ", \"marked\":true");
    flag(out, Flags::PINNED, ", \"pinned\":true");
    if modern {
        flag(out, Flags::REMEMBERED, ", \"remembered\":true");
        if let Some(id) = object.object_id {
            text::field(out, ", \"object_id\":", id);
        }
        flag(out, Flags::SHAREABLE, ", \"shareable\":true");
    }
    if out.len() > start {
        // Move the comma and the space of the first flag before the key of them all.
        out.splice(start..start + 2, *b", \"flags\":{");
        out.push(b'}');
    }
}

/// The line of a shape.
pub(super) fn shape(out: &mut Vec<u8>, tables: &Tables, shape: &Shape) {
    out.extend_from_slice(b"{\"address\":");
    text::address(out, shape.address);
    text::field(out, ", \"type\":\"SHAPE\", \"id\":", shape.id);
    if let Some(parent) = shape.parent_id {
        text::field(out, ", \"parent_id\":", parent);
    }
    text::field(out, ", \"depth\":", shape.depth);
    let shape_type = tables.name(shape.shape_type);
    if !shape_type.is_empty() {
        text::string_field(out, ", \"shape_type\":", shape_type);
    }
    // objspace has no space here.
    name_field(out, tables, ",\"edge_name\":", shape.edge_name);
    text::field(out, ", \"edges\":", shape.edges);
    text::field(out, ", \"memsize\":", shape.memsize);
    out.extend_from_slice(b"}\n");
}

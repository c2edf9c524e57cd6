//! Removes values from records that the policy does not allow.

use serde_json::Value as Json;

use super::super::record::{
    Allocation, Content, Detail, Field, Kind, NameId, NoteKind, Object, Site, Tables, Text, Value,
};
use super::super::source_name;
use super::super::values::{HIDDEN, Policy, Values};

/// Keys of notes and of structured facts that contain values of variables.
const SECRET: [&str; 4] = ["variables", "locals", "captured", "thread_variables"];

/// Keys of facts that are the program's own numbers: the parts of a Rational or Complex.
const NUMBERS: [&str; 4] = ["numerator", "denominator", "real", "imaginary"];

/// A value of the program: symbols lose their names, numbers and texts are hidden.
pub(super) fn value(values: &Values, tables: &mut Tables, value: Value) -> Value {
    match value {
        Value::Int(_) | Value::Float(_) | Value::Name(_) if !values.previews() => {
            Value::Name(tables.intern(HIDDEN))
        }
        _ => fact(values, tables, value),
    }
}

/// A fact about an object: its numbers and names are not the program's data.
fn fact(values: &Values, tables: &mut Tables, value: Value) -> Value {
    match value {
        Value::Symbol(name) => match values.symbol(tables.name(name)) {
            Some(text) => Value::Symbol(tables.intern(&text)),
            None => value,
        },
        Value::Json(name) => match json(values, tables.name(name)) {
            Some(text) => Value::Json(tables.intern(&text)),
            None => value,
        },
        _ => value,
    }
}

pub(super) fn fields(values: &Values, tables: &mut Tables, object: &Object<'_>) -> Vec<Field> {
    // The path of an open file is not part of the program's code.
    let hidden_path = object.kind == Kind::FILE && !values.previews();
    let reduced = |field: &Field, tables: &mut Tables| Field {
        name: field.name,
        value: match (tables.name(field.name), field.value) {
            (key, Value::Json(json)) if SECRET.contains(&key) => {
                match hidden(values, tables.name(json)) {
                    Some(text) => Value::Json(tables.intern(&text)),
                    None => field.value,
                }
            }
            ("source_file", Value::Name(file)) => Value::Name(self::file(values, tables, file)),
            ("backtrace", Value::Json(lines)) => match backtrace(values, tables.name(lines)) {
                Some(lines) => Value::Json(tables.intern(&lines)),
                None => field.value,
            },
            (key, _) if NUMBERS.contains(&key) => value(values, tables, field.value),
            _ => fact(values, tables, field.value),
        },
    };
    let mut kept = Vec::with_capacity(object.fields.len());
    for known in object.fields {
        if !(hidden_path && tables.name(known.name) == "path") {
            kept.push(reduced(known, tables));
        }
    }
    kept
}

pub(super) fn detail<'a>(values: &Values, tables: &mut Tables, detail: Detail<'a>) -> Detail<'a> {
    match detail {
        Detail::String(string) => Detail::String(text(values, string)),
        Detail::Symbol(string) => Detail::Symbol(text(values, string)),
        Detail::Regexp(string) => Detail::Regexp(text(values, string)),
        Detail::Bignum(string) => Detail::Bignum(text(values, string)),
        Detail::Float(_) if !values.previews() => Detail::None,
        Detail::Hash { size, default, default_proc } => {
            Detail::Hash { size, default: value(values, tables, default), default_proc }
        }
        _ => detail,
    }
}

fn text<'a>(values: &Values, text: Text<'a>) -> Text<'a> {
    let keep = values.policy != Policy::None;
    let content = match (text.content, values.policy) {
        (Content::Full(bytes), _) => values.content(bytes),
        (Content::Truncated(bytes), Policy::Full | Policy::Truncate) => Content::Truncated(bytes),
        // Equal beginnings do not imply equal texts.
        (Content::Truncated(_), _) => Content::Absent,
        (Content::Mark(mark), Policy::Full | Policy::Truncate | Policy::Hash) => {
            Content::Mark(mark)
        }
        (Content::Mark(_) | Content::Absent, _) => Content::Absent,
    };
    Text {
        length: text.length.filter(|_| keep),
        capacity: text.capacity.filter(|_| keep),
        content,
        ..text
    }
}

/// Header fields that only dumps with contents have.
const OF_THE_PROCESS: [&str; 3] = ["hostname", "program", "arguments"];

/// A note; `None` if it may stay unchanged.
pub(super) fn note(values: &Values, kind: NoteKind, text: &str) -> Option<String> {
    match kind {
        NoteKind::Header => header(values, text),
        NoteKind::Footer | NoteKind::Ps => None,
        NoteKind::Lsof => open_file(values, text),
        NoteKind::Frame => frame(values, text),
        NoteKind::Finalizers | NoteKind::Globals => json(values, text),
    }
}

/// The header of the reduced dump, which states how contents were reduced.
fn header(values: &Values, text: &str) -> Option<String> {
    let mut tree: Json = serde_json::from_str(text).ok()?;
    let header = tree.as_object_mut()?;
    let before = header.get("values").and_then(Json::as_str);
    let before = before.and_then(|name| name.parse::<Policy>().ok());
    if before.is_none_or(|before| before < values.policy) {
        header.insert("values".to_owned(), values.policy.name().into());
    }
    if !values.previews() {
        header.retain(|key, _| !OF_THE_PROCESS.contains(&key.as_str()));
    }
    Some(tree.to_string())
}

/// An open file without its name.
fn open_file(values: &Values, text: &str) -> Option<String> {
    rewritten(values, text, |_, tree| {
        if let Some(file) = tree.as_object_mut() {
            file.remove("fd_name");
        }
    })
}

/// A frame, without the name that its evaluated code was given.
fn frame(values: &Values, text: &str) -> Option<String> {
    rewritten(values, text, |values, tree| {
        below(values, tree);
        if let Some(Json::String(file)) = tree.get_mut("file") {
            if !source_name::matches(file) {
                HIDDEN.clone_into(file);
            }
        }
    })
}

/// The lines of a thread's backtrace, without such names.
fn backtrace(values: &Values, text: &str) -> Option<String> {
    rewritten(values, text, |_, tree| {
        for line in tree.as_array_mut().into_iter().flatten() {
            if let Json::String(line) = line {
                *line = source_name::line(line);
            }
        }
    })
}

/// The name of a source file.
fn file(values: &Values, tables: &mut Tables, file: NameId) -> NameId {
    if values.previews() || source_name::matches(tables.name(file)) {
        file
    } else {
        tables.intern(HIDDEN)
    }
}

/// An allocation, without names given to evaluated code.
pub(super) fn allocation(values: &Values, tables: &mut Tables, known: Allocation) -> Allocation {
    let mut reduced = |id| match tables.site(id) {
        Some(site) => {
            let file = file(values, tables, site.file);
            tables.intern_site(Site { file, ..site })
        }
        None => id,
    };
    Allocation { site: reduced(known.site), caller: known.caller.map(reduced), ..known }
}

/// JSON with the values under [`SECRET`] keys reduced; `None` if it may stay unchanged.
fn json(values: &Values, text: &str) -> Option<String> {
    rewritten(values, text, below)
}

/// JSON that is itself under such a key.
fn hidden(values: &Values, text: &str) -> Option<String> {
    rewritten(values, text, hide)
}

fn rewritten(values: &Values, text: &str, rewrite: fn(&Values, &mut Json)) -> Option<String> {
    if values.previews() {
        return None;
    }
    let Ok(mut tree) = serde_json::from_str(text) else {
        return Some("null".to_owned());
    };
    rewrite(values, &mut tree);
    Some(tree.to_string())
}

fn below(values: &Values, tree: &mut Json) {
    match tree {
        Json::Object(map) => {
            for (key, value) in map.iter_mut() {
                if SECRET.contains(&key.as_str()) {
                    hide(values, value);
                } else {
                    below(values, value);
                }
            }
        }
        Json::Array(list) => list.iter_mut().for_each(|value| below(values, value)),
        _ => {}
    }
}

/// Removes every text that is not an address.
fn hide(values: &Values, tree: &mut Json) {
    match tree {
        Json::Object(map) => map.values_mut().for_each(|value| hide(values, value)),
        Json::Array(list) => list.iter_mut().for_each(|value| hide(values, value)),
        Json::String(text) if !text.starts_with("0x") => {
            *tree = match values.policy {
                Policy::Hash => Json::String(format!("{:#018x}", values.mark(text.as_bytes()))),
                _ => Json::Null,
            };
        }
        Json::Number(_) => *tree = Json::Null,
        _ => {}
    }
}

//! The first line: the roots, and facts about the process.

use serde_json::{Map, Value as Json};

use super::gem;
use crate::read::lines::Line;
use crate::read::target::Target;
use crate::read::window::Window;
use crate::read::{Fallible, Stop, hex};
use crate::record::{Edge, Label, NoteKind, Value};

/// Whether this is the first line.
pub(super) fn are_next(window: &Window<'_>) -> bool {
    let rest = window.rest();
    memchr::memmem::find(&rest[..rest.len().min(64)], b"\"_ROOTS_\"").is_some()
}

/// Reads the first line. Its length depends on the number of roots, so memory need not be saved.
pub(super) fn read(window: &mut Window<'_>, target: &mut Target<'_>) -> Fallible<Line> {
    let mut line = Vec::new();
    window.line(&mut line)?;
    let text = String::from_utf8_lossy(&line);
    let text = text.trim_end_matches(['\r', ' ', ',']);
    let (text, footer) = match text.strip_suffix("}]") {
        Some(_) => (&text[..text.len() - 1], Line::Footer),
        None => (text, Line::Record),
    };
    let Ok(Json::Object(roots)) = serde_json::from_str(text) else {
        return Err(Stop::Broken);
    };
    let globals = roots.get("global_tbl").and_then(Json::as_object);
    let is_gem = !roots.contains_key("roots");
    let header = match roots.get("header") {
        Some(header) => written(text, header).unwrap_or_else(|| header.to_string()),
        None => "{\"source\":\"heap_dump\"}".to_owned(),
    };
    target.note(NoteKind::Header, &header)?;
    if let (Some(globals), false) = (globals, is_gem) {
        note(globals, target)?;
    }
    let categories =
        [("machine_context", "stack"), ("registers", "registers"), ("global_list", "globals")];
    for (category, key) in categories {
        list(category, roots.get(key), target)?;
    }
    if let (Some(globals), true) = (globals, is_gem) {
        variables(globals, target)?;
    }
    for (category, ids) in roots.get("roots").and_then(Json::as_object).into_iter().flatten() {
        list(category, Some(ids), target)?;
    }
    Ok(footer)
}

/// The original text of the header, with its keys in order. It is the last value.
fn written(text: &str, header: &Json) -> Option<String> {
    let (_, written) = text.rsplit_once(",\"header\":")?;
    let written = written.strip_suffix('}')?;
    let same = serde_json::from_str::<Json>(written).ok()? == *header;
    same.then(|| written.to_owned())
}

/// The note on global variables, in the form of memprof's own lines.
fn note(globals: &Map<String, Json>, target: &mut Target<'_>) -> Fallible<()> {
    if globals.is_empty() {
        return Ok(());
    }
    let variables: Map<String, Json> =
        globals.iter().map(|(name, variable)| (name.clone(), variable["data"].clone())).collect();
    let note = serde_json::json!({ "variables": variables });
    target.note(NoteKind::Globals, &note.to_string())
}

fn id(id: &Json) -> Option<u64> {
    match id {
        Json::String(text) => hex::address(text.as_bytes()),
        Json::Number(number) => gem::address(number.as_i64()?),
        _ => None,
    }
}

fn edge(label: Label, address: u64) -> Edge<'static> {
    Edge { label, value: Value::Address(address), preview: None }
}

fn list(category: &str, ids: Option<&Json>, target: &mut Target<'_>) -> Fallible<()> {
    let ids = ids.and_then(Json::as_array).into_iter().flatten();
    let mut edges: Vec<_> = ids.filter_map(id).map(|id| edge(Label::None, id)).collect();
    match edges.is_empty() {
        true => Ok(()),
        false => target.roots(category, &mut edges),
    }
}

/// The gem's global variables are roots.
fn variables(globals: &Map<String, Json>, target: &mut Target<'_>) -> Fallible<()> {
    let mut edges = Vec::new();
    for (name, variable) in globals {
        if let Some(address) = id(&variable["data"]) {
            edges.push(edge(Label::Global(target.tables.intern(name)), address));
        }
    }
    match edges.is_empty() {
        true => Ok(()),
        false => target.roots("global_tbl", &mut edges),
    }
}

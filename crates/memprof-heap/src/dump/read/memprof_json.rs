//! Reading memprof's own lines.

mod detail;
mod edges;

use super::json::{self, Object};
use super::lines::Line;
use super::target::PIECE;
use super::{Fallible, Stop, Target};
use crate::dump::memprof_json::note_kind;
use crate::dump::record::{Edge, NoteKind, Shape, Value};

/// A line.
pub(super) fn line(line: &[u8], target: &mut Target<'_>) -> Fallible<Line> {
    let line = std::str::from_utf8(line).map_err(|_| Stop::Broken)?;
    let object = Object::new(line)?;
    let kind = object.text("type")?.ok_or(Stop::Broken)?;
    let id = object.text("_id")?.ok_or(Stop::Broken)?;
    if json::hex(&id).is_none() {
        match note_kind(&kind) {
            Some(NoteKind::Footer) => return Ok(Line::Footer),
            Some(note) => target.note(note, line)?,
            None if kind == "root" => roots(&object, target)?,
            None if kind == "shape" => shape(&object, target)?,
            None => return Err(Stop::Broken),
        }
        return Ok(Line::Record);
    }
    // A frame has an address, too.
    if kind == "frame" {
        target.note(NoteKind::Frame, line)?;
        return Ok(Line::Record);
    }
    detail::object(&object, target)?;
    Ok(Line::Record)
}

fn roots(object: &Object<'_>, target: &mut Target<'_>) -> Fallible<()> {
    let category = object.text("root")?.ok_or(Stop::Broken)?;
    let references = edges::References::new(object)?;
    let mut edges = Vec::new();
    let mut told = false;
    for (address, label) in references.iter() {
        edges.push(Edge {
            label: edges::label(&mut target.tables, label, false)?,
            value: Value::Address(address),
            preview: None,
        });
        if edges.len() >= PIECE {
            target.roots(&category, &mut edges)?;
            edges.clear();
            told = true;
        }
    }
    if told && edges.is_empty() {
        return Ok(());
    }
    target.roots(&category, &mut edges)
}

fn shape(object: &Object<'_>, target: &mut Target<'_>) -> Fallible<()> {
    let shape_type = object.text("shape_type")?.unwrap_or_default();
    let shape_type = target.tables.intern(&shape_type);
    let edge_name = object.text("edge_name")?;
    let shape = Shape {
        address: object.address("address").unwrap_or(0),
        id: object.number("id")?.ok_or(Stop::Broken)?,
        parent_id: object.number("parent_id")?,
        depth: object.number("depth")?.unwrap_or(0),
        shape_type,
        edge_name: edge_name.map(|name| target.tables.intern(&name)),
        edges: object.number("edges")?.unwrap_or(0),
        memsize: object.number("memsize")?.unwrap_or(0),
    };
    target.shape(&shape)
}

//! Reads memprof's own lines, and those of memprof 0.3, which introduced their keys.

mod classic;
mod edge_reader;
mod labels;
mod memprof_facts;
mod object_reader;

use super::lines::{End, Line, Lines};
use super::target::Target;
use super::value_reader::checked;
use super::window::Window;
use super::{Fallible, Stop};
use crate::memprof_json::note_kind;
use crate::record::{NoteKind, Shape};
use labels::Labels;
use memprof_facts::Facts;
use object_reader::Reading;

/// Reads lines.
pub(super) struct Reader {
    reading: Reading,
    facts: Facts,
    labels: Labels,
    held: edge_reader::Held,
    note: Vec<u8>,
    /// Whether the dump has a header, so a footer must follow.
    headed: bool,
    /// Whether lines of memprof 0.3 were found.
    classic: bool,
}

impl Lines for Reader {
    fn begin(&mut self, window: &Window<'_>, target: &mut Target<'_>) -> Fallible<()> {
        self.headed = id(window).starts_with(b"header");
        match !self.headed && classic::begins(window.rest()) {
            true => target.note(NoteKind::Header, "{\"source\":\"memprof 0.3\"}"),
            false => Ok(()),
        }
    }

    fn line(&mut self, window: &mut Window<'_>, target: &mut Target<'_>) -> Fallible<Line> {
        let id = id(window);
        if id.starts_with(b"0x") {
            let is_frame = id.windows(15).any(|text| text == b",\"type\":\"frame\"");
            if !is_frame {
                return self.object(window, target);
            }
        } else if id.starts_with(b"root:") {
            return self.roots(window, target);
        } else if id.starts_with(b"shape:") {
            return self.shape(window, target);
        } else if id.is_empty() {
            return self.object(window, target);
        }
        self.note(window, target)
    }

    fn is_whole(&self, end: &End) -> bool {
        end.footer || (self.classic && !self.headed && end.intact)
    }
}

/// The text after the opening quote of `_id`, and the rest after it; empty if that is not the first key.
fn id<'a>(window: &'a Window<'_>) -> &'a [u8] {
    let rest = window.rest();
    let rest = rest.strip_prefix(b"{").unwrap_or(&[]).trim_ascii_start();
    let rest = rest.strip_prefix(b"\"_id\"").unwrap_or(&[]);
    let rest = rest.trim_ascii_start();
    let rest = rest.strip_prefix(b":").unwrap_or(&[]).trim_ascii_start();
    let rest = rest.strip_prefix(b"\"").unwrap_or(&[]);
    // The type follows the number of a frame.
    &rest[..rest.len().min(40)]
}

impl Reader {
    pub fn new() -> Reader {
        Reader {
            reading: Reading::new(),
            facts: Facts::default(),
            labels: Labels::new(),
            held: edge_reader::Held::default(),
            note: Vec::new(),
            headed: false,
            classic: false,
        }
    }

    /// A line about the process, passed on unchanged.
    fn note(&mut self, window: &mut Window<'_>, target: &mut Target<'_>) -> Fallible<Line> {
        #[derive(serde::Deserialize)]
        struct Type<'a> {
            #[serde(rename = "type", borrow)]
            kind: std::borrow::Cow<'a, str>,
        }
        self.note.clear();
        self.note.shrink_to(1024 * 1024);
        window.line(&mut self.note)?;
        let text = checked(self.note.trim_ascii())?;
        let note: Type<'_> = serde_json::from_str(text).map_err(|_| Stop::Broken)?;
        match note_kind(&note.kind) {
            None => Err(Stop::Broken),
            Some(NoteKind::Footer) => Ok(Line::Footer),
            Some(kind) => {
                target.note(kind, text)?;
                if !self.headed {
                    classic::roots(kind, text, target)?;
                }
                Ok(Line::Record)
            }
        }
    }

    fn roots(&mut self, window: &mut Window<'_>, target: &mut Target<'_>) -> Fallible<Line> {
        let Reader { reading, held, .. } = self;
        held.clear();
        let mut category = None;
        window.expect(b'{')?;
        loop {
            let key = window.key(&mut reading.key)?;
            match window.key_text(key, &reading.key) {
                b"root" => category = Some(reading.names.read(window, &mut target.tables)?),
                b"references" => held.references(window)?,
                b"labels" => {
                    self.labels.read(window, &mut target.tables, &mut reading.names, held)?;
                }
                _ => window.skip_value()?,
            }
            if !window.more(b'}')? {
                break;
            }
        }
        window.end_line()?;
        let category = category.ok_or(Stop::Broken)?;
        let category = target.tables.name(category).to_owned();
        held.emit_roots(&category, target)?;
        Ok(Line::Record)
    }

    fn shape(&mut self, window: &mut Window<'_>, target: &mut Target<'_>) -> Fallible<Line> {
        let Reading { names, key, .. } = &mut self.reading;
        let mut shape_type = None;
        let mut id = None;
        let mut shape = Shape {
            address: 0,
            id: 0,
            parent_id: None,
            depth: 0,
            shape_type: target.no_name(),
            edge_name: None,
            edges: 0,
            memsize: 0,
        };
        window.expect(b'{')?;
        loop {
            let name = window.key(key)?;
            match window.key_text(name, key) {
                b"id" => id = window.count()?,
                b"address" => shape.address = window.address_or_none()?,
                b"parent_id" => shape.parent_id = window.count()?,
                b"depth" => shape.depth = window.count()?.unwrap_or(0),
                b"shape_type" => shape_type = names.optional(window, &mut target.tables)?,
                b"edge_name" => shape.edge_name = names.optional(window, &mut target.tables)?,
                b"edges" => shape.edges = window.count()?.unwrap_or(0),
                b"memsize" => shape.memsize = window.count()?.unwrap_or(0),
                _ => window.skip_value()?,
            }
            if !window.more(b'}')? {
                break;
            }
        }
        window.end_line()?;
        shape.id = id.ok_or(Stop::Broken)?;
        shape.shape_type = shape_type.unwrap_or(shape.shape_type);
        target.shape(&shape)?;
        Ok(Line::Record)
    }

    fn object(&mut self, window: &mut Window<'_>, target: &mut Target<'_>) -> Fallible<Line> {
        let facts = &mut self.facts;
        facts.clear();
        self.held.clear();
        if window.open(b'{', b'}')? {
            loop {
                self.reading.pair(
                    window,
                    target,
                    facts,
                    &mut self.held,
                    &mut self.labels,
                    self.headed,
                )?;
                if !window.more(b'}')? {
                    break;
                }
            }
        }
        window.end_line()?;
        let classic = !self.headed && facts.common.memsize.is_none() && !self.held.has_references();
        self.classic |= classic;
        let kind = facts.kind(classic)?;
        if classic {
            facts.roles(kind, target, &mut self.held);
        }
        self.held.check()?;
        let fields = facts.fields(kind);
        let object = facts.object(kind, &fields, classic, target)?;
        target.object(&object)?;
        self.held.emit(kind, classic, target)?;
        self.facts.reuse_fields(fields);
        Ok(Line::Record)
    }
}

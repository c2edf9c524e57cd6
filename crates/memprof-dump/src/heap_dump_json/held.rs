//! An object's contents, until its line ends.

use std::io;

use super::super::memprof_json::item;
use super::super::record::{Edge, Kind, Label, Tables};
use super::super::side::Side;
use super::super::sink::Sink;

/// Parts of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Elements,
    Ivars,
    Constants,
    Methods,
    Members,
    Locals,
    References,
}

/// The start of each part. The instance variables of most types have another name.
const PARTS: [(Part, &str); 7] = [
    (Part::Elements, ",\"val\":["),
    (Part::Ivars, ",\"ivs\":{"),
    (Part::Constants, ",\"consts\":{"),
    (Part::Methods, ",\"methods\":{"),
    (Part::Members, ",\"members\":{"),
    (Part::Locals, ",\"vars\":{"),
    (Part::References, ",\"refs\":["),
];

/// The open line.
#[derive(Default)]
pub(super) struct Held {
    sides: [Side; PARTS.len()],
    /// Elements of an array or a hash go to the file at once. True once they have begun.
    elements: Option<bool>,
    generic: bool,
}

impl Held {
    pub fn object(&mut self, kind: Kind) {
        self.elements = matches!(kind, Kind::ARRAY | Kind::HASH).then_some(false);
        let own = [Kind::OBJECT, Kind::CLASS, Kind::MODULE, Kind::ICLASS];
        self.generic = !own.contains(&kind);
    }

    pub fn edge(&mut self, out: &mut Vec<u8>, tables: &Tables, edge: &Edge<'_>, reference: bool) {
        let (part, name) = match edge.label {
            Label::Index(_) | Label::Key | Label::Entry => (Part::Elements, None),
            Label::Ivar(name) | Label::ClassVariable(name) => (Part::Ivars, Some(name)),
            Label::Constant(name) => (Part::Constants, Some(name)),
            Label::Method(name) => (Part::Methods, Some(name)),
            Label::Member(name) => (Part::Members, Some(name)),
            Label::Local(name) | Label::Global(name) => (Part::Locals, Some(name)),
            Label::None | Label::Role(_) if reference => (Part::References, None),
            Label::None | Label::Role(_) => return,
        };
        let out = match (&mut self.elements, part) {
            (Some(begun), Part::Elements) => {
                if !std::mem::replace(begun, true) {
                    out.extend_from_slice(PARTS[0].1.as_bytes());
                } else if edge.label != Label::Entry {
                    out.push(b',');
                }
                out
            }
            _ => {
                let out = self.sides[part as usize].text();
                if edge.label != Label::Entry {
                    out.push(b',');
                }
                out
            }
        };
        item(out, tables, name, edge);
    }

    /// Compresses parts that have grown too large.
    pub fn passed(&mut self) -> io::Result<()> {
        self.sides.iter_mut().try_for_each(Side::passed)
    }

    pub fn end(&mut self, sink: &mut Sink) -> io::Result<()> {
        match self.elements {
            Some(true) => sink.buffer().push(b']'),
            // An empty array has a value, too.
            Some(false) => sink.buffer().extend_from_slice(b",\"val\":[]"),
            None => {}
        }
        for (part, opening) in PARTS {
            let side = &mut self.sides[part as usize];
            if side.is_empty() {
                continue;
            }
            let opening = match part {
                Part::Ivars if self.generic => ",\"generic_ivars\":{",
                _ => opening,
            };
            sink.buffer().extend_from_slice(opening.as_bytes());
            side.drain_list(sink)?;
            let closing = if opening.ends_with('[') { b']' } else { b'}' };
            sink.buffer().push(closing);
        }
        Ok(())
    }
}

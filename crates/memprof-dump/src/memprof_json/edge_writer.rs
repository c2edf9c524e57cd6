//! An object's contents: its containers (`data`, `ivars`, ...), `references` and `labels`.

use std::io;

use super::super::record::{Detail, Edge, Flags, Kind, Label, NameId, Object, Tables, Value};
use super::super::side::Side;
use super::super::sink::Sink;
use super::super::text;

/// A key for a part of the object's contents.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Container {
    /// Elements, or `[key, value]` for each entry.
    Data,
    /// Instance and class variables, constants.
    Ivars,
    /// Members of a struct.
    Members,
    /// Local variables, and global ones.
    Locals,
    /// Methods.
    Methods,
    /// Internal values of the VM that are not references.
    Values,
}

const CONTAINERS: [(Container, &str); 6] = [
    (Container::Data, ",\"data\":["),
    (Container::Ivars, ",\"ivars\":{"),
    (Container::Members, ",\"members\":{"),
    (Container::Locals, ",\"locals\":{"),
    (Container::Methods, ",\"methods\":{"),
    (Container::Values, ",\"values\":{"),
];

/// The open line.
#[derive(Default)]
pub(super) struct Edges {
    /// Container that goes to the file at once, and whether it has begun.
    direct: Option<Container>,
    begun: bool,
    sides: [Side; CONTAINERS.len()],
    /// Sides with content: one bit each.
    used: u8,
    references: Side,
    labels: Side,
    labelled: bool,
    /// A root line always has `references`.
    root: bool,
    /// The object that this one shares its contents with.
    shared: Option<u64>,
    key: Key,
}

/// The key of the next hash entry.
#[derive(Default)]
struct Key {
    value: Option<Value>,
    preview: Option<Vec<u8>>,
}

impl Edges {
    /// Begins the line of a root.
    pub fn root(&mut self) {
        self.root = true;
    }

    /// Begins the line of an object.
    #[inline]
    pub fn object(&mut self, object: &Object<'_>) {
        self.direct = match object.kind {
            Kind::OBJECT => Some(Container::Ivars),
            Kind::STRUCT => Some(Container::Members),
            _ if has_text(&object.detail) => None,
            _ => Some(Container::Data),
        };
        self.begun = false;
        self.shared = object.flags.has(Flags::SHARED).then_some(0);
        self.key.value = None;
    }

    /// Adds the value under its label, if that belongs in a container.
    #[inline]
    pub fn value(&mut self, out: &mut Vec<u8>, tables: &Tables, edge: &Edge<'_>) {
        let (container, name) = match edge.label {
            Label::None => return,
            Label::Index(_) => (Container::Data, None),
            Label::Key => {
                self.key.value = Some(edge.value);
                self.key.set_preview(edge.preview);
                (Container::Data, None)
            }
            Label::Entry => {
                if edge.preview.is_some() {
                    self.key.set_preview(edge.preview);
                }
                (Container::Data, None)
            }
            Label::Ivar(name) | Label::ClassVariable(name) | Label::Constant(name) => {
                (Container::Ivars, Some(name))
            }
            Label::Member(name) => (Container::Members, Some(name)),
            Label::Local(name) | Label::Global(name) => (Container::Locals, Some(name)),
            Label::Method(name) => (Container::Methods, Some(name)),
            Label::Role(name) => match edge.value {
                Value::Address(address) => return self.role(tables, name, address),
                _ => (Container::Values, Some(name)),
            },
        };
        let out = if self.direct == Some(container) {
            if !self.begun {
                self.begun = true;
                out.extend_from_slice(CONTAINERS[container as usize].1.as_bytes());
            } else if edge.label != Label::Entry {
                out.push(b',');
            }
            out
        } else {
            self.used |= 1 << container as u8;
            let out = self.sides[container as usize].text();
            if edge.label != Label::Entry {
                out.push(b',');
            }
            out
        };
        item(out, tables, name, edge);
    }

    fn role(&mut self, tables: &Tables, name: NameId, address: u64) {
        if self.shared == Some(0) && tables.name(name) == "shared" {
            self.shared = Some(address);
        }
    }

    /// Adds a reference.
    #[inline]
    pub fn reference(&mut self, tables: &Tables, edge: &Edge<'_>, address: u64) -> io::Result<()> {
        let out = self.references.text();
        out.push(b',');
        text::address(out, address);
        let out = self.labels.text();
        if edge.label == Label::None {
            out.extend_from_slice(b",null");
        } else {
            self.labelled = true;
            out.extend_from_slice(b",\"");
            self.key.label(out, tables, edge.label);
            out.push(b'"');
        }
        self.references.passed()?;
        self.labels.passed()
    }

    /// Compresses sides that have grown too large.
    #[inline]
    pub fn passed(&mut self) -> io::Result<()> {
        if self.used == 0 {
            return Ok(());
        }
        self.sides.iter_mut().try_for_each(Side::passed)
    }

    /// Writes the buffered containers when the object is complete.
    #[inline]
    pub fn containers(&mut self, sink: &mut Sink) -> io::Result<()> {
        if let (Some(container), true) = (self.direct, self.begun) {
            sink.buffer().push(closing(container));
        }
        for (container, opening) in CONTAINERS {
            if self.used == 0 {
                break;
            }
            if self.used & 1 << container as u8 != 0 {
                self.used &= !(1 << container as u8);
                let side = &mut self.sides[container as usize];
                sink.buffer().extend_from_slice(opening.as_bytes());
                side.drain_list(sink)?;
                sink.buffer().push(closing(container));
            }
        }
        match self.shared {
            None => {}
            Some(0) => sink.buffer().extend_from_slice(b",\"shared\":true"),
            Some(address) => {
                let out = sink.buffer();
                out.extend_from_slice(b",\"shared\":");
                text::address(out, address);
            }
        }
        Ok(())
    }

    /// Writes the references and their labels.
    #[inline]
    pub fn references(&mut self, sink: &mut Sink) -> io::Result<()> {
        if self.root || !self.references.is_empty() {
            sink.buffer().extend_from_slice(b",\"references\":[");
            self.references.drain_list(sink)?;
            sink.buffer().push(b']');
        }
        if self.labelled {
            sink.buffer().extend_from_slice(b",\"labels\":[");
            self.labels.drain_list(sink)?;
            sink.buffer().push(b']');
        } else {
            self.labels.clear();
        }
        self.root = false;
        self.labelled = false;
        Ok(())
    }
}

/// Whether a text or a number uses the key `data`.
fn has_text(detail: &Detail<'_>) -> bool {
    use Detail::{Bignum, Float, Regexp, String, Symbol};
    matches!(detail, String(_) | Symbol(_) | Regexp(_) | Bignum(_) | Float(_))
}

fn closing(container: Container) -> u8 {
    if container == Container::Data { b']' } else { b'}' }
}

impl Key {
    #[inline]
    fn set_preview(&mut self, preview: Option<&[u8]>) {
        match (preview, &mut self.preview) {
            (None, kept) => *kept = None,
            (Some(bytes), Some(kept)) => {
                kept.clear();
                kept.extend_from_slice(bytes);
            }
            (Some(bytes), kept) => *kept = Some(bytes.to_vec()),
        }
    }

    /// The inside of a label's string.
    #[inline]
    fn label(&self, out: &mut Vec<u8>, tables: &Tables, label: Label) {
        let named = |out: &mut Vec<u8>, prefix: &str, name: NameId| {
            out.extend_from_slice(prefix.as_bytes());
            text::name(out, tables, name);
        };
        match label {
            Label::None => {}
            Label::Index(index) => {
                out.push(b'[');
                text::decimal(out, index);
                out.push(b']');
            }
            Label::Key => out.extend_from_slice(b"key"),
            Label::Entry => self.entry(out, tables),
            Label::Ivar(name)
            | Label::ClassVariable(name)
            | Label::Constant(name)
            | Label::Global(name)
            | Label::Role(name) => named(out, "", name),
            Label::Member(name) => named(out, ".", name),
            Label::Local(name) => named(out, "local ", name),
            Label::Method(name) => named(out, "#", name),
        }
    }

    fn entry(&self, out: &mut Vec<u8>, tables: &Tables) {
        out.push(b'[');
        match (&self.preview, self.value) {
            (Some(preview), _) => {
                out.extend_from_slice(b"\\\"");
                text::escape_bytes(out, whole_characters(preview));
                out.extend_from_slice(b"\\\"");
            }
            (None, None) => {}
            (None, Some(key)) => match key {
                Value::Nil | Value::Undef => out.extend_from_slice(b"nil"),
                Value::Address(address) => {
                    out.extend_from_slice(b"0x");
                    text::hex(out, address);
                }
                Value::Symbol(name) => {
                    out.push(b':');
                    text::name(out, tables, name);
                }
                Value::Float(number) if !number.is_finite() => {
                    out.extend_from_slice(text::not_finite(number).as_bytes());
                }
                Value::Name(name) | Value::Json(name) => text::name(out, tables, name),
                Value::True | Value::False | Value::Int(_) | Value::Float(_) => {
                    value(out, tables, key);
                }
            },
        }
        out.push(b']');
    }
}

/// Removes a truncated character.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}

/// An item of a container: a value, after its name if it has one. A key and its entry form a pair.
#[inline]
pub(in super::super) fn item(
    out: &mut Vec<u8>,
    tables: &Tables,
    name: Option<NameId>,
    edge: &Edge<'_>,
) {
    if let Some(name) = name {
        text::quoted_name(out, tables, name);
        out.push(b':');
    }
    match edge.label {
        Label::Key => {
            out.push(b'[');
            value(out, tables, edge.value);
        }
        Label::Entry => {
            out.push(b',');
            value(out, tables, edge.value);
            out.push(b']');
        }
        _ => value(out, tables, edge.value),
    }
}

/// A value inside a container.
#[inline]
pub(in super::super) fn value(out: &mut Vec<u8>, tables: &Tables, value: Value) {
    match value {
        Value::Nil | Value::Undef => out.extend_from_slice(b"null"),
        Value::True => out.extend_from_slice(b"true"),
        Value::False => out.extend_from_slice(b"false"),
        Value::Int(number) => text::decimal(out, number),
        Value::Float(number) => text::float(out, number),
        Value::Symbol(name) => {
            out.extend_from_slice(b"\":");
            text::name(out, tables, name);
            out.push(b'"');
        }
        Value::Address(address) => text::address(out, address),
        Value::Name(name) => text::quoted_name(out, tables, name),
        Value::Json(name) => out.extend_from_slice(tables.name(name).as_bytes()),
    }
}

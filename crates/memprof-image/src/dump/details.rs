//! The type-specific part of an object's record.

use memprof_dump::Writer;
use memprof_dump::record::{CodeRange, Content, Detail, Field, Kind, NameId, Text, Value};
use memprof_dump::values::{Policy, Values};

use super::Dump;
use super::string_contents::{Contents, Read};
use crate::ruby_heap::{HEADER, Immediate, Object, RubyHeap, code_range, encoding};

/// The facts about an object, without borrowed bytes.
pub struct Facts {
    kind: Known,
    pub fields: Vec<Field>,
    pub embedded: bool,
    pub shared: bool,
}

enum Known {
    Nothing,
    Text {
        kind: Kind,
        length: u64,
        capacity: Option<u64>,
        encoding: NameId,
        code_range: CodeRange,
        read: Read,
    },
    Plain(Detail<'static>),
}

/// VM-internal types with the same number in Ruby 3.1 to 4.0.
const IMEMOS: [&str; 9] =
    ["env", "cref", "svar", "throw_data", "ifunc", "memo", "ment", "iseq", "tmpbuf"];

impl Facts {
    fn new(kind: Known) -> Facts {
        Facts { kind, fields: Vec::new(), embedded: false, shared: false }
    }

    /// The detail of the record, with the bytes read.
    pub fn detail<'c>(&self, contents: &'c Contents, values: Values) -> Detail<'c> {
        let Known::Text { kind, length, capacity, encoding, code_range, read } = self.kind else {
            return match self.kind {
                Known::Plain(detail) => detail,
                _ => Detail::None,
            };
        };
        let content = match (read, values.content(contents.bytes())) {
            (Read::All, content) => content,
            (Read::Beginning, Content::Full(bytes)) => Content::Truncated(bytes),
            (Read::Beginning, content @ Content::Truncated(_)) => content,
            _ => Content::Absent,
        };
        let text = Text {
            length: values.length(length),
            capacity: capacity.filter(|_| values.policy != Policy::None),
            encoding,
            coderange: code_range,
            content,
        };
        match kind {
            Kind::SYMBOL => Detail::Symbol(text),
            Kind::REGEXP => Detail::Regexp(text),
            _ => Detail::String(text),
        }
    }
}

impl<W: Writer> Dump<'_, '_, W> {
    pub(super) fn details(&mut self, object: &Object) -> Facts {
        let heap = self.heap;
        match object.kind() {
            Kind::STRING => self.text(object, object),
            Kind::SYMBOL | Kind::REGEXP => match string_of(heap, object) {
                Some(string) => {
                    let facts = self.text(object, &string);
                    Facts { embedded: false, shared: false, ..facts }
                }
                None => Facts::new(Known::Nothing),
            },
            Kind::ARRAY => match heap.array(object) {
                Some(array) => Facts {
                    embedded: array.embedded && array.elements.count > 0,
                    shared: array.shared.is_some(),
                    ..Facts::new(Known::Plain(Detail::Length(array.elements.count)))
                },
                None => Facts::new(Known::Nothing),
            },
            _ => Facts::new(self.plain(object).map_or(Known::Nothing, Known::Plain)),
        }
    }

    fn plain(&mut self, object: &Object) -> Option<Detail<'static>> {
        let heap = self.heap;
        Some(match object.kind() {
            Kind::STRUCT => Detail::Length(heap.structure(object)?.count),
            Kind::HASH => {
                let hash = heap.hash(object)?;
                Detail::Hash {
                    size: hash.count,
                    default: self.value(hash.default),
                    default_proc: hash.default_proc,
                }
            }
            Kind::OBJECT => Detail::Object { ivars: heap.values(object)?.count() },
            Kind::FLOAT if self.values.previews() => {
                let bits = heap.memory.word(object.address + HEADER)?;
                Detail::Float(f64::from_bits(bits))
            }
            Kind::CLASS | Kind::MODULE | Kind::ICLASS => self.class(object),
            Kind::DATA => Detail::Data {
                type_name: heap.data_type(object).map(|name| self.tables.intern(&name)),
            },
            Kind::IMEMO => {
                let number = object.flags >> 12 & 0xf;
                let name = IMEMOS.get(number as usize);
                let references = heap.analysis.references();
                let owner = heap.slot(object.class).map(|(owner, _)| owner);
                let name = match owner.and_then(|owner| references.fields_of(owner)) {
                    Some(fields) if fields == object.node => "fields".to_owned(),
                    _ => name.map_or_else(|| format!("imemo {number}"), |name| (*name).to_owned()),
                };
                Detail::Imemo {
                    name: self.tables.intern(&name),
                    mid: None,
                    called_id: None,
                    receiver_class: 0,
                }
            }
            _ => return None,
        })
    }

    fn class(&mut self, class: &Object) -> Detail<'static> {
        let heap = self.heap;
        let classes = &heap.classes;
        let name = classes.name(class.address);
        let superclass = classes.superclass(heap, class);
        let real_name = match name {
            None if class.kind() == Kind::CLASS => {
                classes.real(heap, class.address).and_then(|real| classes.name(real))
            }
            _ => None,
        };
        let super_name = classes.display_name(heap, superclass);
        Detail::Class {
            name: name.map(|name| self.tables.intern(name)),
            real_name: real_name.map(|name| self.tables.intern(name)),
            superclass,
            super_name: super_name.map(|name| self.tables.intern(&name)),
            variations: None,
        }
    }

    /// The facts about an object with this string as its text.
    fn text(&mut self, object: &Object, string: &Object) -> Facts {
        let Some(facts) = self.heap.string(string) else {
            return Facts::new(Known::Nothing);
        };
        let read = self.contents.read(self.heap, &facts);
        let kind = Known::Text {
            kind: object.kind(),
            length: facts.length,
            capacity: facts.capacity,
            encoding: self.tables.intern(encoding(string.flags)),
            code_range: code_range(string.flags),
            read,
        };
        Facts { embedded: facts.embedded, shared: facts.shared.is_some(), ..Facts::new(kind) }
    }

    /// A word as a value, as far as it may be shown.
    pub(super) fn value(&mut self, word: u64) -> Value {
        let shown = |tables: &mut memprof_dump::record::Tables, values: Values, number| {
            if values.previews() {
                number
            } else {
                Value::Name(tables.intern(memprof_dump::values::HIDDEN))
            }
        };
        match self.heap.immediate(word) {
            None if self.heap.slot(word).is_some() => Value::Address(word),
            None | Some(Immediate::Undef) => Value::Undef,
            Some(Immediate::Nil) => Value::Nil,
            Some(Immediate::True) => Value::True,
            Some(Immediate::False) => Value::False,
            Some(Immediate::Int(number)) => {
                shown(&mut self.tables, self.values, Value::Int(number))
            }
            Some(Immediate::Float(number)) => {
                shown(&mut self.tables, self.values, Value::Float(number))
            }
            Some(Immediate::Symbol(name)) => {
                let name = name.unwrap_or_else(|| "(unknown)".to_owned());
                let name = self.values.symbol(&name).unwrap_or(name);
                Value::Symbol(self.tables.intern(&name))
            }
        }
    }
}

/// The string of a Symbol or Regexp: the first one in its slot.
fn string_of(heap: &RubyHeap<'_>, object: &Object) -> Option<Object> {
    let mut words = heap.body(object).addresses().filter_map(|at| heap.memory.word(at));
    let string = words.find(|word| heap.is(*word, Kind::STRING))?;
    heap.object(string)
}

//! Converts the labels of references in the dump.

use super::Builder;
use crate::label::{Label, Packed};
use memprof_dump::record::{self, Edge, Tables, Value};

impl Builder {
    /// The label of an edge. An entry is named by the preceding key, if the key is not an object.
    pub(super) fn label(&mut self, tables: &Tables, edge: &Edge<'_>) -> Packed {
        let key = self.key.take();
        let label = match edge.label {
            record::Label::None => return Packed::NONE,
            record::Label::Index(index) => Label::Index(index),
            record::Label::Key => {
                self.key = Some(edge.value);
                Label::Key
            }
            record::Label::Entry => match (key, edge.preview) {
                (Some(Value::Address(_)), _) => Label::Entry,
                (Some(key), _) => match written(tables, key) {
                    Some(text) => Label::Under(self.names.own(&text)),
                    None => Label::None,
                },
                (None, Some(preview)) => {
                    let text = format!("{:?}", String::from_utf8_lossy(preview));
                    Label::Under(self.names.own(&text))
                }
                (None, None) => Label::None,
            },
            record::Label::Ivar(name) => Label::Ivar(self.names.of(tables, name)),
            record::Label::ClassVariable(name) => Label::ClassVariable(self.names.of(tables, name)),
            record::Label::Constant(name) => Label::Constant(self.names.of(tables, name)),
            record::Label::Member(name) => Label::Member(self.names.of(tables, name)),
            record::Label::Local(name) => Label::Local(self.names.of(tables, name)),
            record::Label::Global(name) => Label::Global(self.names.of(tables, name)),
            record::Label::Method(name) => Label::Method(self.names.of(tables, name)),
            record::Label::Role(name) => Label::Role(self.names.of(tables, name)),
        };
        Packed::new(label)
    }
}

/// A key that is not an object, as Ruby writes it.
fn written(tables: &Tables, key: Value) -> Option<String> {
    Some(match key {
        Value::Nil => "nil".to_owned(),
        Value::True => "true".to_owned(),
        Value::False => "false".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => format!("{number:?}"),
        Value::Symbol(name) => format!(":{}", tables.name(name)),
        Value::Name(name) => tables.name(name).to_owned(),
        Value::Undef | Value::Address(_) | Value::Json(_) => return None,
    })
}

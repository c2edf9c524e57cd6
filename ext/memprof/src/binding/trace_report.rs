//! `Memprof::Native::TraceReport`: the counts of a trace, as Ruby values or as JSON. Servers need JSON for each request, so
//! that allocates no Ruby object but the text.

use std::sync::Arc;

use magnus::value::ReprValue;
use magnus::{
    Class, DataTypeFunctions, Error, Module, RHash, RModule, RString, Ruby, TypedData, Value,
    method,
};
use memprof_native::Node;
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::native_trace::Choice;
use crate::vm::trace::Counted;
use crate::vm::tracker;

/// Numbers by tracer. A tracer without numbers has an empty map. Converted to text on demand.
#[derive(TypedData)]
#[magnus(class = "Memprof::Native::TraceReport", free_immediately)]
pub struct NativeReport {
    choice: Arc<Choice>,
    counted: Counted,
}

impl DataTypeFunctions for NativeReport {}

pub fn init(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    let class = native.define_class("TraceReport", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_method("to_h", method!(NativeReport::to_h, 0))?;
    class.define_method("to_json", method!(NativeReport::to_json, -1))
}

static NOTHING: Node = Node::Map(Vec::new());

impl NativeReport {
    pub fn new(choice: Arc<Choice>, counted: Counted) -> Self {
        NativeReport { choice, counted }
    }

    fn document(&self) -> Document<'_> {
        Document { names: &self.choice.reported, counted: self.counted.report() }
    }

    fn to_h(ruby: &Ruby, this: &Self) -> Result<RHash, Error> {
        tracker::suspended(|| {
            let hash = ruby.hash_new();
            for (name, node) in this.document().entries() {
                hash.aset(name, to_ruby(ruby, node)?)?;
            }
            Ok(hash)
        })
    }

    /// Called by JSON.generate; its state argument only affects the format of Ruby's own values.
    fn to_json(ruby: &Ruby, this: &Self, _state: &[Value]) -> Result<RString, Error> {
        let text = serde_json::to_string(&this.document())
            .map_err(|error| Error::new(ruby.exception_runtime_error(), error.to_string()))?;
        Ok(tracker::suspended(|| ruby.str_new(&text)))
    }
}

fn to_ruby(ruby: &Ruby, node: &Node) -> Result<Value, Error> {
    Ok(match node {
        Node::Count(count) => ruby.integer_from_u64(*count).as_value(),
        Node::Seconds(seconds) => ruby.float_from_f64(*seconds).as_value(),
        Node::Map(fields) => {
            let hash = ruby.hash_new();
            for (name, node) in fields {
                hash.aset(ruby.str_new(name), to_ruby(ruby, node)?)?;
            }
            hash.as_value()
        }
    })
}

struct Document<'a> {
    names: &'a [String],
    counted: Vec<(&'static str, Node)>,
}

impl Document<'_> {
    /// Entries in the order of the report.
    fn entries(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.names.iter().map(|name| {
            let counted = self.counted.iter().find(|(counted, _)| counted == name);
            (name.as_str(), counted.map_or(&NOTHING, |(_, node)| node))
        })
    }
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.names.len()))?;
        for (name, node) in self.entries() {
            map.serialize_entry(name, &Numbers(node))?;
        }
        map.end()
    }
}

struct Numbers<'a>(&'a Node);

impl Serialize for Numbers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Node::Count(count) => serializer.serialize_u64(*count),
            Node::Seconds(seconds) => serializer.serialize_f64(*seconds),
            Node::Map(fields) => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (name, node) in fields {
                    map.serialize_entry(name, &Numbers(node))?;
                }
                map.end()
            }
        }
    }
}

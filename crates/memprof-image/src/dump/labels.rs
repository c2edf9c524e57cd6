//! Labels of single references, as a path from a GC root shows them.

use std::io;
use std::sync::atomic::AtomicBool;

use memprof_dump::Writer;
use memprof_dump::record::{
    Counts, Edge, Kind, Label, NoteKind, Object as Record, Shape, Tables, Value,
};
use memprof_dump::values::Values;

use super::edges::Edges;
use super::{CONSERVATIVE, Dump};
use crate::ruby_heap::RubyHeap;

/// The label of the reference from one object to another: `@user`, `["user:42"]`, `[3]`, `.name`, `STORE`; `class` for the
/// object's class. `None` if the reference was only found as a word, or there is none.
pub(crate) fn label(heap: &RubyHeap<'_>, from: u64, to: u64) -> Option<String> {
    let object = heap.object(from)?;
    let (never, mut search) = (AtomicBool::new(false), Search { heap, to, key: None, label: None });
    let mut dump = Dump::new(heap, &mut search, Values::FULL, &never);
    // An error only says that the label was found.
    let _ = dump.edges(&object, &mut Edges::default());
    let of_class = || object.class == to && object.kind() != Kind::IMEMO;
    search.label.or_else(|| of_class().then(|| "class".to_owned()))
}

/// Ends the dump of an object's references at the one to an address.
struct Search<'d, 'a> {
    heap: &'d RubyHeap<'a>,
    to: u64,
    /// The key of the entry that follows.
    key: Option<Value>,
    label: Option<String>,
}

impl Search<'_, '_> {
    fn text(&self, tables: &Tables, edge: &Edge<'_>) -> Option<String> {
        let name = |name| tables.name(name).to_owned();
        Some(match edge.label {
            Label::None => return None,
            Label::Index(index) => format!("[{index}]"),
            Label::Key => "key".to_owned(),
            Label::Entry => format!("[{}]", self.key(tables, edge.preview)?),
            Label::Ivar(text)
            | Label::ClassVariable(text)
            | Label::Global(text)
            | Label::Constant(text) => name(text),
            Label::Member(text) => format!(".{}", name(text)),
            Label::Local(text) => format!("local {}", name(text)),
            Label::Method(text) => format!("#{}", name(text)),
            Label::Role(text) if tables.name(text) == CONSERVATIVE => return None,
            Label::Role(text) => name(text),
        })
    }

    /// A key as Ruby writes it, or the class of the key.
    fn key(&self, tables: &Tables, preview: Option<&[u8]>) -> Option<String> {
        if let Some(bytes) = preview {
            return Some(format!("{:?}", String::from_utf8_lossy(bytes)));
        }
        Some(match self.key? {
            Value::Nil => "nil".to_owned(),
            Value::True => "true".to_owned(),
            Value::False => "false".to_owned(),
            Value::Int(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Symbol(name) => format!(":{}", tables.name(name)),
            Value::Address(address) => {
                let key = self.heap.object(address)?;
                let of_class = match key.kind() {
                    Kind::CLASS | Kind::MODULE => address,
                    _ => key.class,
                };
                self.heap.classes.display_name(self.heap, of_class)?
            }
            Value::Undef | Value::Name(_) | Value::Json(_) => return None,
        })
    }
}

impl Writer for Search<'_, '_> {
    fn edges(&mut self, tables: &Tables, edges: &[Edge<'_>]) -> io::Result<()> {
        for edge in edges {
            if edge.value == Value::Address(self.to) {
                self.label = self.text(tables, edge);
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            self.key = (edge.label == Label::Key).then_some(edge.value);
        }
        Ok(())
    }

    fn note(&mut self, _: &Tables, _: NoteKind, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn roots(&mut self, _: &Tables, _: &str, _: &[Edge<'_>]) -> io::Result<()> {
        Ok(())
    }

    fn shape(&mut self, _: &Tables, _: &Shape) -> io::Result<()> {
        Ok(())
    }

    fn object(&mut self, _: &Tables, _: &Record<'_>) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &Tables) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, _: &Tables, _: bool) -> io::Result<Counts> {
        Ok(Counts::default())
    }
}

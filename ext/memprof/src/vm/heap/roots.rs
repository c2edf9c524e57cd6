//! Roots by category, and what holds the objects that have a finalizer.

use std::io;

use memprof_dump::record::{Edge, Label, Value};
use memprof_dump::writer::LiveWriter;
use rb_sys::VALUE;
use rustc_hash::FxHashMap;

use super::pass::Pass;
use super::reach::reachable_from_roots;

/// Names of global variables by the address of their values.
pub type Globals = FxHashMap<u64, String>;

/// Writes the roots.
pub fn walk<W: LiveWriter>(pass: &mut Pass<'_, W>) -> io::Result<()> {
    let walk = &mut pass.walk;
    let mut roots: Vec<(String, Vec<VALUE>)> = Vec::new();
    reachable_from_roots(|category, object| match roots.last_mut() {
        Some((last, objects)) if last == category => objects.push(object),
        _ => roots.push((category.to_owned(), vec![object])),
    });
    for (category, objects) in roots {
        let mut edges = Vec::with_capacity(objects.len());
        for object in objects {
            let label = match walk.globals.get(&object) {
                Some(name) if category == "global_tbl" => {
                    Label::Global(walk.names.tables.intern(name))
                }
                _ => Label::None,
            };
            edges.push(Edge {
                label,
                value: Value::Address(object),
                preview: None,
            });
        }
        let tables = &walk.names.tables;
        pass.writer.roots(tables, &category, &edges)?;
    }
    Ok(())
}

/// The note about finalizers: pairs of an object and its finalizers, which the VM does not list.
pub fn finalizers(objects: &[u64]) -> String {
    let pairs: Vec<String> = objects
        .iter()
        .map(|object| format!("[\"{object:#x}\",null]"))
        .collect();
    format!(
        "{{\"_id\":\"finalizers\",\"type\":\"finalizers\",\"data\":[{}]}}",
        pairs.join(",")
    )
}

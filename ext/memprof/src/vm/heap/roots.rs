//! Roots by category, and the finalizers of objects.

use std::io;

use memprof_dump::record::{Edge, Label, NameId, Value};
use memprof_dump::writer::LiveWriter;
use rb_sys::VALUE;
use rustc_hash::{FxHashMap, FxHashSet};

use super::name_table::Names;
use super::pass::Pass;
use super::reach::reachable_from_roots;
use crate::vm::classes;
use crate::vm::ruby_object::{self, Flags};

/// Names of global variables by the address of their values.
pub type Globals = FxHashMap<u64, String>;

/// The category of objects retained by finalizers. Ruby 4.0 retains them without reporting it.
const FINALIZERS: &str = "finalizers";
/// Global variables whose values are in the VM's own tables.
const OF_VM: [&str; 5] = ["$LOADED_FEATURES", "$LOAD_PATH", "$stderr", "$stdin", "$stdout"];

/// Adds a name: `$LOAD_PATH` in preference to `$:`, otherwise the first one.
pub fn add_global(globals: &mut Globals, name: &str, value: u64) {
    let known = globals.entry(value).or_default();
    if known.is_empty() || OF_VM.contains(&name) {
        name.clone_into(known);
    }
}

/// Writes the roots.
pub fn walk<W: LiveWriter>(pass: &mut Pass<'_, W>) -> io::Result<()> {
    let walk = &mut pass.walk;
    let mut roots: Vec<(String, Vec<VALUE>)> = Vec::new();
    reachable_from_roots(|category, object| match roots.last_mut() {
        Some((last, objects)) if last == category => objects.push(object),
        _ => roots.push((category.to_owned(), vec![object])),
    });
    let mut finalizer_labels = FxHashMap::default();
    // Without labels, the roots are those reported by the VM.
    if let (true, Some(table)) = (walk.scope.labels, walk.data_types.finalizers) {
        walk.finalizer_arrays = table.entries();
        finalizer_labels = labels_of_finalizers(&walk.finalizer_arrays, &mut walk.names);
        roots.extend(unreported(&walk.finalizer_arrays, &roots));
    }
    for (category, objects) in roots {
        let mut edges = Vec::with_capacity(objects.len());
        for object in objects {
            let label = match walk.globals.get(&object) {
                Some(name) if category == "global_tbl" || OF_VM.contains(&name.as_str()) => {
                    Label::Global(walk.names.tables.intern(name))
                }
                _ => (finalizer_labels.get(&object)).map_or(Label::None, |name| Label::Role(*name)),
            };
            edges.push(Edge { label, value: Value::Address(object), preview: None });
        }
        let tables = &walk.names.tables;
        pass.writer.roots(tables, &category, &edges)?;
    }
    Ok(())
}

/// "finalizer of Order" for each array of finalizers.
fn labels_of_finalizers(
    arrays: &FxHashMap<u64, u64>,
    names: &mut Names,
) -> FxHashMap<VALUE, NameId> {
    let labels = arrays.iter().filter_map(|(object, array)| {
        // SAFETY: the VM's table has addresses of slots, also of objects whose finalizer is due.
        let class = unsafe {
            let object = *object as VALUE;
            (Flags::of(object).holds_object()).then(|| ruby_object::class_word(object))?
        };
        let name = classes::display_name(class)?;
        let label = names.tables.intern(&format!("finalizer of {name}"));
        Some((*array as VALUE, label))
    });
    labels.collect()
}

/// The arrays of finalizers not reachable from any root, as a category.
fn unreported(
    arrays: &FxHashMap<u64, u64>,
    roots: &[(String, Vec<VALUE>)],
) -> Option<(String, Vec<VALUE>)> {
    let reported: FxHashSet<VALUE> =
        roots.iter().flat_map(|(_, objects)| objects).copied().collect();
    let mut others: Vec<VALUE> = (arrays.values().map(|array| *array as VALUE))
        .filter(|array| !reported.contains(array))
        .collect();
    others.sort_unstable();
    (!others.is_empty()).then(|| (FINALIZERS.to_owned(), others))
}

/// The note about finalizers: pairs of an object and the array of its finalizers, `null` if that is unknown.
pub fn finalizers(objects: &[u64], arrays: &FxHashMap<u64, u64>) -> String {
    let pairs = objects.iter().map(|object| match arrays.get(object) {
        Some(array) => format!("[\"{object:#x}\",\"{array:#x}\"]"),
        None => format!("[\"{object:#x}\",null]"),
    });
    format!(
        "{{\"_id\":\"finalizers\",\"type\":\"finalizers\",\"data\":[{}]}}",
        pairs.collect::<Vec<_>>().join(",")
    )
}

//! Differences between memprof 0.3 and its successor.

use serde_json::Value as Json;

use crate::memprof_json::kind_of;
use crate::read::Fallible;
use crate::read::hex;
use crate::read::target::Target;
use crate::record::{Edge, Kind, Label, NoteKind, Value};

/// Slot size of Ruby 1.8 on 64-bit machines. The lines do not contain it.
pub(super) const SLOT: u32 = 40;

/// Whether the first line is from memprof 0.3: others have a size, or references.
pub(super) fn begins(text: &[u8]) -> bool {
    let end = memchr::memchr(b'\n', text);
    let line = &text[..end.unwrap_or(text.len())];
    let has = |key: &[u8]| memchr::memmem::find(line, key).is_some();
    end.is_some() && !has(b"\"memsize\"") && !has(b"\"references\"")
}

/// The type with a name. Types of the Ruby 1.8 interpreter no longer exist.
pub(super) fn kind(name: &str) -> Kind {
    match name {
        "scope" | "varmap" => Kind::NODE,
        _ => kind_of(name).unwrap_or(UNKNOWN),
    }
}

/// Not a Ruby type.
const UNKNOWN: Kind = Kind(0x1f);

/// Global variables and finalizers are the roots of these dumps.
pub(super) fn roots(kind: NoteKind, text: &str, target: &mut Target<'_>) -> Fallible<()> {
    let Ok(note) = serde_json::from_str::<Json>(text) else {
        return Ok(());
    };
    let mut edges = Vec::new();
    let mut push = |label, value: &Json| {
        let address = value.as_str().and_then(|text| hex::address(text.as_bytes()));
        edges.extend(address.map(|address| Edge {
            label,
            value: Value::Address(address),
            preview: None,
        }));
    };
    let category = match kind {
        NoteKind::Globals => {
            for (name, value) in note["variables"].as_object().into_iter().flatten() {
                let name = name.strip_prefix(':').unwrap_or(name);
                push(Label::Global(target.tables.intern(name)), value);
            }
            "global_tbl"
        }
        NoteKind::Finalizers => {
            for pair in note["data"].as_array().into_iter().flatten() {
                push(Label::None, &pair[1]);
            }
            "finalizers"
        }
        _ => return Ok(()),
    };
    match edges.is_empty() {
        true => Ok(()),
        false => target.roots(category, &mut edges),
    }
}

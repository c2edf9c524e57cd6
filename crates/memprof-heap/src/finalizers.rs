//! Maps objects to their finalizers. The VM has an array of them for the lifetime of the object, in a table that retains it; the
//! object has no reference to it that a dump could show.

use rustc_hash::FxHashMap;
use serde::Deserialize;

use super::Heap;
use memprof_dump::record::NoteKind;

/// The finalizers in a memprof dump.
#[derive(Deserialize)]
struct Note {
    /// Addresses of an object and of the array; null where the array was not found.
    data: Vec<(String, Option<String>)>,
}

impl Heap {
    /// The arrays of finalizers, by object.
    pub fn finalizers(&self) -> &FxHashMap<u32, Vec<u32>> {
        self.derived.finalizers.get_or_init(|| found(self))
    }

    /// Whether `array` has the finalizers of `object`.
    pub fn is_finalizer(&self, object: u32, array: u32) -> bool {
        let arrays = self.finalizers().get(&object);
        arrays.is_some_and(|arrays| arrays.contains(&array))
    }
}

fn found(heap: &Heap) -> FxHashMap<u32, Vec<u32>> {
    let mut found: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    let notes = heap.notes().iter();
    let notes = notes.filter(|(kind, _)| *kind == NoteKind::Finalizers);
    for note in notes.filter_map(|(_, json)| serde_json::from_str::<Note>(json).ok()) {
        for (object, array) in note.data {
            let pair = at(heap, Some(&object)).zip(at(heap, array.as_deref()));
            if let Some((object, array)) = pair {
                found.entry(object).or_default().push(array);
            }
        }
    }
    found
}

fn at(heap: &Heap, address: Option<&str>) -> Option<u32> {
    heap.at(u64::from_str_radix(address?.strip_prefix("0x")?, 16).ok()?)
}

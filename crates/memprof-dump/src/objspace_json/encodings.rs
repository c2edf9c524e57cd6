//! The text of lines about encodings. There are few, and most strings have one.

use super::super::record::{NameId, Tables};
use super::super::text;

/// Number of slots in the table; a power of two.
const PLACES: usize = 64;

/// The text of strings in one encoding.
#[derive(Clone, Default)]
pub(super) struct Encoding {
    /// The id of its name.
    id: Option<NameId>,
    /// False if a byte below 128 may be something other than ASCII.
    pub ascii: bool,
    /// Its name with its key, as in a line; empty for bytes without encoding.
    pub field: Vec<u8>,
}

/// Encodings by the ids of their names. Evicted ones are recomputed.
pub(super) struct Encodings {
    table: Vec<Encoding>,
}

impl Default for Encodings {
    fn default() -> Encodings {
        Encodings { table: vec![Encoding::default(); PLACES] }
    }
}

impl Encodings {
    /// The text of an encoding.
    #[inline(always)]
    pub fn get(&mut self, tables: &Tables, id: NameId) -> &Encoding {
        let place = id.0 as usize % PLACES;
        if self.table[place].id != Some(id) {
            self.learn(place, tables, id);
        }
        &self.table[place]
    }

    #[cold]
    #[inline(never)]
    fn learn(&mut self, place: usize, tables: &Tables, id: NameId) {
        let name = tables.name(id);
        let mut field = Vec::new();
        if !matches!(name, "" | "ASCII-8BIT" | "BINARY") {
            text::string_field(&mut field, ", \"encoding\":", name);
        }
        self.table[place] = Encoding { id: Some(id), ascii: ascii_compatible(name), field };
    }
}

/// True unless a byte below 128 may be something other than ASCII in this encoding.
fn ascii_compatible(encoding: &str) -> bool {
    match encoding.as_bytes() {
        [b'U', b'T', b'F', ..] => encoding == "UTF-8" || encoding.starts_with("UTF8-"),
        [b'I', b'S', b'O', ..] => !encoding.starts_with("ISO-2022-JP"),
        [b'C', b'P', ..] => !matches!(encoding, "CP50220" | "CP50221" | "CP50222" | "CP65000"),
        [b'I', b'B', ..] => encoding != "IBM037",
        _ => true,
    }
}

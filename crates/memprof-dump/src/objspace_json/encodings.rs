//! What lines say of encodings. There are few, and most strings have one.

use super::super::record::{NameId, Tables};
use super::super::text;

/// Places of the table; a power of two.
const PLACES: usize = 64;

/// What is said of strings in one encoding.
#[derive(Clone, Default)]
pub(super) struct Encoding {
    /// The number of its name.
    id: Option<NameId>,
    /// False if a byte below 128 may be something else than ASCII.
    pub ascii: bool,
    /// Its name as the line has it, with its key; nothing for bytes without encoding.
    pub field: Vec<u8>,
}

/// Encodings by the numbers of their names. One that was forgotten is looked at again.
pub(super) struct Encodings {
    table: Vec<Encoding>,
}

impl Default for Encodings {
    fn default() -> Encodings {
        Encodings {
            table: vec![Encoding::default(); PLACES],
        }
    }
}

impl Encodings {
    /// What is said of an encoding.
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
        self.table[place] = Encoding {
            id: Some(id),
            ascii: ascii_compatible(name),
            field,
        };
    }
}

/// True unless a byte below 128 may be something else than ASCII in this encoding.
fn ascii_compatible(encoding: &str) -> bool {
    match encoding.as_bytes() {
        [b'U', b'T', b'F', ..] => encoding == "UTF-8" || encoding.starts_with("UTF8-"),
        [b'I', b'S', b'O', ..] => !encoding.starts_with("ISO-2022-JP"),
        [b'C', b'P', ..] => !matches!(encoding, "CP50220" | "CP50221" | "CP50222" | "CP65000"),
        [b'I', b'B', ..] => encoding != "IBM037",
        _ => true,
    }
}

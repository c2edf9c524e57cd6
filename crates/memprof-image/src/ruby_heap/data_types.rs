//! Names of the C types of T_DATA: its type is a constant of a library that begins with a pointer to the name.

use super::{HEADER, Object, RubyHeap};
use crate::image::WORD;

const MOST: usize = 64;

impl RubyHeap<'_> {
    /// The name of a T_DATA's type; None if it has none, or the image lacks that part of the library.
    pub fn data_type(&self, data: &Object) -> Option<String> {
        // The type is the first or, from Ruby 4.0 on, the second word; flags may be in its lowest bits.
        [0, WORD].into_iter().find_map(|offset| {
            let kind = self.memory.word(data.address + HEADER + offset)? & !(WORD - 1);
            self.analysis.image.segment(kind)?.file?;
            let name = self.memory.word(kind)?;
            self.analysis.image.segment(name)?.file?;
            let text = self.memory.c_string(name, MOST)?;
            let is_name = text.len() > 1 && text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
            is_name.then_some(text)
        })
    }
}

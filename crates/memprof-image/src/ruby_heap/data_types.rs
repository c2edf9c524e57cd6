//! Names of the C types of T_DATA: the type is a constant of a library that begins with a pointer to the name.

use super::{HEADER, Object, RubyHeap};
use crate::image::WORD;

const MOST: usize = 64;

impl RubyHeap<'_> {
    /// The name of a T_DATA's type; None without one, or if the image lacks that part of the library.
    pub fn data_type(&self, data: &Object) -> Option<String> {
        // The type is the first or, since Ruby 4.0, the second word; its lowest bits may be flags.
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

//! Structs: the place of their values, and the names of their members.

use memprof_dump::record::Kind;

use super::{Cells, HEADER, Object, RubyHeap, values};
use crate::image::WORD;

const LENGTH: u32 = 1;
const LENGTH_MASK: u64 = 0x7f;
/// Maximum number of references from a class to the array of its members.
const HOPS: usize = 3;
/// Maximum number of a class's blocks to search.
const MOST_BLOCKS: usize = 64;

impl RubyHeap<'_> {
    /// The place of a struct's values; None if it is invalid.
    pub fn structure(&self, structure: &Object) -> Option<Cells> {
        let body = structure.address + HEADER;
        let embedded =
            Cells { at: body, count: structure.flags >> (super::USER + LENGTH) & LENGTH_MASK };
        if embedded.count > 0 && embedded.range().end <= structure.address + structure.slot_size {
            return Some(embedded);
        }
        let apart = Cells { count: self.memory.word(body)?, at: self.memory.word(body + WORD)? };
        (self.is_there(apart) && (apart.count == 0 || apart.at > 4096)).then_some(apart)
    }

    /// Member names of a struct class with so many members: its hidden array of Symbols.
    pub fn members(&self, class: u64, count: u64) -> Option<Vec<String>> {
        let class = self.object(class)?;
        let references = self.analysis.references();
        let graph = references.graph();
        let mut blocks = vec![class.node];
        let mut found: Option<(u64, Vec<String>)> = None;
        for _ in 0..=HOPS {
            let mut next = Vec::new();
            for target in blocks.iter().flat_map(|node| graph.edges(*node)) {
                match self.kind_of_node(target) {
                    Some(Kind::ARRAY) => {
                        let address = self.address(target);
                        let Some(names) = self.symbols(address, count) else {
                            continue;
                        };
                        // If two are found, either may be wrong.
                        match &found {
                            Some((other, _)) if *other != address => return None,
                            _ => found = Some((address, names)),
                        }
                    }
                    None if target < references.slots().start && next.len() < MOST_BLOCKS => {
                        next.push(target);
                    }
                    // Since Ruby 4.0 an object that references the class has its instance variables.
                    Some(Kind::IMEMO) if next.len() < MOST_BLOCKS => {
                        let fields = self.object(self.address(target));
                        if fields.is_some_and(|fields| fields.class == class.address) {
                            next.push(target);
                        }
                    }
                    _ => {}
                }
            }
            blocks = next;
        }
        found.map(|(_, names)| names)
    }

    /// Names of the Symbols in a hidden array that contains nothing else.
    fn symbols(&self, array: u64, count: u64) -> Option<Vec<String>> {
        let array = self.object(array).filter(|array| array.class == 0)?;
        let elements = self.array(&array)?.elements;
        (elements.count == count).then_some(())?;
        let words = elements.addresses().map(|at| self.memory.word(at));
        words.map(|word| self.id_name(values::symbol_id(word?)?)).collect()
    }
}

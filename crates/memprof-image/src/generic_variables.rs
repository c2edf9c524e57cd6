//! The VM's table of instance variables of objects without room for them in their slots, such as Strings or objects of C code. It
//! does not retain the objects: the variables belong to them. They are in a block up to Ruby 3.4, then in an internal object.
//!
//! The table is an `st_table` whose keys are nearly all objects flagged as members, with the hashes of numbers.

use memprof_heap::graph::{BitSet, Graph};
use rustc_hash::FxHashMap;

use crate::blocks::Blocks;
use crate::image::{Image, WORD};
use crate::ruby_pages::ObjectType;
use crate::st_table::ENTRY;

/// The flag of an object that is in the table (FL_EXIVAR).
const IN_TABLE: u64 = 1 << 10;
/// The minimum number of objects to search for the table.
const FEWEST: usize = 8;

/// The type of internal objects with variables (imemo_fields).
const FIELDS: u64 = 13;

/// Whether the flags of a slot may be those of an internal object with the variables of the object that is its class. Before Ruby
/// 4.0, objects with this number are caches of constants, which have no shape.
pub fn may_be_fields(flags: u64) -> bool {
    let shape = flags >> 32;
    is_internal(flags) && flags >> 12 & 0xf == FIELDS && shape != 0
}

/// Whether the flags of a slot are those of an internal object.
pub fn is_internal(flags: u64) -> bool {
    ObjectType::of_flags(flags).is_some_and(|kind| kind.name() == "IMEMO")
}

/// Whether the flags of a slot are those of an object in the table (up to Ruby 3.4).
pub fn is_in_table(flags: u64) -> bool {
    flags & IN_TABLE != 0 && ObjectType::of_flags(flags).is_some()
}

/// The table's entries, and what belongs to each object.
#[derive(Debug)]
pub struct Table {
    /// The block.
    pub block: u32,
    /// The nodes of the objects' variables, by the objects' nodes.
    pub variables: FxHashMap<u32, u32>,
}

/// The table, if it exists. `objects` are the nodes of its members, `node` returns the node at an address.
pub fn table(
    image: &Image,
    graph: &Graph<'_>,
    blocks: &Blocks,
    objects: &BitSet,
    node: impl Fn(u64) -> Option<u32>,
) -> Option<Table> {
    let count = objects.count();
    if count < FEWEST {
        return None;
    }
    let enough = count - count / 10;
    let candidates = (0..blocks.len() as u32).filter(|block| graph.row(*block).len() >= enough);
    candidates
        .filter_map(|block| {
            let entries =
                Table { block, variables: variables(image, blocks, block, objects, &node)? };
            (entries.variables.len() >= enough).then_some(entries)
        })
        .max_by_key(|table| table.variables.len())
}

/// The objects' variables in a block, as far as it has entries of such a table: stale words follow those in use.
fn variables(
    image: &Image,
    blocks: &Blocks,
    number: u32,
    objects: &BitSet,
    node: &impl Fn(u64) -> Option<u32>,
) -> Option<FxHashMap<u32, u32>> {
    let block = blocks.get(number)?;
    let mut found = FxHashMap::default();
    let mut words = image.words(1 << 16);
    for entry in (0..block.size / ENTRY).map(|number| block.address + number * ENTRY) {
        let (hash, key) = (words.at(entry)?, words.at(entry + WORD)?);
        if hash != hash_of(key) {
            continue; // deleted, not used yet, or no entry
        }
        let Some(object) = node(key).filter(|object| objects.contains(*object)) else {
            continue;
        };
        let value = words.at(entry + 2 * WORD)?;
        found.extend(node(value).map(|value| (object, value)));
    }
    Some(found)
}

/// The hash of a number (`st_numhash`).
fn hash_of(key: u64) -> u64 {
    (key >> 11 | key << 3) ^ key >> 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_say_whether_an_object_is_in_it() {
        let (string, data) = (5, 12);
        assert!(is_in_table(data | 1 << 10));
        assert!(is_in_table(string | 1 << 10));
        assert!(!is_in_table(data));
        assert!(!is_in_table(1 << 10));
    }

    #[test]
    fn internal_objects_with_variables_have_a_type_of_their_own() {
        let internal = 26;
        let shape = 7 << 32;
        assert!(may_be_fields(internal | 13 << 12 | shape));
        assert!(!may_be_fields(internal | 13 << 12));
        assert!(!may_be_fields(internal | 12 << 12 | shape));
        assert!(!may_be_fields(5 | 13 << 12 | shape));
    }

    #[test]
    fn hashes_are_those_of_st_numhash() {
        // Values from st.c, for 64-bit keys.
        assert_eq!(hash_of(0), 0);
        assert_eq!(hash_of(8), 65);
        assert_eq!(hash_of(0x7f8c_2f8a_4310), 0x3_f39e_7826_b1aa);
    }
}

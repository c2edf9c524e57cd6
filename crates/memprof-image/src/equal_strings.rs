//! The VM's table of equal strings. It does not retain them, so its references do not count.
//!
//! The table is the block that references nearly all strings flagged as members. If an object leads to a block, as to the
//! elements of an Array of strings, the block belongs to that object. Since Ruby 4.0 the table belongs to an object of C code.

use memprof_heap::graph::{BitSet, Graph, referrers_of};

use crate::ruby_pages::ObjectType;

/// Flags of a string in the table.
const STRING: u64 = 5;
const TYPE: u64 = 0x1f;
const IN_TABLE: u64 = 1 << (12 + 17);
/// Types that may have their strings in a block of their own. In other types, words may only look like its address: a slot has
/// remains of earlier objects.
const OWNERS: [&str; 4] = ["ARRAY", "HASH", "OBJECT", "STRUCT"];
/// The minimum size of the table: any Ruby has thousands of strings in it.
const FEWEST: usize = 200;

/// Whether the flags of a slot are those of a string in the table.
pub fn is_in_table(flags: u64) -> bool {
    flags & TYPE == STRING && flags & IN_TABLE != 0
}

/// The blocks of the table: at most one. `strings` are the nodes of its members; nodes from `blocks` on are slots, whose types
/// `object` returns. `describes` says of a block whether it may describe the table of a Hash; in others, words may only look like
/// its address.
pub fn tables(
    graph: &Graph<'_>,
    blocks: u32,
    strings: &BitSet,
    object: impl Fn(u32) -> Option<ObjectType>,
    describes: impl Fn(u32) -> bool,
) -> Vec<u32> {
    let count = strings.count();
    let enough = count - count / 10;
    if count < FEWEST {
        return Vec::new();
    }
    let mut found: Vec<u32> = (0..blocks)
        .filter(|block| graph.row(*block).len() >= enough && has(graph, *block, strings, enough))
        .collect();
    if !found.is_empty() {
        found.retain(|table| !belongs_to_object(graph, blocks, *table, &object, &describes));
    }
    found
}

fn has(graph: &Graph<'_>, block: u32, strings: &BitSet, enough: usize) -> bool {
    let mut seen: Vec<u32> =
        graph.edges(block).filter(|target| strings.contains(*target)).collect();
    seen.sort_unstable();
    seen.dedup();
    seen.len() >= enough
}

/// Whether an object references the block, directly or through another block that describes it.
fn belongs_to_object(
    graph: &Graph<'_>,
    blocks: u32,
    table: u32,
    object: &impl Fn(u32) -> Option<ObjectType>,
    describes: &impl Fn(u32) -> bool,
) -> bool {
    let referrers = referrers_of(graph, table);
    let (describing, objects): (Vec<u32>, Vec<u32>) =
        referrers.into_iter().partition(|node| *node < blocks);
    let of_describing = (describing.iter().filter(|block| describes(**block)))
        .flat_map(|block| referrers_of(graph, *block))
        .filter(|node| *node >= blocks);
    (objects.into_iter().chain(of_describing))
        .filter_map(object)
        .any(|object| OWNERS.contains(&object.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKS: u32 = 3;
    const STRINGS: u32 = 300;

    /// The tables among blocks 0 to 2, of which block 0 has all strings, with an object behind them that references `owned`.
    fn tables_if(object: u64, owned: u32, in_block: u32) -> Vec<u32> {
        tables_where(object, owned, in_block, |_| true)
    }

    fn tables_where(
        object: u64,
        owned: u32,
        in_block: u32,
        describes: fn(u32) -> bool,
    ) -> Vec<u32> {
        let strings = BLOCKS..BLOCKS + STRINGS;
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); (BLOCKS + STRINGS + 1) as usize];
        rows[0] = strings.clone().take(in_block as usize).collect();
        rows[1] = vec![0];
        rows[(BLOCKS + STRINGS) as usize] = vec![owned];
        let mut offsets = vec![0];
        let targets: Vec<u32> = rows.concat();
        for row in &rows {
            offsets.push(offsets[offsets.len() - 1] + row.len() as u32);
        }
        let graph = Graph { offsets: &offsets, targets: &targets, ..Graph::default() };
        let all = BitSet::of(rows.len(), strings);
        tables(&graph, BLOCKS, &all, |_| ObjectType::of_flags(object), describes)
    }

    #[test]
    fn the_table_has_nearly_all_strings_and_no_object_of_ruby_has_it() {
        let (string, array, data) = (5, 7, 12);
        assert_eq!(tables_if(array, 2, STRINGS), [0]);
        assert_eq!(tables_if(array, 2, STRINGS - 20), [0]);
        assert!(tables_if(array, 2, STRINGS / 2).is_empty());
        // The elements of an Array, or of a Hash through its table.
        assert!(tables_if(array, 0, STRINGS).is_empty());
        assert!(tables_if(array, 1, STRINGS).is_empty());
        // A buffer of values has a remnant that looks like its address.
        assert_eq!(tables_where(array, 1, STRINGS, |_| false), [0]);
        // A short String has remains of an earlier object behind its text.
        assert_eq!(tables_if(string, 0, STRINGS), [0]);
        // Since Ruby 4.0 an object of C code references the table.
        assert_eq!(tables_if(data, 0, STRINGS), [0]);
    }

    #[test]
    fn flags_say_whether_a_string_is_in_it() {
        assert!(is_in_table(5 | 1 << 29));
        assert!(!is_in_table(5));
        assert!(!is_in_table(7 | 1 << 29));
    }
}

//! Known blocks of a process, found from outside.

#[path = "support/core_file.rs"]
#[allow(dead_code, reason = "of other tests")]
mod core_file;
mod support;

use memprof_image::{Analysis, Block, Image, Kind, SetName};
use support::Planted;

fn in_set(analysis: &Analysis, set: &str, size: std::ops::Range<u64>) -> Vec<Block> {
    let set: SetName = set.parse().expect("a set");
    let numbers = 0..analysis.heap.blocks.len() as u32;
    numbers
        .filter(|number| analysis.contains(set, *number))
        .filter_map(|number| analysis.block(number))
        .filter(|block| size.contains(&block.size))
        .collect()
}

fn sizes(analysis: &Analysis, set: &str, size: std::ops::Range<u64>) -> Vec<u64> {
    let blocks = in_set(analysis, set, size);
    blocks.iter().map(|block| block.size).collect()
}

#[test]
fn blocks_are_used_free_leaked_or_anchored() {
    let planted = Planted::start();
    let analysis = Analysis::new(planted.image());

    // What nothing references. A register or a word of the stack may still have one of them.
    assert!((999..=1000).contains(&in_set(&analysis, "leaked", 1000..1016).len()));
    assert!((999..=1000).contains(&in_set(&analysis, "unreferenced", 1000..1016).len()));
    // A block that a leaked one references is leaked, but not unreferenced; nor are those that reference each other.
    assert_eq!(
        sizes(&analysis, "leaked", 2000..2316),
        [2008, 2104, 2200, 2312]
    );
    assert_eq!(sizes(&analysis, "unreferenced", 2000..2316), [2104]);
    // A list, by an address in the middle of a block, too.
    assert_eq!(sizes(&analysis, "staticanchored", 2400..2416), [2408; 3]);
    assert_eq!(sizes(&analysis, "staticanchorpoints", 2400..2416), [2408]);
    assert!(sizes(&analysis, "leaked", 2400..2416).is_empty());
    // Mappings of their own.
    let large = in_set(&analysis, "staticanchored", 900_000..4_000_000);
    let mut addresses: Vec<u64> = large.iter().map(|block| block.address).collect();
    addresses.sort_unstable();
    let mut expected = planted.addresses[1..].to_vec();
    expected.sort_unstable();
    assert_eq!(addresses, expected);
    assert!(large.iter().all(|block| block.kind == Kind::Used));
    // What the thread keeps at hand, and what went back to the arena.
    assert!(in_set(&analysis, "threadcached", 500..516).len() >= 5);
    assert!(in_set(&analysis, "free", 5000..20_000).len() >= 5);
    assert_eq!(in_set(&analysis, "used", 5000..5016).len(), 10);
    // Blocks of a thread, in an arena of its own.
    assert_eq!(in_set(&analysis, "used", 7000..7016).len(), 50);
    assert_eq!(in_set(&analysis, "leaked", 7000..7016).len(), 0);
    assert!(analysis.heap.arenas.len() >= 2);
    assert!(analysis.heap.corruptions.is_empty());
    assert_eq!(analysis.heap.skipped, 0);
}

#[test]
fn blocks_and_what_is_free_fill_the_arenas() {
    let planted = Planted::start();
    let analysis = Analysis::new(planted.image());
    for (arena, top) in analysis.heap.arenas.iter().zip(&analysis.heap.tops) {
        for heap in &arena.heaps {
            let blocks = analysis
                .heap
                .blocks
                .iter()
                .filter(|block| heap.contains(&block.address));
            // Each has a word for its size.
            let bytes: u64 = blocks.map(|block| block.size + 8).sum();
            assert_eq!(bytes + top, heap.end - heap.start);
        }
    }
}

#[test]
fn mapped_blocks_are_found_as_glibc_2_43_has_them() {
    let planted = Planted::start();
    let image = planted.image();
    let mut core = core_file::core_of(&image);
    let before = Analysis::new(planted.image());
    for address in &planted.addresses[1..] {
        // The chunk of the block, and that of the whole mapping where an alignment moved the block.
        let chunk = address - 16;
        let distance = image.word(chunk).expect("a header");
        for header in [chunk - distance, chunk] {
            let words = [header, header + 8].map(|at| image.word(at).expect("a header"));
            let old: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let Some(place) = core.windows(16).position(|window| window == old) else {
                continue; // the two are one
            };
            core[place + 8..place + 16].copy_from_slice(&(words[1] - 16).to_le_bytes());
        }
    }
    let after = Analysis::new(Image::of_core(core_file::file(&core)).expect("a core"));
    let block = |analysis: &Analysis, address: &u64| {
        let number = analysis.heap.blocks.at(*address).expect("a block");
        analysis.block(number).expect("a block").size
    };
    for address in &planted.addresses[1..] {
        assert_eq!(block(&after, address), block(&before, address) - 8);
    }
    assert_eq!(after.heap.mapped, before.heap.mapped);
}

#[test]
fn no_page_of_ruby_is_found_where_there_is_none() {
    let planted = Planted::start();
    let analysis = Analysis::new(planted.image());
    assert_eq!(analysis.ruby.pages, []);
}

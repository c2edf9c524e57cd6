//! Known blocks of a process, found from outside.

#[path = "support/core_file.rs"]
#[allow(dead_code, reason = "of other tests")]
mod core_file;
mod support;

use memprof_image::{Analysis, Block, Image, Kind, Mismatch, SetName, questions};
use memprof_recording::{Frame, LiveBlock, LiveBlocks, Node, Place, Stacks, Summary};
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

    // Unreferenced blocks. A register or a stale word of the stack may still reference one of them.
    assert!((999..=1000).contains(&in_set(&analysis, "leaked", 1000..1016).len()));
    assert!((999..=1000).contains(&in_set(&analysis, "unreferenced", 1000..1016).len()));
    // A block referenced by a leaked one is leaked, but not unreferenced; neither are blocks that reference each other.
    assert_eq!(sizes(&analysis, "leaked", 2000..2316), [2008, 2104, 2200, 2312]);
    assert_eq!(sizes(&analysis, "unreferenced", 2000..2316), [2104]);
    // A list, also through an address in the middle of a block.
    assert_eq!(sizes(&analysis, "staticanchored", 2400..2416), [2408; 3]);
    assert_eq!(sizes(&analysis, "staticanchorpoints", 2400..2416), [2408]);
    assert!(sizes(&analysis, "leaked", 2400..2416).is_empty());
    // Blocks with a mapping of their own.
    let large = in_set(&analysis, "staticanchored", 900_000..4_000_000);
    let mut addresses: Vec<u64> = large.iter().map(|block| block.address).collect();
    addresses.sort_unstable();
    let mut expected = planted.addresses[1..].to_vec();
    expected.sort_unstable();
    assert_eq!(addresses, expected);
    assert!(large.iter().all(|block| block.kind == Kind::Used));
    // Blocks in the tcache, and blocks returned to the arena.
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
            let blocks = analysis.heap.blocks.iter().filter(|block| heap.contains(&block.address));
            // Each block has a word for its size.
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
        // The chunk of the block, and that of the whole mapping if alignment moved the block.
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

/// `leak` in line 3, called from line 9.
fn stacks() -> Stacks {
    let frame = |line, method: &str| Frame::Ruby {
        path: "app.rb".to_owned(),
        line,
        method: method.to_owned(),
    };
    Stacks {
        frames: vec![frame(9, "<main>"), frame(3, "leak")],
        nodes: vec![Node { parent: None, frame: 0 }, Node { parent: Some(0), frame: 1 }],
        counts: Vec::new(),
    }
}

/// A recording of a process with these blocks, all allocated at one line.
fn recording(pid: u64, blocks: &[(u64, u64)]) -> LiveBlocks {
    let blocks =
        blocks.iter().map(|&(address, size)| LiveBlock { address, size, place: 0, node: 1 });
    LiveBlocks {
        blocks: Some(blocks.collect()),
        places: vec![Place { location: "app.rb:3".to_owned(), method: "leak".to_owned() }],
        summary: Summary { pid, stacks: stacks(), ..Summary::default() },
        ended: false,
    }
}

fn ask(analysis: &Analysis, question: &str, parameters: serde_json::Value) -> serde_json::Value {
    let answer = questions::ask(analysis, question, parameters).expect("an answer");
    serde_json::from_str(&answer).expect("JSON")
}

#[test]
fn blocks_of_another_allocator_are_not_counted_as_none() {
    let planted = Planted::start();
    let mut image = planted.image();
    image.files.push("/usr/lib/libjemalloc.so.2".to_owned());
    // glibc's arena may be older than the other allocator, and without a page of Ruby it is unknown which one the program uses.
    let both = ask(&Analysis::new(image), "overview", serde_json::json!({}));
    assert_eq!(both["unknown"], "the process uses jemalloc, whose blocks memprof cannot read");
    assert!(both["leaked"].is_null());

    let mut image = planted.image();
    image.segments.retain(|segment| !segment.access.write);
    let without = Analysis::new(image);
    let overview = ask(&without, "overview", serde_json::json!({}));
    assert!(overview["leaked"].is_null() && overview["unknown"].is_string());
    for question in ["arenas", "count", "list", "summarize"] {
        let refusal = questions::ask(&without, question, serde_json::json!({}));
        assert!(matches!(refusal, Err(questions::Refusal::Unknown(_))), "{question}");
    }
}

#[test]
fn a_recording_knows_where_blocks_were_allocated() {
    let planted = Planted::start();
    let analysis = Analysis::new(planted.image());
    let pid = u64::from(analysis.image.pid.unwrap_or(7));
    let leaked = in_set(&analysis, "leaked", 1000..1016);
    let free = in_set(&analysis, "free", 5000..20_000)[0];
    let large = planted.addresses[1];
    let large_size = analysis.heap.blocks.at(large).and_then(|number| analysis.block(number));
    // The first ones unchanged, a mapped one with the rest of its page, and two that have been replaced by others.
    let mut blocks: Vec<_> =
        leaked[..10].iter().map(|block| (block.address, block.size - 8)).collect();
    blocks.push((large, large_size.expect("a block").size - 4000));
    blocks.push((leaked[10].address, 300));
    blocks.push((leaked[11].address, 1100));
    blocks.push((free.address, free.size));
    analysis.add_recording(recording(pid, &blocks), &[]).expect("it fits");

    let overview = ask(&analysis, "overview", serde_json::json!({}));
    assert_eq!(overview["recording"]["known"]["count"], 11);
    let used = overview["used"]["count"].as_u64().expect("a number");
    assert_eq!(overview["recording"]["unknown"]["count"], used - 11);
    let describe = |address: u64| {
        let address = format!("{address:#x}");
        ask(&analysis, "describe", serde_json::json!({ "address": address }))
    };
    for known in [leaked[0].address, leaked[9].address, large] {
        let answer = describe(known);
        assert_eq!(
            (&answer["allocated_at"], &answer["method"]),
            (&"app.rb:3".into(), &"leak".into())
        );
    }
    for unknown in [leaked[10].address, leaked[11].address, leaked[12].address, free.address] {
        assert!(describe(unknown).get("allocated_at").is_none());
    }
    let address = format!("{:#x}", leaked[0].address + 8);
    let explained = ask(&analysis, "explain", serde_json::json!({ "address": address }));
    let stack = serde_json::json!(["leak (app.rb:3)", "<main> (app.rb:9)"]);
    assert_eq!(explained["stack"], stack);
    let set = serde_json::json!({ "set": "leaked", "min_size": 1000, "max_size": 1015 });
    let summary = ask(&analysis, "summarize", set);
    assert_eq!(summary["places"][0]["allocated_at"], "app.rb:3");
    assert_eq!(summary["places"][0]["count"], 10);
    assert_eq!(summary["unknown"]["count"], leaked.len() - 10);
}

#[test]
fn a_recording_of_another_process_is_refused() {
    let planted = Planted::start();
    let mut image = planted.image();
    image.pid = Some(7);
    let analysis = Analysis::new(image);
    let block = in_set(&analysis, "used", 1000..1016)[0];
    let fits = [(block.address, block.size)];
    let other = analysis.add_recording(recording(8, &fits), &[7, 9]);
    assert_eq!(other, Err(Mismatch::OtherProcess(8)));
    // Another process with the same id.
    let other = analysis.add_recording(recording(7, &[(block.address + 16, 1000)]), &[]);
    assert_eq!(other, Err(Mismatch::OtherMemory));
    let without = LiveBlocks { blocks: None, ..recording(7, &[]) };
    assert_eq!(analysis.add_recording(without, &[]), Err(Mismatch::NoAddresses));
    assert!(analysis.recorded().is_none());
    // The id in a container.
    assert_eq!(analysis.add_recording(recording(8, &fits), &[7, 8]), Ok(()));
    // A recording that has just begun has no blocks.
    let analysis = Analysis::new(planted.image());
    let pid = u64::from(analysis.image.pid.unwrap_or(7));
    assert_eq!(analysis.add_recording(recording(pid, &[]), &[]), Ok(()));
}

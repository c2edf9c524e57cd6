//! Damaged core files: an error or an answer, but no panic, no endless loop, and no excessive memory use.

#[path = "support/core_file.rs"]
mod core_file;
mod support;

use std::fs::File;

use core_file::{DamagedCore, Numbers, core_of, file};
use memprof_image::questions::{self, Refusal};
use memprof_image::{Analysis, Image};
use serde_json::{Value, json};
use support::Planted;

/// The answer; null if the damaged core does not have it.
fn ask(analysis: &Analysis, question: &str, parameters: Value) -> Value {
    match questions::ask(analysis, question, parameters) {
        Ok(answer) => serde_json::from_str(&answer).expect("JSON"),
        Err(Refusal::Unknown(_)) => Value::Null,
        Err(wrong) => panic!("{question}: {wrong}"),
    }
}

/// Asks all questions that read much memory.
fn examine(file: File) {
    let Ok(image) = Image::of_core(file) else {
        return;
    };
    let analysis = Analysis::new(image);
    for question in ["overview", "arenas", "objects"] {
        ask(&analysis, question, json!({}));
    }
    for set in ["leaked", "used", "free", "threadcached"] {
        let listed = ask(&analysis, "list", json!({ "selection": { "set": set }, "limit": 5 }));
        for block in listed["blocks"].as_array().into_iter().flatten() {
            let address = &block["address"];
            ask(&analysis, "explain", json!({ "address": address }));
            ask(&analysis, "count", json!({ "set": "chain", "of": address, "offset": 0 }));
        }
    }
    ask(&analysis, "summarize", json!({ "set": "used", "min_incoming": 1, "min_outgoing": 1 }));
}

#[test]
fn a_core_says_what_the_process_said() {
    let planted = Planted::start();
    let image = planted.image();
    let core = core_of(&image);
    let from_core = Analysis::new(Image::of_core(file(&core)).expect("a core"));
    let from_process = Analysis::new(image);
    assert_eq!(from_core.image.threads.len(), 1);
    assert_eq!(from_core.image.missing, 0);
    for set in ["allocations", "used", "free", "threadcached"] {
        let selection = json!({ "set": set });
        assert_eq!(
            ask(&from_core, "count", selection.clone()),
            ask(&from_process, "count", selection)
        );
    }
}

#[test]
fn cut_cores_say_what_is_missing() {
    let planted = Planted::start();
    let core = core_of(&planted.image());
    for part in 0..40 {
        examine(file(&core[..core.len() * part / 40]));
    }
    for end in (0..2000).step_by(37) {
        examine(file(&core[..end]));
    }
    let image = Image::of_core(file(&core[..core.len() - 4096])).expect("a core");
    assert!(image.missing >= 4096);
}

#[test]
fn flipped_bits_and_wild_words_do_no_harm() {
    let planted = Planted::start();
    let core = core_of(&planted.image());
    let analysis = Analysis::new(Image::of_core(file(&core)).expect("a core"));
    // The places of the header, arenas, chunks and lists.
    let mut interesting: Vec<u64> = (0..4000).collect();
    let segment = |address| {
        analysis.image.segment(address).map(|segment| segment.offset + (address - segment.start))
    };
    for arena in &analysis.heap.arenas {
        interesting.extend(segment(arena.address).into_iter().flat_map(|at| at..at + 2200));
    }
    let blocks = analysis.heap.blocks.iter().take(3000);
    interesting.extend(blocks.filter_map(|block| segment(block.address - 8)));
    let mut copy = DamagedCore::new(&core);
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    const WILD: [u64; 8] = [0, 1, 0x10, 0x21, u64::MAX, 1 << 63, 0x7fff_ffff_fff0, 1 << 47];
    for _ in 0..300 {
        for _ in 0..=numbers.below(6) {
            let at = interesting[numbers.below(interesting.len() as u64) as usize];
            let value = match numbers.below(3) {
                0 => WILD[numbers.below(8) as usize],
                1 => copy.word(at) ^ (1 << numbers.below(64)),
                // A pointer to somewhere else in the heap.
                _ => analysis
                    .block(numbers.below(analysis.heap.blocks.len() as u64) as u32)
                    .map_or(0, |block| block.address),
            };
            copy.overwrite(at, value);
        }
        examine(copy.file());
        copy.restore();
    }
}

#[test]
fn other_files_are_refused() {
    let refused = |bytes: &[u8]| Image::of_core(file(bytes)).expect_err("no core").to_string();
    assert_eq!(refused(b""), "this is not an ELF core file");
    assert_eq!(refused(b"[{\"type\":\"ROOT\"}]"), "this is not an ELF core file");
    let mut core = core_of(&Planted::start().image());
    core[4] = 1;
    assert!(refused(&core).contains("another architecture"));
    (core[4], core[18]) = (2, 243);
    assert_eq!(refused(&core), "this is a core file of machine 243; x86-64 and aarch64 are read");
    (core[16], core[18]) = (2, 62);
    assert_eq!(refused(&core), "this is an ELF file, but no core file");
}

//! Arbitrarily damaged dumps: no panic, no hang, and records only for existing data.

use std::io::{self, Cursor};

use super::golden::Words;
use super::{BINARY, MEMPROF, OBJSPACE, made};
use crate::format::{Compression, Format, Options};
use crate::read::convert;
use crate::record::{Counts, Edge, NoteKind, Object, Shape, Tables};
use crate::testing::{Random, options, values};
use crate::values::Policy;
use crate::writer::Writer;

/// Counts objects and references.
#[derive(Default)]
struct Sum {
    counts: Counts,
    open: bool,
}

impl Writer for Sum {
    fn note(&mut self, _: &Tables, _: NoteKind, json: &str) -> io::Result<()> {
        let note: serde_json::Value = serde_json::from_str(json).expect("a note is JSON");
        assert!(note.is_object());
        Ok(())
    }

    fn roots(&mut self, _: &Tables, _: &str, edges: &[Edge<'_>]) -> io::Result<()> {
        assert!(!self.open);
        self.counts.roots += edges.len() as u64;
        Ok(())
    }

    fn shape(&mut self, _: &Tables, _: &Shape) -> io::Result<()> {
        assert!(!self.open);
        Ok(())
    }

    fn object(&mut self, _: &Tables, _: &Object<'_>) -> io::Result<()> {
        assert!(!self.open);
        self.open = true;
        self.counts.objects += 1;
        Ok(())
    }

    fn edges(&mut self, _: &Tables, edges: &[Edge<'_>]) -> io::Result<()> {
        assert!(self.open);
        self.counts.references += edges.len() as u64;
        Ok(())
    }

    fn end(&mut self, _: &Tables) -> io::Result<()> {
        self.open = false;
        Ok(())
    }

    fn finish(&mut self, _: &Tables, _: bool) -> io::Result<Counts> {
        Ok(self.counts)
    }
}

/// Tokens that readers search for.
const TOKENS: [&[u8]; 24] = [
    b"\"",
    b"\\",
    b"\n",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"null",
    b"true",
    b"0x",
    b"\"0xffffffffffffffff\"",
    b"18446744073709551616",
    b"-1",
    b"1e999",
    b"\\u",
    b"\\ud800",
    b"\xff",
    b"\0",
    b"\"references\":[",
    b"\"labels\":[null,",
    b"\"data\":[[",
    b", \"file\":\"",
];

fn mutate(dump: &[u8], random: &mut Random) -> Vec<u8> {
    let mut dump = dump.to_vec();
    for _ in 0..=random.below(3) {
        let place = random.below(dump.len() as u64) as usize;
        let end = (place + random.below(200) as usize).min(dump.len());
        match random.below(6) {
            0 => dump[place] = random.below(256) as u8,
            1 => drop(dump.drain(place..end)),
            2 => {
                let piece = dump[place..end].to_vec();
                let to = random.below(dump.len() as u64) as usize;
                dump.splice(to..to, piece);
            }
            3 => {
                let token = TOKENS[random.below(TOKENS.len() as u64) as usize];
                dump.splice(place..place, token.iter().copied());
            }
            4 => {
                let token = TOKENS[random.below(TOKENS.len() as u64) as usize];
                let end = (place + token.len()).min(dump.len());
                dump.splice(place..end, token.iter().copied());
            }
            _ => dump[place..end].fill(random.below(256) as u8),
        }
        if dump.is_empty() {
            break;
        }
    }
    dump
}

/// Small dumps in all formats.
pub(super) fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let packed = |compression| Options { compression, ..MEMPROF };
    vec![
        ("memprof.json", made(MEMPROF, 3, 12)),
        ("objspace.json", made(OBJSPACE, 3, 12)),
        ("heap_dump.json", made(options(Format::HeapDump), 3, 12)),
        ("binary.memprof", made(BINARY, 3, 12)),
        ("memprof.json.gz", made(packed(Compression::Gzip), 3, 5)),
        ("memprof.json.zst", made(packed(Compression::Zstd), 3, 5)),
        ("ruby-2.1.json", include_bytes!("golden/ruby-2.1.json").to_vec()),
        ("ruby-2.7.json", include_bytes!("golden/ruby-2.7.json").to_vec()),
        ("ruby-3.2.json", include_bytes!("golden/ruby-3.2.json").to_vec()),
        ("ruby-4.0.json", include_bytes!("golden/ruby-4.0.json").to_vec()),
        ("memprof-0.3.json", include_bytes!("golden/memprof-0.3.json").to_vec()),
        ("heap_dump-gem.json", include_bytes!("golden/heap_dump.json").to_vec()),
    ]
}

/// The starting points of the fuzzer.
fn corpus() -> Vec<(&'static str, Vec<u8>)> {
    let mut corpus = seeds();
    let made = [
        ("memprof.json", MEMPROF),
        ("objspace.json", OBJSPACE),
        ("heap_dump.json", options(Format::HeapDump)),
    ];
    corpus
        .retain(|(name, _)| made.iter().all(|(other, _)| name != other) && name.ends_with("json"));
    for (name, options) in made {
        let small = (1..100).map(|seed| super::made(options, seed, 8));
        corpus.push((name, small.min_by_key(Vec::len).expect("a dump")));
    }
    corpus
}

/// Rewrite it with `UPDATE_SNAPSHOTS=1 cargo test corpus`.
#[test]
fn the_corpus_of_the_fuzzer_is_what_is_made_here() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/read");
    let update = std::env::var_os("UPDATE_SNAPSHOTS").is_some();
    let mut bytes = 0;
    for (name, dump) in corpus() {
        let path = std::path::Path::new(directory).join(name);
        if update {
            std::fs::create_dir_all(directory).unwrap();
            std::fs::write(&path, &dump).unwrap();
        }
        assert!(std::fs::read(&path).unwrap() == dump, "{name}");
        bytes += dump.len();
    }
    assert!(bytes < 100 * 1024, "{bytes}");
}

#[test]
fn no_mutant_does_harm() {
    let mut random = Random(4711);
    for (name, seed) in seeds() {
        for number in 0..2500 {
            let mutant = mutate(&seed, &mut random);
            let lines = mutant.split(|byte| *byte == b'\n').count() as u64;
            let mut sum = Sum::default();
            let input = Box::new(Cursor::new(mutant));
            let Ok(outcome) = convert(input, &mut sum, values(Policy::Full)) else {
                continue;
            };
            let text = !name.ends_with("memprof") && !name.ends_with('z') && !name.ends_with("st");
            if text {
                assert!(outcome.counts.objects + outcome.skipped <= lines, "{name} {number}");
            }
            assert!(outcome.counts.objects < 1000, "{name} {number}");
        }
    }
}

#[test]
fn a_broken_line_does_not_hurt_others() {
    for (name, seed) in seeds() {
        if !name.ends_with(".json") {
            continue;
        }
        let whole = super::golden::words(&seed).0;
        let lines: Vec<&[u8]> = seed.split_inclusive(|byte| *byte == b'\n').collect();
        let mut random = Random(99);
        for _ in 0..200 {
            let broken = 1 + random.below(lines.len() as u64 - 2) as usize;
            let line = lines[broken];
            let cut = 1 + random.below(line.len() as u64 - 1) as usize;
            let mut dump = lines[..broken].concat();
            dump.extend_from_slice(&line[..cut]);
            dump.push(b'\n');
            dump.extend_from_slice(&lines[broken + 1..].concat());
            let (words, outcome) = super::golden::words(&dump);
            let missing = missing(&whole, &words);
            assert!(outcome.skipped <= 1, "{name} {broken} {cut}");
            if outcome.skipped == 1 {
                assert_eq!(outcome.first_skipped, Some(broken as u64 + 1));
            }
            assert!(missing <= 1, "{name} {broken} {cut}: {missing}");
        }
    }
}

/// Number of objects in one dump that are missing in the other.
fn missing(whole: &Words, part: &Words) -> usize {
    // Site numbers differ.
    let address = |line: &String| line.split(", class").next().map(str::to_owned);
    let part: Vec<_> = part.lines.iter().map(address).collect();
    let whole = whole.lines.iter().filter(|line| line.starts_with("Object"));
    whole.filter(|line| !part.contains(&address(line))).count()
}

mod cut;
mod golden;
mod hostile;
mod limits;
mod mutants;
mod policy;
mod real;
mod streams;

use crate::format::{Compression, Format, Options};
use crate::testing::{converted, made, options};
use crate::values::Policy;

const MEMPROF: Options = options(Format::Memprof);
const OBJSPACE: Options = options(Format::Objspace);
const BINARY: Options = options(Format::Binary);

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("JSON is UTF-8")
}

/// Fails with the first line that differs.
fn assert_same(one: &[u8], other: &[u8]) {
    for (one, other) in text(one).lines().zip(text(other).lines()) {
        assert_eq!(one, other);
    }
    assert_eq!(one.len(), other.len());
}

#[test]
fn every_line_is_json() {
    for options in [MEMPROF, OBJSPACE] {
        for seed in 1..20 {
            for line in text(&made(options, seed, 200)).lines() {
                let json: serde_json::Value = serde_json::from_str(line).expect(line);
                assert!(json.is_object());
            }
        }
    }
}

#[test]
fn binary_keeps_all_that_memprof_shows() {
    for seed in 1..40 {
        let direct = made(MEMPROF, seed, 300);
        let binary = made(BINARY, seed, 300);
        let (back, outcome) = converted(&binary, MEMPROF, Policy::Full);
        assert_same(&direct, &back);
        assert_eq!(outcome.format, Format::Binary);
        assert_eq!((outcome.truncated, outcome.skipped), (false, 0));
        assert_eq!(outcome.counts.objects, 300);
    }
}

#[test]
fn binary_keeps_all_that_objspace_shows() {
    for seed in 1..20 {
        let direct = made(OBJSPACE, seed, 300);
        let binary = made(BINARY, seed, 300);
        let (back, _) = converted(&binary, OBJSPACE, Policy::Full);
        assert_same(&direct, &back);
    }
}

#[test]
fn memprof_lines_are_read_as_they_were_written() {
    for seed in 1..40 {
        let lines = made(MEMPROF, seed, 300);
        let (same, outcome) = converted(&lines, MEMPROF, Policy::Full);
        assert_same(&lines, &same);
        assert_eq!((outcome.truncated, outcome.skipped), (false, 0));
        let (binary, _) = converted(&lines, BINARY, Policy::Full);
        let (back, _) = converted(&binary, MEMPROF, Policy::Full);
        assert_same(&lines, &back);
    }
}

#[test]
fn objspace_lines_are_read_as_they_were_written() {
    for seed in 1..40 {
        let lines = made(OBJSPACE, seed, 300);
        for format in [OBJSPACE, BINARY, MEMPROF] {
            let (other, outcome) = converted(&lines, format, Policy::Full);
            assert_eq!(outcome.skipped, 0);
            let (back, _) = converted(&other, OBJSPACE, Policy::Full);
            assert_same(&lines, &back);
        }
    }
}

#[test]
fn heap_dump_is_read_as_it_was_written() {
    let options = options(Format::HeapDump);
    for seed in 1..40 {
        let array = made(options, seed, 300);
        let (same, outcome) = converted(&array, options, Policy::Full);
        assert_same(&array, &same);
        assert_eq!((outcome.truncated, outcome.skipped), (false, 0));
    }
}

#[test]
fn many_blocks_are_one_dump() {
    let direct = made(MEMPROF, 5, 40_000);
    let binary = made(BINARY, 5, 40_000);
    let (back, _) = converted(&binary, MEMPROF, Policy::Full);
    assert_same(&direct, &back);
}

#[test]
fn compression_is_found_by_content() {
    let plain = made(MEMPROF, 3, 100);
    for compression in [Compression::Gzip, Compression::Zstd] {
        let options = Options { compression, ..MEMPROF };
        let packed = made(options, 3, 100);
        assert!(packed.len() < plain.len());
        let (back, outcome) = converted(&packed, MEMPROF, Policy::Full);
        assert_same(&plain, &back);
        assert!(!outcome.truncated);
    }
}

//! Dumps with missing or damaged parts.

use std::io::{self, Cursor};

use super::{BINARY, MEMPROF, OBJSPACE, converted, made, text};
use crate::format::{Compression, Options, create};
use crate::read::{Outcome, convert};
use crate::testing::{Random, options, scratch, values};
use crate::values::Policy;

/// Reads input that may not be a dump.
fn read(bytes: Vec<u8>) -> io::Result<Outcome> {
    let mut dump = create(scratch(), options(crate::Format::Memprof))?;
    convert(Box::new(Cursor::new(bytes)), &mut dump, values(Policy::Full))
}

#[test]
fn a_cut_at_any_byte_is_reported() {
    let gzip = Options { compression: Compression::Gzip, ..MEMPROF };
    let zstd = Options { compression: Compression::Zstd, ..MEMPROF };
    for options in [MEMPROF, BINARY, gzip, zstd] {
        let whole = made(options, 9, 6);
        let objects = read(whole.clone()).unwrap().counts.objects;
        for end in 0..whole.len() {
            // The trailer of a binary dump and the end of a compressed stream follow the last record.
            match read(whole[..end].to_vec()) {
                Ok(outcome) if outcome.truncated => assert!(outcome.counts.objects <= objects),
                Ok(outcome) => assert_eq!(outcome.counts.objects, objects),
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
                    // A small compressed file is a single piece, unreadable before its end.
                    let packed = options.compression != Compression::None;
                    assert!(end < 100 || packed, "{end}: {error}");
                }
            }
        }
    }
}

#[test]
fn what_comes_before_the_break_is_there() {
    let lines = made(MEMPROF, 2, 50);
    let middle = lines.len() / 2;
    let (before, outcome) = converted(&lines[..middle], MEMPROF, Policy::Full);
    assert!(outcome.truncated);
    assert_eq!(outcome.skipped, 0);
    assert!(outcome.counts.objects > 5);
    assert!(lines.starts_with(&before));
    assert!(!text(&before).contains("footer"));
}

#[test]
fn a_cut_objspace_dump_shows_in_its_last_line() {
    let lines = made(OBJSPACE, 2, 50);
    assert!(!read(lines.clone()).unwrap().truncated);
    assert!(!read(lines[..lines.len() - 1].to_vec()).unwrap().truncated);
    assert!(read(lines[..lines.len() - 2].to_vec()).unwrap().truncated);
}

#[test]
fn broken_lines_are_counted() {
    let mut lines: Vec<String> = text(&made(MEMPROF, 4, 50)).lines().map(str::to_owned).collect();
    lines[20].replace_range(10..12, "\"\"");
    lines[30] = "{\"_id\":\"0x10\"}".to_owned();
    lines[33].clear();
    let outcome = read(lines.join("\n").into_bytes()).unwrap();
    assert_eq!((outcome.skipped, outcome.first_skipped), (2, Some(21)));
    assert!(!outcome.truncated);
}

#[test]
fn a_block_that_fails_its_checksum_is_left_out() {
    let whole = made(BINARY, 5, 40_000);
    let objects = read(whole.clone()).unwrap().counts.objects;
    for place in [100, whole.len() / 2] {
        let mut broken = whole.clone();
        broken[place] ^= 1;
        let outcome = read(broken).unwrap();
        assert_eq!(outcome.skipped, 1);
        assert!(!outcome.truncated);
        assert!(outcome.counts.objects < objects && outcome.counts.objects > objects / 4);
    }
}

#[test]
fn flipped_bytes_do_no_harm() {
    let mut random = Random(77);
    let compressed = Options { compression: Compression::Zstd, ..MEMPROF };
    for options in [BINARY, MEMPROF, OBJSPACE, compressed] {
        let whole = made(options, 6, 30);
        for _ in 0..1500 {
            let mut broken = whole.clone();
            for _ in 0..=random.below(4) {
                let place = random.below(broken.len() as u64) as usize;
                broken[place] = random.below(256) as u8;
            }
            // Any result is fine, but no panic, and no memory for bogus sizes.
            if let Ok(outcome) = read(broken) {
                assert!(outcome.counts.objects <= 60);
            }
        }
    }
}

#[test]
fn what_is_no_dump_is_refused() {
    let refused = |bytes: &[u8]| read(bytes.to_vec()).unwrap_err().to_string();
    assert_eq!(refused(b""), "the file is empty");
    assert!(refused(b"# Readme\nhello\n").contains("line 1: "));
    assert!(refused(b"\x7fELF\x02\x01\x01\0\0\0").contains("this is not a heap dump"));
    assert!(refused(b"memprof\x89\x07\0").contains("version 7"));
    assert!(refused(b"\n\n").contains("only blanks"));
    assert!(refused(b"\x1f\x8bnonsense").contains("compressed"));
}

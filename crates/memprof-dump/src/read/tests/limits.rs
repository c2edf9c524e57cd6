//! Dumps and records that exceed their limits.

use std::io::{self, Cursor, Write};

use super::golden::Words;
use super::{BINARY, MEMPROF, OBJSPACE, made};
use crate::read::{Limits, Options, read};
use crate::testing::values;
use crate::values::Policy;

const MIB: u64 = 1024 * 1024;

fn read_with(dump: Vec<u8>, limits: Limits) -> Result<u64, (io::ErrorKind, String)> {
    let options = Options { limits, ..Options::from(values(Policy::Full)) };
    let outcome = read(Box::new(Cursor::new(dump)), &mut Words::default(), &options);
    outcome.map(|outcome| outcome.counts.objects).map_err(|error| (error.kind(), error.to_string()))
}

fn of_record(record: u64) -> Limits {
    Limits { record, ..Limits::default() }
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text).unwrap();
    gzip.finish().unwrap()
}

/// An objspace line that repeats a part `count` times.
fn line(before: &str, again: &str, count: u64, after: &str) -> Vec<u8> {
    let first = r#"{"address":"0x1000", "type":"OBJECT", "ivars":0, "memsize":40}"#;
    let middle = again.repeat(count as usize);
    let line = r#"{"address":"0x2000", "#;
    format!("{first}\n{line}{before}{middle}{after}\n").into_bytes()
}

fn text(bytes: u64) -> Vec<u8> {
    line(r#""type":"STRING", "value":""#, "a", bytes, r#"", "memsize":40}"#)
}

#[test]
fn a_text_may_be_as_large_as_the_limit() {
    assert_eq!(read_with(gzip(&text(3 * MIB)), of_record(4 * MIB)), Ok(2));
    let (kind, message) = read_with(gzip(&text(8 * MIB)), of_record(4 * MIB)).unwrap_err();
    assert_eq!(kind, io::ErrorKind::FileTooLarge);
    assert_eq!(message, "the record in line 2 is larger than the limit of 4 MiB");
}

#[test]
fn a_record_of_a_small_dump_of_unknown_origin_is_small() {
    assert_eq!(Limits::strict(1000).record, 64 * MIB);
    assert_eq!(Limits::strict(1600 * MIB).record, 100 * MIB);
    assert_eq!(Limits::strict(1 << 40).record, 512 * MIB);
}

#[test]
fn values_of_a_list_count_as_well() {
    let lists = [
        line(
            r#""type":"ARRAY", "length":1, "references":["#,
            r#""0x1000", "#,
            MIB,
            r#""0x1000"], "memsize":40}"#,
        ),
        line(
            r#""type":"ARRAY", "length":1, "references":["#,
            r#""0x1","#,
            MIB,
            r#""0x1"], "memsize":40}"#,
        ),
    ];
    for list in lists {
        assert_eq!(read_with(list.clone(), of_record(32 * MIB)), Ok(2));
        let (_, message) = read_with(list, of_record(4 * MIB)).unwrap_err();
        assert!(message.starts_with("the record in line 2 is"), "{message}");
    }
}

#[test]
fn what_is_not_kept_is_of_any_length() {
    let other =
        line(r#""type":"OBJECT", "ivars":0, "other":""#, "a", 8 * MIB, r#"", "memsize":40}"#);
    assert_eq!(read_with(other, of_record(MIB)), Ok(2));
    assert_eq!(read_with(text(100).repeat(20_000), of_record(MIB)), Ok(40_000));
}

#[test]
fn a_block_of_the_binary_format_is_bounded() {
    let (kind, message) = read_with(made(BINARY, 1, 3000), of_record(1000)).unwrap_err();
    assert_eq!(kind, io::ErrorKind::FileTooLarge);
    assert_eq!(message, "one of its blocks is larger than the limit of 1000 bytes");
}

#[test]
fn all_of_a_dump_may_be_as_large_as_the_limit() {
    for options in [MEMPROF, OBJSPACE] {
        let dump = made(options, 3, 500);
        let size = dump.len() as u64;
        let total = |total| Limits { total, ..Limits::default() };
        assert_eq!(read_with(gzip(&dump), total(size)), Ok(500));
        let (kind, message) = read_with(gzip(&dump), total(size - 1)).unwrap_err();
        assert_eq!(kind, io::ErrorKind::FileTooLarge);
        assert!(message.starts_with("unpacked, it is larger than the limit of "));
    }
    let message = read_with(made(BINARY, 1, 3000), Limits::strict(1000)).unwrap_err().1;
    assert_eq!(message, "unpacked, it is larger than the limit of 1000 bytes");
}

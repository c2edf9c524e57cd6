//! Compares a dump written by this machine's Ruby with serde_json's reading of it.

use std::collections::HashMap;
use std::process::Command;

use serde_json::Value as Json;

use super::converted;
use crate::format::{Compression, Format, Options};
use crate::values::Policy;

/// Objects of all kinds, and a path that makes lines invalid JSON.
const PROGRAM: &str = r#"
require "objspace"
ObjectSpace.trace_object_allocations_start
KEPT = [Array.new(100) { |i| "text #{i}\e\x01 \u00e9" }, { 1 => 2.5e300, s: 1 }, Struct.new(:a).new(1), 1 << 80, /x/]
eval('MORE = Array.new(10) { "weird " + rand.to_s }', binding, 'we"ird, dir/a.rb', 7)
ObjectSpace.dump_all(output: $stdout)
"#;

/// The version of this machine's Ruby, and a dump written by it.
fn dump() -> Option<((u8, u8), Vec<u8>)> {
    let version = Command::new("ruby").args(["-e", "print RUBY_VERSION"]).output().ok()?;
    let version = String::from_utf8(version.stdout).ok()?;
    let mut parts = version.split('.').map(str::parse);
    let version = (parts.next()?.ok()?, parts.next()?.ok()?);
    let dump = Command::new("ruby").args(["-e", PROGRAM]).output().ok()?;
    (version >= (3, 1) && dump.status.success()).then_some((version, dump.stdout))
}

/// Lines that are valid JSON, by address and type.
fn lines(dump: &[u8]) -> (HashMap<String, Json>, u64) {
    let mut lines = HashMap::new();
    let mut broken = 0;
    for line in String::from_utf8_lossy(dump).lines() {
        match serde_json::from_str::<Json>(line) {
            Ok(json) => {
                let key = format!("{} {} {}", json["address"], json["type"], json["root"]);
                lines.insert(key, json);
            }
            Err(_) => broken += 1,
        }
    }
    (lines, broken)
}

#[test]
fn what_ruby_writes_is_read_whole() {
    let Some((ruby, dump)) = dump() else {
        return;
    };
    let options = Options { format: Format::Objspace, compression: Compression::None, ruby };
    let (back, outcome) = converted(&dump, options, Policy::Full);
    assert_eq!((outcome.skipped, outcome.truncated), (0, false));
    let ((wanted, broken), (read, none)) = (lines(&dump), lines(&back));
    // Escapes missing in paths and texts have been added.
    assert!(broken > 10 && none == 0);
    assert_eq!(read.len() as u64, wanted.len() as u64 + broken);
    for (key, line) in &wanted {
        assert_eq!(read.get(key), Some(line));
    }
}

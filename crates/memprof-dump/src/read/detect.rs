//! Detects the format of a text by its first lines.

use std::io;

use super::super::format::Format;
use super::invalid;

/// Number of lines to examine: a line may be broken.
const LOOKED_AT: usize = 20;

/// Detects the format of a text by its start.
///
/// # Errors
/// If the text is not a dump; the error gives the reason.
pub(super) fn format(head: &[u8], cut: bool) -> io::Result<Format> {
    if head.is_empty() {
        return Err(invalid(match cut {
            true => "the compressed data are broken at their beginning",
            false => "the file is empty",
        }));
    }
    let mut problem = None;
    for (number, line) in head.split(|byte| *byte == b'\n').take(LOOKED_AT).enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        match format_of(line) {
            Ok(format) => return Ok(format),
            Err(text) => problem = problem.or(Some(format!("line {}: {text}", number + 1))),
        }
    }
    let problem = problem.unwrap_or_else(|| "it has only blanks".to_owned());
    Err(invalid(format!("this is not a heap dump; {problem}")))
}

/// The format that contains such lines.
fn format_of(line: &[u8]) -> Result<Format, String> {
    let array = line.strip_prefix(b"[").or(line.strip_prefix(b","));
    if array.is_some_and(|line| line.trim_ascii_start().starts_with(b"{\"id\":")) {
        return Ok(Format::HeapDump);
    }
    let has = |key: &[u8]| line.starts_with(b"{") && memchr::memmem::find(line, key).is_some();
    if line.starts_with(b"{\"_id\"") || line.starts_with(b"{ \"_id\"") {
        return Ok(Format::Memprof);
    }
    let objspace = [&b"{\"address\":"[..], b"{\"type\":\"ROOT\"", b"{\"type\": \"ROOT\""];
    if objspace.iter().any(|start| line.starts_with(start)) {
        return Ok(Format::Objspace);
    }
    if has(b"\"address\"") && has(b"\"type\"") {
        return Ok(Format::Objspace);
    }
    let line = String::from_utf8_lossy(&line[..line.len().min(40)]);
    Err(format!("{line:?}"))
}

//! Queries by kind of statement, as counted by all database tracers.

use std::ffi::{c_char, c_ulong};

use super::add;
use crate::Node;
use crate::clock;
use crate::report::map;

/// Kinds of statements in report order.
const KINDS: [&str; 5] = ["select", "insert", "update", "delete", "unknown"];
/// Two counters per kind: queries, and clock ticks in calls.
const CALLS: usize = 2 * KINDS.len();
/// Three more per kind: ticks between calls, while the program waits for an answer; nanoseconds of these spent waiting for
/// the GVL; and queries whose kind only their answer shows. Any thread may add to them.
const WAITS: usize = 3 * KINDS.len();
pub(super) const CELLS: usize = CALLS + WAITS;

/// Most bytes of a statement to examine: its first word may follow a comment.
const LOOKED_AT: usize = 1024;

/// The kind of a statement, by its first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Select,
    Insert,
    Update,
    Delete,
    Unknown,
}

impl Kind {
    /// Looks for the first word after blanks, comments and opening brackets.
    pub fn of(sql: &[u8]) -> Kind {
        let statement = behind_comments(&sql[..sql.len().min(LOOKED_AT)]);
        let is_letter = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
        let word = &statement[..statement.iter().take_while(is_letter).count()];
        let kind = KINDS.iter().position(|kind| kind.as_bytes().eq_ignore_ascii_case(word));
        kind.map_or(Kind::Unknown, |index| Kind::from_index(index as u64))
    }

    /// The kind of a NUL-terminated statement.
    pub fn of_text(sql: *const c_char) -> Kind {
        if sql.is_null() {
            return Kind::Unknown;
        }
        // SAFETY: the caller's NUL-terminated text; nothing after the NUL is read.
        let size = unsafe { libc::strnlen(sql, LOOKED_AT) };
        Kind::of_bytes(sql, size as c_ulong)
    }

    /// The kind of a statement with this many bytes.
    pub fn of_bytes(sql: *const c_char, size: c_ulong) -> Kind {
        if sql.is_null() {
            return Kind::Unknown;
        }
        // SAFETY: the caller has at least this many bytes there.
        Kind::of(unsafe { std::slice::from_raw_parts(sql.cast(), (size as usize).min(LOOKED_AT)) })
    }

    pub fn from_index(index: u64) -> Kind {
        [Kind::Select, Kind::Insert, Kind::Update, Kind::Delete, Kind::Unknown]
            [index.min(4) as usize]
    }
}

pub(super) fn behind_comments(mut sql: &[u8]) -> &[u8] {
    loop {
        sql = match sql.trim_ascii_start() {
            [b'(', rest @ ..] => rest,
            [b'/', b'*', rest @ ..] => behind(rest, b"*/"),
            [b'-', b'-', rest @ ..] | [b'#', rest @ ..] => behind(rest, b"\n"),
            statement => return statement,
        }
    }
}

/// The text after a mark; nothing if the mark is missing.
fn behind<'a>(sql: &'a [u8], mark: &[u8]) -> &'a [u8] {
    let place = sql.windows(mark.len()).position(|bytes| bytes == mark);
    place.map_or(&[], |place| &sql[place + mark.len()..])
}

/// Calls the function; counts its time, and `queries`, for a statement of this kind.
pub(super) fn timed<R>(base: usize, kind: Kind, queries: u64, call: impl FnOnce() -> R) -> R {
    let begun = clock::now();
    let result = call();
    spent(base, kind, queries, clock::since(begun));
    result
}

pub(super) fn spent(base: usize, kind: Kind, queries: u64, ticks: u64) {
    add(base + 2 * kind as usize, [queries, ticks]);
}

/// The counters of waits for an answer: ticks, nanoseconds of these spent waiting for the GVL, and queries.
pub(super) fn wait_cells(base: usize, kind: Kind) -> [usize; 3] {
    let first = base + CALLS + 3 * kind as usize;
    [first, first + 1, first + 2]
}

/// The numbers of some kinds: queries, ticks, nanoseconds of these spent waiting for the GVL.
fn numbers(queries: u64, ticks: u64, gvl: u64) -> Vec<(&'static str, Node)> {
    let gvl = gvl as f64 / 1e9;
    // The GVL wait is measured by another clock.
    let time = Node::Seconds((crate::clock::seconds(ticks) - gvl).max(0.0));
    let mut numbers = vec![("queries", Node::Count(queries)), ("time", time)];
    if gvl > 0.0 {
        numbers.push(("gvl_wait", Node::Seconds(gvl)));
    }
    numbers
}

pub(super) fn report(cells: &[u64]) -> Node {
    let (calls, waits) = cells.split_at(CALLS);
    let kinds: Vec<_> = (KINDS.iter())
        .zip(calls.chunks_exact(2).zip(waits.chunks_exact(3)))
        .map(|(&name, (calls, waits))| (name, [calls[0] + waits[2], calls[1] + waits[0], waits[1]]))
        .filter(|(_, counts)| counts.iter().any(|&count| count > 0))
        .collect();
    if kinds.is_empty() {
        return map(Vec::new());
    }
    let sum = |index: usize| kinds.iter().map(|(_, counts)| counts[index]).sum();
    let mut all = numbers(sum(0), sum(1), sum(2));
    let types = (kinds.iter())
        .map(|&(name, [queries, ticks, gvl])| (name, map(numbers(queries, ticks, gvl))))
        .collect();
    all.push(("types", map(types)));
    map(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_by_their_first_word() {
        assert_eq!(Kind::of(b"SELECT 1"), Kind::Select);
        assert_eq!(Kind::of(b"  \n insert into"), Kind::Insert);
        assert_eq!(Kind::of(b"Update"), Kind::Update);
        assert_eq!(Kind::of(b"\tdelete\nfrom"), Kind::Delete);
        for other in ["begin", "set a = 1", "drop table x", "selects", "select_1", "", "1 select"] {
            assert_eq!(Kind::of(other.as_bytes()), Kind::Unknown, "{other:?}");
        }
        assert_eq!(Kind::of_text(c"  select".as_ptr()), Kind::Select);
        assert_eq!(Kind::of_text(c"".as_ptr()), Kind::Unknown);
        assert_eq!(Kind::of_text(std::ptr::null()), Kind::Unknown);
        assert_eq!(Kind::of_bytes(c"  select".as_ptr(), 7), Kind::Unknown);
        assert_eq!(Kind::of_bytes(std::ptr::null(), 2), Kind::Unknown);
    }

    #[test]
    fn what_stands_before_the_first_word() {
        assert_eq!(Kind::of(b"/* delete */ ( (select 1)"), Kind::Select);
        assert_eq!(Kind::of(b"-- a 'b\n# c\nupdate x"), Kind::Update);
        for cut in ["/* select", "/*", "/", "-- select", "#", "(("] {
            assert_eq!(Kind::of(cut.as_bytes()), Kind::Unknown, "{cut:?}");
        }
        let long = format!("/*{}*/ select", "x".repeat(LOOKED_AT));
        assert_eq!(Kind::of(long.as_bytes()), Kind::Unknown, "it is not looked at whole");
    }

    #[test]
    fn sums_and_kinds() {
        let mut cells = [0; CELLS];
        assert_eq!(report(&cells), Node::Map(Vec::new()));
        cells[..4].copy_from_slice(&[2, 1_000, 1, 500]);
        let report = report(&cells);
        assert_eq!(report.get("queries").and_then(Node::count), Some(3));
        let types = report.get("types").unwrap();
        let time = |node: &Node| node.get("time").and_then(Node::seconds).unwrap();
        assert!((time(&report) / time(types.get("insert").unwrap()) - 3.0).abs() < 0.01);
        assert_eq!(types.get("update"), None);
    }

    #[test]
    fn waits_for_the_gvl_stand_apart() {
        let mut cells = [0; CELLS];
        let [ticks, gvl, queries] = wait_cells(0, Kind::Update);
        cells[queries] = 1;
        (cells[ticks], cells[gvl]) = (u64::MAX >> 8, 250_000_000);
        let all = report(&cells);
        let update = all.get("types").and_then(|types| types.get("update"));
        for node in [Some(&all), update] {
            let field = |name| node.unwrap().get(name).and_then(Node::seconds).unwrap();
            assert_eq!(field("gvl_wait"), 0.25);
            assert!(field("time") > 0.0);
        }
        cells[ticks] = 1;
        let shorter = report(&cells).get("time").and_then(Node::seconds);
        assert_eq!(shorter, Some(0.0), "two clocks: never below 0");
    }
}

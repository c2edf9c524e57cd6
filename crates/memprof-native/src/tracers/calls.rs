//! Calls that take time and may transfer bytes: four counters each.

use super::{add, time};
use crate::Node;
use crate::clock;
use crate::report::map;

/// Calls, clock ticks, bytes requested, bytes transferred.
pub(super) const CELLS: usize = 4;

/// Calls the function and counts the call.
#[inline(always)]
pub(super) fn timed<R>(first: usize, call: impl FnOnce() -> R) -> R {
    let begun = clock::now();
    let result = call();
    add(first, [1, clock::since(begun)]);
    result
}

/// Calls a function that returns the number of bytes transferred, or a negative number; `requested` were asked for.
#[inline(always)]
pub(super) fn moved(first: usize, requested: u64, call: impl FnOnce() -> isize) -> isize {
    let begun = clock::now();
    let result = call();
    add(first, [1, clock::since(begun), requested, result.max(0) as u64]);
    result
}

/// Like [`moved`], but computes the requested bytes after a successful call, since only then the kernel has found the
/// caller's description of them to be readable.
#[inline(always)]
pub(super) fn moved_by_vector(
    first: usize,
    call: impl FnOnce() -> isize,
    requested: impl FnOnce() -> u64,
) -> isize {
    let begun = clock::now();
    let result = call();
    let ticks = clock::since(begun);
    let requested = if result >= 0 { requested() } else { 0 };
    add(first, [1, ticks, requested, result.max(0) as u64]);
    result
}

/// The counts of a kind of call; None if there were no calls.
pub(super) fn report(cells: &[u64], moves_bytes: bool) -> Option<Node> {
    let &[calls, ticks, requested, actual] = cells.first_chunk()?;
    if calls == 0 {
        return None;
    }
    let mut entries = vec![("calls", Node::Count(calls)), ("time", time(ticks))];
    if moves_bytes {
        entries.extend([("requested", Node::Count(requested)), ("actual", Node::Count(actual))]);
    }
    Some(map(entries))
}

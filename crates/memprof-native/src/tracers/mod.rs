//! The tracers: one file each.
//!
//! To add one, write a file with
//!
//! - `CELLS`, the number of its counters,
//! - `HOOKS`, the functions that it replaces, made by the `hook!` macro, each adding to its counters by `add`,
//! - `TRACER`, its name and how it reports the difference of its counters,
//!
//! and name it in `registry!` below. A tracer never resets its counters; a trace takes the difference.

mod calls;
mod chunk;
pub(crate) mod connections;
mod deallocate;
pub mod dns;
pub mod fd;
pub mod memcache;
pub mod memory;
pub mod mysql;
pub mod postgres;
pub mod resources;
mod sql;
pub mod sqlite;

use crate::Node;
use crate::counters;
use crate::interpose::Hook;

/// Reads numbers that are not counted by hooks. None if the thread has ended.
pub type Sample = fn(Whose) -> Option<Vec<u64>>;

/// The source of the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The process.
    All,
    /// The calling thread.
    Own,
    /// The thread with this kernel id.
    Other(u32),
}

/// A kind of event to count.
pub struct Tracer {
    /// Its name in requests and reports.
    pub name: &'static str,
    /// The functions that it replaces.
    pub hooks: &'static [Hook],
    /// Reports its counts.
    pub report: fn(&[u64]) -> Node,
    /// Reads its numbers, if they do not come from counters of hooks.
    pub sample: Option<Sample>,
    /// Whether its hooks have never counted anything in this process. Then its counters are not read, and it gets an empty
    /// slice to report.
    pub idle: fn() -> bool,
    /// Called before its functions are replaced, and after they are restored: events in between go unseen.
    pub forget: fn(),
    /// The reason why this process cannot be traced, if any.
    pub obstacle: fn() -> Option<&'static str>,
}

impl Tracer {
    /// A tracer that counts only in its hooks, always, and in every process.
    const fn new(name: &'static str, hooks: &'static [Hook], report: fn(&[u64]) -> Node) -> Tracer {
        Tracer {
            name,
            hooks,
            report,
            sample: None,
            // Reading its counters is as fast as any check.
            idle: || false,
            forget: || (),
            obstacle: || None,
        }
    }
}

macro_rules! registry {
    ($($name:ident),* $(,)?) => {
        static TRACERS: &[&Tracer] = &[$(&$name::TRACER),*];
        static NAMES: &[&str] = &[$(stringify!($name)),*];
        /// Number of tracers.
        pub(crate) const COUNT: usize = SIZES.len();
        const SIZES: &[(&str, usize)] = &[$((stringify!($name), $name::CELLS)),*];
    };
}

registry!(fd, dns, memory, mysql, postgres, sqlite, memcache, resources);

const _: () =
    assert!(first_cell("") <= counters::CELLS, "the counters of all tracers must fit into a block");

/// The names of all tracers.
#[must_use]
pub fn names() -> &'static [&'static str] {
    NAMES
}

pub(crate) fn find(name: &str) -> Option<&'static Tracer> {
    TRACERS.iter().copied().find(|tracer| tracer.name == name)
}

/// The index of the tracer with this name.
pub(crate) const fn place(name: &str) -> usize {
    let mut place = 0;
    while !is_same(SIZES[place].0.as_bytes(), name.as_bytes()) {
        place += 1;
    }
    place
}

/// The tracer's index.
pub(crate) fn index(tracer: &Tracer) -> usize {
    (TRACERS.iter().position(|other| std::ptr::eq(*other, tracer)))
        .expect("a tracer of the registry")
}

/// The counters of a tracer in a block.
pub(crate) fn cells(tracer: &Tracer) -> std::ops::Range<usize> {
    let first = first_cell(tracer.name);
    let size = SIZES.iter().find(|(name, _)| *name == tracer.name).map_or(0, |(_, size)| *size);
    first..first + size
}

/// The first counter of a tracer; for an unknown name, the end of all counters.
pub(crate) const fn first_cell(name: &str) -> usize {
    let mut index = 0;
    let mut first = 0;
    while index < SIZES.len() {
        let (other, size) = SIZES[index];
        if is_same(other.as_bytes(), name.as_bytes()) {
            return first;
        }
        first += size;
        index += 1;
    }
    first
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut index = 0;
    while index < one.len() {
        if one[index] != other[index] {
            return false;
        }
        index += 1;
    }
    true
}

/// Adds to consecutive counters of the calling thread, starting at this one.
#[inline(always)]
fn add<const N: usize>(first: usize, counts: [u64; N]) {
    let block = counters::mine();
    for (offset, count) in counts.into_iter().enumerate() {
        block.add(first + offset, count);
    }
}

/// A counter of clock ticks as a duration in the report.
fn time(ticks: u64) -> Node {
    Node::Seconds(crate::clock::seconds(ticks))
}

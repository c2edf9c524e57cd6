//! What is counted: one file a tracer.
//!
//! To add one, write a file that has
//!
//! - `CELLS`, the number of its counters,
//! - `HOOKS`, the functions that it replaces, made by the `hook!` macro, each adding to its counters by `add`,
//! - `TRACER`, its name and how it reports the difference of its counters,
//!
//! and name it in `registry!` below. A tracer counts what happened since ever; a trace takes the difference.

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

/// Reads numbers that no hook counts. None if the thread has ended.
pub type Sample = fn(Whose) -> Option<Vec<u64>>;

/// Whose numbers are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Those of the process.
    All,
    /// Those of the calling thread.
    Own,
    /// Those of the thread that the kernel gave that number.
    Other(u32),
}

/// Something that is counted.
pub struct Tracer {
    /// The name to ask for it by.
    pub name: &'static str,
    /// What it replaces.
    pub hooks: &'static [Hook],
    /// Reports what was counted.
    pub report: fn(&[u64]) -> Node,
    /// Where its numbers come from, if not from counters of hooks.
    pub sample: Option<Sample>,
    /// Whether its hooks have never counted anything in this process. Then its counters are not read, and it has an
    /// empty slice to report.
    pub idle: fn() -> bool,
    /// Called before its functions are replaced, and after they were put back: what goes on meanwhile is not seen.
    pub forget: fn(),
    /// Why this process cannot be traced, if it cannot.
    pub obstacle: fn() -> Option<&'static str>,
}

impl Tracer {
    /// One that counts in its hooks alone, always, and in every process.
    const fn new(name: &'static str, hooks: &'static [Hook], report: fn(&[u64]) -> Node) -> Tracer {
        Tracer {
            name,
            hooks,
            report,
            sample: None,
            // Its counters are read as fast as anything that would say so.
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
        /// How many there are.
        pub(crate) const COUNT: usize = SIZES.len();
        const SIZES: &[(&str, usize)] = &[$((stringify!($name), $name::CELLS)),*];
    };
}

registry!(
    fd, dns, memory, mysql, postgres, sqlite, memcache, resources
);

const _: () = assert!(
    first_cell("") <= counters::CELLS,
    "the counters of all tracers must fit into a block"
);

/// The names of the tracers there are.
#[must_use]
pub fn names() -> &'static [&'static str] {
    NAMES
}

pub(crate) fn find(name: &str) -> Option<&'static Tracer> {
    TRACERS.iter().copied().find(|tracer| tracer.name == name)
}

/// The place among all of the one of that name.
pub(crate) const fn place(name: &str) -> usize {
    let mut place = 0;
    while !is_same(SIZES[place].0.as_bytes(), name.as_bytes()) {
        place += 1;
    }
    place
}

/// Its place among all.
pub(crate) fn index(tracer: &Tracer) -> usize {
    (TRACERS
        .iter()
        .position(|other| std::ptr::eq(*other, tracer)))
    .expect("a tracer of the registry")
}

/// The counters of a tracer in a block.
pub(crate) fn cells(tracer: &Tracer) -> std::ops::Range<usize> {
    let first = first_cell(tracer.name);
    let size = SIZES
        .iter()
        .find(|(name, _)| *name == tracer.name)
        .map_or(0, |(_, size)| *size);
    first..first + size
}

/// Where the counters of a tracer begin; of no tracer: where those of all end.
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

/// Adds to counters of the calling thread, side by side from this one on.
#[inline(always)]
fn add<const N: usize>(first: usize, counts: [u64; N]) {
    let block = counters::mine();
    for (offset, count) in counts.into_iter().enumerate() {
        block.add(first + offset, count);
    }
}

/// What a counter of the clock's ticks is in a report.
fn time(ticks: u64) -> Node {
    Node::Seconds(crate::clock::seconds(ticks))
}

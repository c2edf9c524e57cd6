//! The state that database tracers keep per connection between two calls: the query whose answer the program waits for, and
//! the kinds of its prepared statements.
//!
//! A wait belongs to the thread that sent the query, and to that thread's innermost trace at the time. It ends with that
//! trace: when a program gives up a query, as after a timeout, the rest of the wait belongs to no trace. The next thread or
//! trace that asks the connection for an answer waits from its own first call on.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::sql::{self, Kind};
use crate::at_fork::AtFork;
use crate::clock;
use crate::counters::{self, Block};
use crate::lock::Lock;

/// Most prepared statements to remember, over all connections; the kind of others is unknown.
const STATEMENTS: usize = 1 << 20;

/// All connections with state. Empty until a client library is called.
static TABLE: Lock<Option<Table>> = Lock::new(None);
/// Number of waits, open and abandoned ones.
static WAITS: AtomicUsize = AtomicUsize::new(0);

#[derive(Default)]
struct Table {
    /// By their tracer's first counter and their address.
    connections: HashMap<(usize, usize), Connection>,
    statements: usize,
}

#[derive(Default)]
struct Connection {
    wait: Option<Wait>,
    statements: HashMap<Box<[u8]>, Kind>,
}

/// A query that was sent, but whose answer the program has not seen yet.
struct Wait {
    kind: Kind,
    /// The waiting thread; None if the trace that the wait began in has ended.
    waiter: Option<Waiter>,
    /// Set if only the answer shows the kind: the query is then counted when the wait ends.
    by_answer: Option<ByAnswer>,
}

/// A query of unknown kind.
struct ByAnswer {
    /// The prepared statement that it executes, if its kind should be remembered.
    statement: Option<Box<[u8]>>,
    /// The time when the answer arrived, if the program has not taken it yet.
    since: Option<u64>,
}

#[derive(Clone, Copy)]
struct Waiter {
    block: &'static Block,
    owner: u64,
    /// Number of traces that the thread was in when the wait began.
    depth: u32,
    since: u64,
    /// The thread's total GVL wait at that time.
    gvl: u64,
}

impl Waiter {
    fn now(since: u64) -> Waiter {
        let block = counters::mine();
        Waiter { block, owner: block.owner(), depth: block.traces(), since, gvl: block.gvl_wait() }
    }

    fn is(&self, block: &Block) -> bool {
        std::ptr::eq(self.block, block) && self.owner == block.owner()
    }

    /// Ticks until then, and the nanoseconds of them spent waiting for the GVL.
    fn waited(&self, until: u64) -> [u64; 2] {
        let gvl = self.block.gvl_wait().saturating_sub(self.gvl);
        [until.saturating_sub(self.since), gvl]
    }
}

impl Wait {
    /// Ends the wait and counts its time until then.
    fn end(&mut self, base: usize, until: u64) {
        if let Some(waiter) = self.waiter.take() {
            let by_answer = self.by_answer.take();
            let until = by_answer.as_ref().and_then(|by| by.since).unwrap_or(until);
            let [ticks, gvl] = waiter.waited(until);
            let counts = [ticks, gvl, u64::from(by_answer.is_some())];
            for (cell, count) in sql::wait_cells(base, self.kind).into_iter().zip(counts) {
                waiter.block.add_from_elsewhere(cell, count);
            }
        }
    }
}

/// The connections of one client library.
pub(super) struct Connections {
    /// Its tracer's first counter.
    base: usize,
}

impl Connections {
    pub const fn new(base: usize) -> Connections {
        Connections { base }
    }

    /// Records a sent query: its sender waits for the answer.
    pub fn sent(&self, connection: usize, kind: Kind, begun: u64) {
        self.wait(connection, kind, begun, None);
    }

    /// Records a sent query whose kind only the answer will show: it is counted then. It may execute a prepared statement.
    pub fn sent_unknown(&self, connection: usize, statement: Option<&[u8]>, begun: u64) {
        let by_answer = ByAnswer { statement: statement.map(Box::from), since: None };
        self.wait(connection, Kind::Unknown, begun, Some(by_answer));
    }

    fn wait(&self, connection: usize, kind: Kind, begun: u64, by_answer: Option<ByAnswer>) {
        let wait = Wait { kind, waiter: Some(Waiter::now(begun)), by_answer };
        self.with(|table| {
            let connection = (table.connections).entry((self.base, connection)).or_default();
            match connection.wait.replace(wait) {
                // In a pipeline: for queries of known kind, only the last one's wait counts.
                Some(mut before) if before.by_answer.is_some() => before.end(self.base, begun),
                Some(_) => {}
                None => {
                    WAITS.fetch_add(1, Relaxed);
                }
            }
        });
    }

    /// Records that the calling thread has asked for the answer, by a call that began then.
    pub fn asked(&self, connection: usize, begun: u64, has_come: bool) {
        self.answered(connection, begun, has_come, || None);
    }

    /// Like `asked`, for an answer that may show the kind of the query. Otherwise, a query of unknown kind continues until
    /// the program takes the answer.
    pub fn answered(
        &self,
        connection: usize,
        begun: u64,
        has_come: bool,
        kind: impl FnOnce() -> Option<Kind>,
    ) {
        if WAITS.load(Relaxed) == 0 {
            return;
        }
        self.with(|table| {
            let Table { connections, statements } = table;
            let Some(connection) = connections.get_mut(&(self.base, connection)) else {
                return;
            };
            let Some(wait) = &mut connection.wait else {
                return;
            };
            if !wait.waiter.is_some_and(|waiter| waiter.is(counters::mine())) {
                wait.end(self.base, begun);
                wait.waiter = Some(Waiter::now(begun));
            }
            if !has_come {
                return;
            }
            if let Some(by_answer) = &mut wait.by_answer {
                let Some(kind) = kind() else {
                    by_answer.since.get_or_insert_with(clock::now);
                    return;
                };
                wait.kind = kind;
                if let Some(name) = by_answer.statement.take().filter(|_| kind != Kind::Unknown) {
                    remember(&mut connection.statements, statements, &name, kind);
                }
            }
            wait.end(self.base, clock::now());
            connection.wait = None;
            WAITS.fetch_sub(1, Relaxed);
        });
    }

    /// Drops all state of a connection that was closed or reset.
    pub fn closed(&self, connection: usize) {
        self.with(|table| {
            if let Some(connection) = table.connections.remove(&(self.base, connection)) {
                table.statements -= connection.statements.len();
                forget_wait(self.base, connection);
            }
        });
    }

    /// Records a prepared statement.
    pub fn prepared(&self, connection: usize, name: &[u8], kind: Kind) {
        self.with(|table| {
            let connection = (table.connections).entry((self.base, connection)).or_default();
            remember(&mut connection.statements, &mut table.statements, name, kind);
        });
    }

    /// The kind of a prepared statement.
    pub fn kind(&self, connection: usize, name: &[u8]) -> Kind {
        self.with(|table| {
            let connection = table.connections.get(&(self.base, connection));
            let kind = connection.and_then(|connection| connection.statements.get(name));
            kind.copied().unwrap_or(Kind::Unknown)
        })
    }

    /// Records that a prepared statement was deallocated.
    pub fn deallocated(&self, connection: usize, name: &[u8]) {
        self.with(|table| {
            let connection = table.connections.get_mut(&(self.base, connection));
            if connection.is_some_and(|connection| connection.statements.remove(name).is_some()) {
                table.statements -= 1;
            }
        });
    }

    /// Records that all prepared statements of a connection were deallocated.
    pub fn deallocated_all(&self, connection: usize) {
        self.with(|table| {
            if let Some(connection) = table.connections.get_mut(&(self.base, connection)) {
                table.statements -= std::mem::take(&mut connection.statements).len();
            }
        });
    }

    /// Forgets all connections: while no function is replaced, their changes go unseen.
    pub fn forget(&self) {
        self.with(|table| {
            let (own, others) = std::mem::take(&mut table.connections)
                .into_iter()
                .partition(|((base, _), _)| *base == self.base);
            table.connections = others;
            for (_, connection) in HashMap::<(usize, usize), Connection>::into_iter(own) {
                table.statements -= connection.statements.len();
                forget_wait(self.base, connection);
            }
        });
    }

    fn with<R>(&self, work: impl FnOnce(&mut Table) -> R) -> R {
        TABLE.with(|table| work(table.get_or_insert_default()))
    }
}

fn remember(known: &mut HashMap<Box<[u8]>, Kind>, count: &mut usize, name: &[u8], kind: Kind) {
    if let Some(known) = known.get_mut(name) {
        *known = kind;
    } else if *count < STATEMENTS {
        known.insert(name.into(), kind);
        *count += 1;
    }
}

fn forget_wait(base: usize, connection: Connection) {
    if let Some(mut wait) = connection.wait {
        wait.end(base, clock::now());
        WAITS.fetch_sub(1, Relaxed);
    }
}

/// Begins a trace of a thread: ends its waits outside of any trace.
pub(crate) fn enter(block: &Block) {
    end_waits(block, |depth| depth == 0 && block.traces() == 0);
    block.enter_trace();
}

/// Ends a trace of a thread, along with the waits that began in it.
pub(crate) fn leave(block: &Block) {
    block.leave_trace();
    let left = block.traces();
    end_waits(block, |depth| depth > left);
}

fn end_waits(block: &Block, does_end: impl Fn(u32) -> bool) {
    each_wait(|base, wait| {
        let waiter = wait.waiter.filter(|waiter| waiter.is(block));
        if waiter.is_some_and(|waiter| does_end(waiter.depth)) {
            wait.end(base, clock::now());
        }
    });
}

/// Wait times not counted yet, of one thread or of all: counters with the amounts to add.
pub(crate) fn open(block: Option<&Block>) -> Vec<(usize, u64)> {
    let mut open = Vec::new();
    each_wait(|base, wait| {
        let waiter = (wait.waiter).filter(|waiter| block.is_none_or(|block| waiter.is(block)));
        if let Some(waiter) = waiter {
            let cells = sql::wait_cells(base, wait.kind);
            open.extend(cells.into_iter().zip(waiter.waited(clock::now())));
        }
    });
    open
}

fn each_wait(mut visit: impl FnMut(usize, &mut Wait)) {
    if WAITS.load(Relaxed) == 0 {
        return;
    }
    TABLE.with(|table| {
        let connections = table.iter_mut().flat_map(|table| &mut table.connections);
        for ((base, _), connection) in connections {
            connection.wait.iter_mut().for_each(|wait| visit(*base, wait));
        }
    });
}

/// Holds the table's lock across a fork, so that the child does not find the table in the middle of a change.
pub(crate) const AT_FORK: AtFork =
    AtFork { before: || TABLE.take(), in_parent: || TABLE.release(), in_child: || TABLE.release() };

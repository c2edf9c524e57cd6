//! `postgres`: queries through libpq.
//!
//! A query that is sent takes until the program first learns that its result is there: by `PQisBusy` or
//! `PQgetResult`. Time to prepare a statement counts for its kind, and is no query.

use std::ffi::CStr;

use libc::{c_char, c_int, c_void};

use super::connections::Connections;
use super::deallocate::{Deallocated, deallocated};
use super::sql::{self, Kind, timed};
use super::{Tracer, first_cell};
use crate::clock;
use crate::interpose::{Hook, client_hook};

const BASE: usize = first_cell("postgres");
pub(super) const CELLS: usize = sql::CELLS;

pub(super) static TRACER: Tracer = Tracer {
    forget: || CONNECTIONS.forget(),
    ..Tracer::new("postgres", &HOOKS, sql::report)
};

static CONNECTIONS: Connections = Connections::new(BASE);

type Connection = *mut c_void;
type Answer = *mut c_void;
type Text = *const c_char;
type Values = *const c_void;

/// The name of a statement, without its NUL. None is the empty one.
fn name<'a>(name: Text) -> &'a [u8] {
    if name.is_null() {
        return b"";
    }
    // SAFETY: the caller's text, which ends with a NUL and lives as long as the call.
    unsafe { CStr::from_ptr(name) }.to_bytes()
}

fn prepared(connection: Connection, statement: Text, query: Text) -> Kind {
    let kind = Kind::of_text(query);
    CONNECTIONS.prepared(connection as usize, name(statement), kind);
    kind
}

fn kind(connection: Connection, statement: Text) -> Kind {
    CONNECTIONS.kind(connection as usize, name(statement))
}

/// The kind of a query, which may also deallocate prepared statements.
fn asked(connection: Connection, query: Text) -> Kind {
    let kind = Kind::of_text(query);
    if kind == Kind::Unknown && !query.is_null() {
        match deallocated(name(query)) {
            Some(Deallocated::All) => CONNECTIONS.deallocated_all(connection as usize),
            Some(Deallocated::One(name)) => CONNECTIONS.deallocated(connection as usize, &name),
            None => {}
        }
    }
    kind
}

/// Calls a function that sends a query, and returns whether it could.
fn sent(connection: Connection, kind: Kind, queries: u64, call: impl FnOnce() -> c_int) -> c_int {
    let begun = clock::now();
    let done = call();
    if done == 0 {
        sql::spent(BASE, kind, queries, clock::since(begun));
    } else {
        sql::spent(BASE, kind, queries, 0);
        CONNECTIONS.sent(connection as usize, kind, begun);
    }
    done
}

static HOOKS: [Hook; 15] = [
    client_hook!("PQexec", (connection: Connection, query: Text) -> Answer,
        |call| timed(BASE, asked(connection, query), 1, call)),
    client_hook!("PQexecParams",
        (connection: Connection, query: Text, n: c_int, types: Values, values: Values, sizes: Values,
         formats: Values, format: c_int) -> Answer,
        |call| timed(BASE, asked(connection, query), 1, call)),
    client_hook!("PQprepare", (connection: Connection, name: Text, query: Text, n: c_int, types: Values) -> Answer,
        |call| timed(BASE, prepared(connection, name, query), 0, call)),
    client_hook!("PQexecPrepared",
        (connection: Connection, name: Text, n: c_int, values: Values, sizes: Values, formats: Values,
         format: c_int) -> Answer,
        |call| timed(BASE, kind(connection, name), 1, call)),
    client_hook!("PQsendQuery", (connection: Connection, query: Text) -> c_int,
        |call| sent(connection, asked(connection, query), 1, call)),
    client_hook!("PQsendQueryParams",
        (connection: Connection, query: Text, n: c_int, types: Values, values: Values, sizes: Values,
         formats: Values, format: c_int) -> c_int,
        |call| sent(connection, asked(connection, query), 1, call)),
    client_hook!("PQsendPrepare", (connection: Connection, name: Text, query: Text, n: c_int, types: Values) -> c_int,
        |call| sent(connection, prepared(connection, name, query), 0, call)),
    client_hook!("PQsendQueryPrepared",
        (connection: Connection, name: Text, n: c_int, values: Values, sizes: Values, formats: Values,
         format: c_int) -> c_int,
        |call| sent(connection, kind(connection, name), 1, call)),
    client_hook!("PQgetResult", (connection: Connection) -> Answer, |call| {
        let begun = clock::now();
        let answer: Answer = call();
        CONNECTIONS.asked(connection as usize, begun, true);
        answer
    }),
    client_hook!("PQisBusy", (connection: Connection) -> c_int, |call| {
        let begun = clock::now();
        let busy: c_int = call();
        CONNECTIONS.asked(connection as usize, begun, busy == 0);
        busy
    }),
    client_hook!("PQclosePrepared", (connection: Connection, statement: Text) -> Answer, |call| {
        CONNECTIONS.deallocated(connection as usize, name(statement));
        let answer: Answer = call();
        answer
    }),
    client_hook!("PQsendClosePrepared", (connection: Connection, statement: Text) -> c_int, |call| {
        CONNECTIONS.deallocated(connection as usize, name(statement));
        let done: c_int = call();
        done
    }),
    // A new session has no statements of the old one. Before its memory is freed: another thread may get it at once.
    client_hook!("PQreset", (connection: Connection), |call| {
        CONNECTIONS.closed(connection as usize);
        call();
    }),
    client_hook!("PQresetStart", (connection: Connection) -> c_int, |call| {
        CONNECTIONS.closed(connection as usize);
        let done: c_int = call();
        done
    }),
    client_hook!("PQfinish", (connection: Connection), |call| {
        CONNECTIONS.closed(connection as usize);
        call();
    }),
];

//! `postgres`: queries through libpq.
//!
//! A query that is sent takes until the program is first told that its result is there: by `PQisBusy` or
//! `PQgetResult`. Time to prepare a statement counts for its kind, and is no query.

use libc::{c_char, c_int, c_void};

use super::pending::{Prepared, Sent};
use super::sql::{self, Kind, timed};
use super::{Tracer, first_cell};
use crate::clock;
use crate::interpose::{Hook, client_hook};

const BASE: usize = first_cell("postgres");
pub(super) const CELLS: usize = sql::CELLS;

pub(super) static TRACER: Tracer = Tracer::new("postgres", &HOOKS, sql::report);

static SENT: Sent = Sent::new();
static PREPARED: Prepared = Prepared::new();

type Connection = *mut c_void;
type Answer = *mut c_void;
type Text = *const c_char;
type Values = *const c_void;

/// What names a statement: its connection, and its name there.
fn statement(connection: Connection, name: Text) -> u64 {
    let mut hash = connection as u64;
    let mut place = name;
    while !place.is_null() {
        // SAFETY: the name ends with a NUL, and no byte before this one was.
        let byte = unsafe { *place };
        if byte == 0 {
            break;
        }
        hash = (hash ^ byte as u64).wrapping_mul(0x0100_0000_01b3);
        place = place.wrapping_add(1);
    }
    hash
}

fn prepared(connection: Connection, name: Text, query: Text) -> Kind {
    let kind = Kind::of_text(query);
    PREPARED.set(statement(connection, name), kind);
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
        SENT.begin(connection as usize, kind, begun);
    }
    done
}

static HOOKS: [Hook; 10] = [
    client_hook!("PQexec", (connection: Connection, query: Text) -> Answer,
        |call| timed(BASE, Kind::of_text(query), 1, call)),
    client_hook!("PQexecParams",
        (connection: Connection, query: Text, n: c_int, types: Values, values: Values, sizes: Values,
         formats: Values, format: c_int) -> Answer,
        |call| timed(BASE, Kind::of_text(query), 1, call)),
    client_hook!("PQprepare", (connection: Connection, name: Text, query: Text, n: c_int, types: Values) -> Answer,
        |call| timed(BASE, prepared(connection, name, query), 0, call)),
    client_hook!("PQexecPrepared",
        (connection: Connection, name: Text, n: c_int, values: Values, sizes: Values, formats: Values,
         format: c_int) -> Answer,
        |call| timed(BASE, PREPARED.get(statement(connection, name)), 1, call)),
    client_hook!("PQsendQuery", (connection: Connection, query: Text) -> c_int,
        |call| sent(connection, Kind::of_text(query), 1, call)),
    client_hook!("PQsendQueryParams",
        (connection: Connection, query: Text, n: c_int, types: Values, values: Values, sizes: Values,
         formats: Values, format: c_int) -> c_int,
        |call| sent(connection, Kind::of_text(query), 1, call)),
    client_hook!("PQsendPrepare", (connection: Connection, name: Text, query: Text, n: c_int, types: Values) -> c_int,
        |call| sent(connection, prepared(connection, name, query), 0, call)),
    client_hook!("PQsendQueryPrepared",
        (connection: Connection, name: Text, n: c_int, values: Values, sizes: Values, formats: Values,
         format: c_int) -> c_int,
        |call| sent(connection, PREPARED.get(statement(connection, name)), 1, call)),
    client_hook!("PQgetResult", (connection: Connection) -> Answer, |call| {
        let answer: Answer = call();
        SENT.end(connection as usize, BASE);
        answer
    }),
    client_hook!("PQisBusy", (connection: Connection) -> c_int, |call| {
        let busy: c_int = call();
        if busy == 0 {
            SENT.end(connection as usize, BASE);
        }
        busy
    }),
];

//! `mysql`: queries through libmysqlclient and MariaDB's connector.
//!
//! A query whose result is read later takes from sending to reading. Time to prepare a statement counts for its kind, but
//! not as a query.

use libc::{c_char, c_int, c_ulong, c_void};

use super::connections::Connections;
use super::sql::{self, Kind, timed};
use super::{Tracer, first_cell};
use crate::clock;
use crate::interpose::{Hook, client_hook};

const BASE: usize = first_cell("mysql");
pub(super) const CELLS: usize = sql::CELLS;

pub(super) static TRACER: Tracer =
    Tracer { forget: || CONNECTIONS.forget(), ..Tracer::new("mysql", &HOOKS, sql::report) };

static CONNECTIONS: Connections = Connections::new(BASE);

/// Represents the connection of statements: each is identified by its own address.
const ANY: usize = 0;

type Client = *mut c_void;
type Text = *const c_char;

fn name(statement: Client) -> [u8; size_of::<usize>()] {
    (statement as usize).to_ne_bytes()
}

static HOOKS: [Hook; 8] = [
    client_hook!("mysql_query", (client: Client, sql: Text) -> c_int, |call| timed(BASE, Kind::of_text(sql), 1, call)),
    client_hook!("mysql_real_query", (client: Client, sql: Text, size: c_ulong) -> c_int,
        |call| timed(BASE, Kind::of_bytes(sql, size), 1, call)),
    client_hook!("mysql_send_query", (client: Client, sql: Text, size: c_ulong) -> c_int, |call| {
        let (kind, begun) = (Kind::of_bytes(sql, size), clock::now());
        let failed: c_int = call();
        if failed == 0 {
            sql::spent(BASE, kind, 1, 0);
            CONNECTIONS.sent(client as usize, kind, begun);
        } else {
            sql::spent(BASE, kind, 1, clock::since(begun));
        }
        failed
    }),
    client_hook!("mysql_read_query_result", (client: Client) -> c_char, |call| {
        let begun = clock::now();
        let failed: c_char = call();
        CONNECTIONS.asked(client as usize, begun, true);
        failed
    }),
    client_hook!("mysql_stmt_prepare", (statement: Client, sql: Text, size: c_ulong) -> c_int, |call| {
        let kind = Kind::of_bytes(sql, size);
        CONNECTIONS.prepared(ANY, &name(statement), kind);
        timed(BASE, kind, 0, call)
    }),
    client_hook!("mysql_stmt_execute", (statement: Client) -> c_int,
        |call| timed(BASE, CONNECTIONS.kind(ANY, &name(statement)), 1, call)),
    // Before they are freed: another thread may get the same address at once.
    client_hook!("mysql_stmt_close", (statement: Client) -> c_char, |call| {
        CONNECTIONS.deallocated(ANY, &name(statement));
        let failed: c_char = call();
        failed
    }),
    client_hook!("mysql_close", (client: Client), |call| {
        CONNECTIONS.closed(client as usize);
        call();
    }),
];

//! `mysql`: queries through libmysqlclient and MariaDB's connector.
//!
//! A query that is sent, and whose result is read later, takes as long as from the one to the other. Time to prepare a
//! statement counts for its kind, and is no query.

use libc::{c_char, c_int, c_ulong, c_void};

use super::pending::{Prepared, Sent};
use super::sql::{self, Kind, timed};
use super::{Tracer, first_cell};
use crate::clock;
use crate::interpose::{Hook, client_hook};

const BASE: usize = first_cell("mysql");
pub(super) const CELLS: usize = sql::CELLS;

pub(super) static TRACER: Tracer = Tracer::new("mysql", &HOOKS, sql::report);

static SENT: Sent = Sent::new();
static PREPARED: Prepared = Prepared::new();

type Client = *mut c_void;
type Text = *const c_char;

static HOOKS: [Hook; 6] = [
    client_hook!("mysql_query", (client: Client, sql: Text) -> c_int, |call| timed(BASE, Kind::of_text(sql), 1, call)),
    client_hook!("mysql_real_query", (client: Client, sql: Text, size: c_ulong) -> c_int,
        |call| timed(BASE, Kind::of_bytes(sql, size), 1, call)),
    client_hook!("mysql_send_query", (client: Client, sql: Text, size: c_ulong) -> c_int, |call| {
        let (kind, begun) = (Kind::of_bytes(sql, size), clock::now());
        let failed: c_int = call();
        if failed == 0 {
            sql::spent(BASE, kind, 1, 0);
            SENT.begin(client as usize, kind, begun);
        } else {
            sql::spent(BASE, kind, 1, clock::since(begun));
        }
        failed
    }),
    client_hook!("mysql_read_query_result", (client: Client) -> c_char, |call| {
        let failed: c_char = call();
        SENT.end(client as usize, BASE);
        failed
    }),
    client_hook!("mysql_stmt_prepare", (statement: Client, sql: Text, size: c_ulong) -> c_int, |call| {
        let kind = Kind::of_bytes(sql, size);
        PREPARED.set(statement as u64, kind);
        timed(BASE, kind, 0, call)
    }),
    client_hook!("mysql_stmt_execute", (statement: Client) -> c_int,
        |call| timed(BASE, PREPARED.get(statement as u64), 1, call)),
];

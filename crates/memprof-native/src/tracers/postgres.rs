//! `postgres`: queries through libpq.
//!
//! A query that is sent takes until the program first learns that its result has arrived: by `PQisBusy` or `PQgetResult`.
//! Time to prepare a statement counts for its kind, but not as a query. A statement that was prepared unseen, before the
//! trace or in SQL, gets its kind from the answer's command tag.

use std::ffi::CStr;
use std::mem::transmute;

use libc::{c_char, c_int, c_void};

use super::connections::Connections;
use super::deallocate::{Deallocated, deallocated, executes};
use super::sql::{self, Kind, timed};
use super::{Tracer, first_cell};
use crate::clock;
use crate::interpose::{Code, Companion, Hook, Original, client_hook};

const BASE: usize = first_cell("postgres");
pub(super) const CELLS: usize = sql::CELLS;

pub(super) static TRACER: Tracer =
    Tracer { forget: || CONNECTIONS.forget(), ..Tracer::new("postgres", &HOOKS, sql::report) };

static CONNECTIONS: Connections = Connections::new(BASE);

type Connection = *mut c_void;
type Answer = *mut c_void;
type Text = *const c_char;
type Values = *const c_void;

/// The name of a statement, without its NUL. Null is the empty name.
fn name<'a>(name: Text) -> &'a [u8] {
    if name.is_null() {
        return b"";
    }
    // SAFETY: the caller's NUL-terminated text, which lives as long as the call.
    unsafe { CStr::from_ptr(name) }.to_bytes()
}

fn prepared(connection: Connection, statement: Text, query: Text) -> Kind {
    let kind = Kind::of_text(query);
    CONNECTIONS.prepared(connection as usize, name(statement), kind);
    kind
}

/// The knowledge about a query before its answer.
#[derive(Clone, Copy)]
enum Asked<'a> {
    Kind(Kind),
    /// The answer shows the kind; remember it for the prepared statement, if any.
    ByAnswer(Option<&'a [u8]>),
}

/// The execution of a prepared statement.
fn execution<'a>(connection: Connection, statement: Text) -> Asked<'a> {
    let name = name(statement);
    match CONNECTIONS.kind(connection as usize, name) {
        Kind::Unknown => Asked::ByAnswer(Some(name)),
        kind => Asked::Kind(kind),
    }
}

static TAG: [Original; 2] = [const { Original::new() }; 2];
static COMPANIONS: [[Companion; 1]; 2] = [companions(0), companions(1)];

const fn companions(variant: usize) -> [Companion; 1] {
    [Companion {
        fallback: Some(Code::new(no_tag as *const ())),
        ..Companion::needed("PQcmdStatus", &TAG[variant])
    }]
}

unsafe extern "C" fn no_tag(_: Answer) -> Text {
    std::ptr::null()
}

/// The kind that an answer's command tag names, as in `INSERT 0 1`.
fn kind_of_answer<const VARIANT: usize>(answer: Answer) -> Kind {
    // SAFETY: the engine filled in PQcmdStatus of the answer's library, with this signature, or `no_tag`.
    let tag =
        unsafe { transmute::<usize, unsafe extern "C" fn(Answer) -> Text>(TAG[VARIANT].get()) };
    // SAFETY: the answer that was just given to the program, or null.
    Kind::of_text(unsafe { tag(answer) })
}

/// Calls a function that waits for the answer.
fn asked_for<const VARIANT: usize>(
    connection: Connection,
    asked: Asked<'_>,
    call: impl FnOnce() -> Answer,
) -> Answer {
    let statement = match asked {
        Asked::Kind(kind) => return timed(BASE, kind, 1, call),
        Asked::ByAnswer(statement) => statement,
    };
    let begun = clock::now();
    let answer = call();
    let ticks = clock::since(begun);
    let kind = kind_of_answer::<VARIANT>(answer);
    if let Some(name) = statement.filter(|_| kind != Kind::Unknown) {
        CONNECTIONS.prepared(connection as usize, name, kind);
    }
    sql::spent(BASE, kind, 1, ticks);
    answer
}

/// A query as text, which may also deallocate prepared statements.
fn query<'a>(connection: Connection, query: Text) -> Asked<'a> {
    let kind = Kind::of_text(query);
    if kind == Kind::Unknown && !query.is_null() {
        let query = name(query);
        match deallocated(query) {
            Some(Deallocated::All) => CONNECTIONS.deallocated_all(connection as usize),
            Some(Deallocated::One(name)) => CONNECTIONS.deallocated(connection as usize, &name),
            None if executes(query) => return Asked::ByAnswer(None),
            None => {}
        }
    }
    Asked::Kind(kind)
}

/// Calls a function that sends a query and returns whether it succeeded.
fn sent(connection: Connection, asked: Asked<'_>, call: impl FnOnce() -> c_int) -> c_int {
    let begun = clock::now();
    let done = call();
    match asked {
        _ if done == 0 => {
            let kind = match asked {
                Asked::Kind(kind) => kind,
                Asked::ByAnswer(_) => Kind::Unknown,
            };
            sql::spent(BASE, kind, 1, clock::since(begun));
        }
        Asked::Kind(kind) => {
            sql::spent(BASE, kind, 1, 0);
            CONNECTIONS.sent(connection as usize, kind, begun);
        }
        Asked::ByAnswer(statement) => {
            CONNECTIONS.sent_unknown(connection as usize, statement, begun);
        }
    }
    done
}

static HOOKS: [Hook; 15] = [
    client_hook!(with (&COMPANIONS[0], &COMPANIONS[1]), "PQexec", (connection: Connection, query: Text) -> Answer,
        |call| asked_for::<VARIANT>(connection, self::query(connection, query), call)),
    client_hook!(with (&COMPANIONS[0], &COMPANIONS[1]), "PQexecParams",
        (connection: Connection, query: Text, n: c_int, types: Values, values: Values, sizes: Values,
         formats: Values, format: c_int) -> Answer,
        |call| asked_for::<VARIANT>(connection, self::query(connection, query), call)),
    client_hook!("PQprepare", (connection: Connection, name: Text, query: Text, n: c_int, types: Values) -> Answer,
        |call| timed(BASE, prepared(connection, name, query), 0, call)),
    client_hook!(with (&COMPANIONS[0], &COMPANIONS[1]), "PQexecPrepared",
        (connection: Connection, name: Text, n: c_int, values: Values, sizes: Values, formats: Values,
         format: c_int) -> Answer,
        |call| asked_for::<VARIANT>(connection, execution(connection, name), call)),
    client_hook!("PQsendQuery", (connection: Connection, query: Text) -> c_int,
        |call| sent(connection, self::query(connection, query), call)),
    client_hook!("PQsendQueryParams",
        (connection: Connection, query: Text, n: c_int, types: Values, values: Values, sizes: Values,
         formats: Values, format: c_int) -> c_int,
        |call| sent(connection, self::query(connection, query), call)),
    client_hook!("PQsendPrepare", (connection: Connection, name: Text, query: Text, n: c_int, types: Values) -> c_int,
    |call| {
        let (kind, begun) = (prepared(connection, name, query), clock::now());
        let done: c_int = call();
        if done == 0 {
            sql::spent(BASE, kind, 0, clock::since(begun));
        } else {
            CONNECTIONS.sent(connection as usize, kind, begun);
        }
        done
    }),
    client_hook!("PQsendQueryPrepared",
        (connection: Connection, name: Text, n: c_int, values: Values, sizes: Values, formats: Values,
         format: c_int) -> c_int,
        |call| sent(connection, execution(connection, name), call)),
    client_hook!(with (&COMPANIONS[0], &COMPANIONS[1]), "PQgetResult", (connection: Connection) -> Answer, |call| {
        let begun = clock::now();
        let answer: Answer = call();
        CONNECTIONS.answered(connection as usize, begun, true, || Some(kind_of_answer::<VARIANT>(answer)));
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

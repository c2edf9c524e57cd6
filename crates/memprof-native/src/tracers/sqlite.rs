//! `sqlite`: executed statements, as distinct from the steps of each.
//!
//! SQLite itself knows whether a statement has begun, and its text; no state is kept here. An extension with its own copy of
//! SQLite calls it directly, and is not seen.

use std::mem::transmute;

use libc::{c_char, c_int, c_void};

use super::sql::{self, Kind, timed};
use super::{Tracer, first_cell};
use crate::interpose::{Caller, Code, Companion, Entry, Hook, Original, client_hook};

const BASE: usize = first_cell("sqlite");
pub(super) const CELLS: usize = sql::CELLS;

pub(super) static TRACER: Tracer = Tracer::new("sqlite", &HOOKS, sql::report);

type Statement = *mut c_void;

static STEP: [Original; 2] = [const { Original::new() }; 2];
static TEXT: [Original; 2] = [const { Original::new() }; 2];
static BUSY: [Original; 2] = [const { Original::new() }; 2];

unsafe extern "C-unwind" fn step<const VARIANT: usize>(statement: Statement) -> c_int {
    type Step = unsafe extern "C-unwind" fn(Statement) -> c_int;
    type Text = unsafe extern "C" fn(Statement) -> *const c_char;
    // SAFETY: the engine filled in these functions of one SQLite library, which have these signatures.
    let (step, text, busy) = unsafe {
        (
            transmute::<usize, Step>(STEP[VARIANT].get()),
            transmute::<usize, Text>(TEXT[VARIANT].get()),
            transmute::<usize, Step>(BUSY[VARIANT].get()),
        )
    };
    // SAFETY: the caller's statement; each of the functions takes null, too.
    let (kind, is_first) = unsafe { (Kind::of_text(text(statement)), busy(statement) == 0) };
    // SAFETY: the caller's call.
    timed(BASE, kind, u64::from(is_first), || unsafe { step(statement) })
}

static COMPANIONS: [[Companion; 2]; 2] = [companions(0), companions(1)];

const fn companions(variant: usize) -> [Companion; 2] {
    [
        Companion::needed("sqlite3_sql", &TEXT[variant]),
        Companion::needed("sqlite3_stmt_busy", &BUSY[variant]),
    ]
}

static STEP_ENTRIES: [Entry; 2] = [
    Entry {
        caller: Caller::Any,
        code: Code::new(step::<0> as *const ()),
        original: &STEP[0],
        companions: &COMPANIONS[0],
    },
    Entry {
        caller: Caller::Any,
        code: Code::new(step::<1> as *const ()),
        original: &STEP[1],
        companions: &COMPANIONS[1],
    },
];

static HOOKS: [Hook; 2] = [
    Hook { symbol: "sqlite3_step", entries: &STEP_ENTRIES, own_calls: false, by_address: true },
    // However many statements the text contains, the program makes one call.
    client_hook!("sqlite3_exec",
        (base: *mut c_void, sql: *const c_char, row: *mut c_void, data: *mut c_void, error: *mut c_void) -> c_int,
        |call| timed(BASE, Kind::of_text(sql), 1, call)),
];

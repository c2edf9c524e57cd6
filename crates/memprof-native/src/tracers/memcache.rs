//! `memcache`: operations through libmemcached, and the servers' answers.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use libc::{c_char, c_int, c_long, c_void, size_t};

use super::{Tracer, add, first_cell, time};
use crate::Node;
use crate::clock;
use crate::interpose::{Hook, client_hook};
use crate::report::map;

/// Operations in report order.
const OPERATIONS: [&str; 13] = [
    "get",
    "set",
    "add",
    "replace",
    "append",
    "prepend",
    "cas",
    "delete",
    "increment",
    "decrement",
    "touch",
    "mget",
    "fetch",
];
const GET: usize = 0;
const SET: usize = 1;
const ADD: usize = 2;
const REPLACE: usize = 3;
const APPEND: usize = 4;
const PREPEND: usize = 5;
const CAS: usize = 6;
const DELETE: usize = 7;
const INCREMENT: usize = 8;
const DECREMENT: usize = 9;
const TOUCH: usize = 10;
const MGET: usize = 11;
const FETCH: usize = 12;

/// Number of libmemcached's result codes; a higher or missing one counts as unknown.
const CODES: usize = 49;
const SUCCESS: usize = 0;
const NOT_FOUND: usize = 16;
/// Calls, clock ticks, each code, and unknown ones.
const CELLS_AN_OPERATION: usize = 2 + CODES + 1;

const BASE: usize = first_cell("memcache");
pub(super) const CELLS: usize = OPERATIONS.len() * CELLS_AN_OPERATION;

pub(super) static TRACER: Tracer = Tracer { idle, ..Tracer::new("memcache", &HOOKS, report) };

/// Whether anything was counted. Few processes have this client, and its codes make up most of all counters.
static COUNTED: AtomicBool = AtomicBool::new(false);

fn idle() -> bool {
    !COUNTED.load(Relaxed)
}

fn report(cells: &[u64]) -> Node {
    let operations = OPERATIONS.iter().zip(cells.chunks(CELLS_AN_OPERATION));
    map(operations
        .filter(|(_, cells)| cells[0] > 0)
        .map(|(&name, cells)| {
            let responses = cells[2..].iter().enumerate().filter(|(_, count)| **count > 0);
            let responses =
                responses.map(|(code, &count)| (name_of(code), Node::Count(count))).collect();
            let entries = [("calls", Node::Count(cells[0])), ("time", time(cells[1]))];
            (name, map(entries.into_iter().chain([("responses", Node::Map(responses))]).collect()))
        })
        .collect())
}

fn name_of(code: usize) -> Cow<'static, str> {
    match code {
        SUCCESS => "success".into(),
        NOT_FOUND => "notfound".into(),
        CODES => "unknown".into(),
        code => code.to_string().into(),
    }
}

fn count(operation: usize, begun: u64, code: Option<c_int>) {
    let code =
        code.and_then(|code| usize::try_from(code).ok()).map_or(CODES, |code| code.min(CODES));
    COUNTED.store(true, Relaxed);
    let first = BASE + operation * CELLS_AN_OPERATION;
    add(first, [1, clock::since(begun)]);
    add(first + 2 + code, [1]);
}

/// Calls a function that returns a code.
fn answered(operation: usize, call: impl FnOnce() -> c_int) -> c_int {
    let begun = clock::now();
    let code = call();
    count(operation, begun, Some(code));
    code
}

/// Calls a function that writes a code.
fn written<R>(operation: usize, code: *const c_int, call: impl FnOnce() -> R) -> R {
    let begun = clock::now();
    let result = call();
    // SAFETY: null, or where the function has just written its code.
    count(operation, begun, unsafe { code.as_ref() }.copied());
    result
}

type Client = *mut c_void;
type Text = *const c_char;
type Out = *mut c_void;
type Code = *mut c_int;

static HOOKS: [Hook; 19] = [
    client_hook!("memcached_get", (client: Client, key: Text, n: size_t, size: Out, flags: Out, code: Code) -> Out,
        |call| written(GET, code, call)),
    client_hook!("memcached_get_by_key",
        (client: Client, group: Text, group_n: size_t, key: Text, n: size_t, size: Out, flags: Out, code: Code) -> Out,
        |call| written(GET, code, call)),
    client_hook!("memcached_set",
        (client: Client, key: Text, n: size_t, value: Text, size: size_t, until: c_long, flags: u32) -> c_int,
        |call| answered(SET, call)),
    client_hook!("memcached_set_by_key",
        (client: Client, group: Text, group_n: size_t, key: Text, n: size_t, value: Text, size: size_t,
         until: c_long, flags: u32) -> c_int,
        |call| answered(SET, call)),
    client_hook!("memcached_add",
        (client: Client, key: Text, n: size_t, value: Text, size: size_t, until: c_long, flags: u32) -> c_int,
        |call| answered(ADD, call)),
    client_hook!("memcached_replace",
        (client: Client, key: Text, n: size_t, value: Text, size: size_t, until: c_long, flags: u32) -> c_int,
        |call| answered(REPLACE, call)),
    client_hook!("memcached_append",
        (client: Client, key: Text, n: size_t, value: Text, size: size_t, until: c_long, flags: u32) -> c_int,
        |call| answered(APPEND, call)),
    client_hook!("memcached_prepend",
        (client: Client, key: Text, n: size_t, value: Text, size: size_t, until: c_long, flags: u32) -> c_int,
        |call| answered(PREPEND, call)),
    client_hook!("memcached_cas",
        (client: Client, key: Text, n: size_t, value: Text, size: size_t, until: c_long, flags: u32,
         version: u64) -> c_int,
        |call| answered(CAS, call)),
    client_hook!("memcached_delete", (client: Client, key: Text, n: size_t, until: c_long) -> c_int,
        |call| answered(DELETE, call)),
    client_hook!("memcached_delete_by_key",
        (client: Client, group: Text, group_n: size_t, key: Text, n: size_t, until: c_long) -> c_int,
        |call| answered(DELETE, call)),
    client_hook!("memcached_increment", (client: Client, key: Text, n: size_t, by: u32, value: Out) -> c_int,
        |call| answered(INCREMENT, call)),
    client_hook!("memcached_decrement", (client: Client, key: Text, n: size_t, by: u32, value: Out) -> c_int,
        |call| answered(DECREMENT, call)),
    client_hook!("memcached_touch", (client: Client, key: Text, n: size_t, until: c_long) -> c_int,
        |call| answered(TOUCH, call)),
    client_hook!("memcached_exist", (client: Client, key: Text, n: size_t) -> c_int, |call| answered(GET, call)),
    client_hook!("memcached_mget", (client: Client, keys: *const Text, sizes: *const size_t, n: size_t) -> c_int,
        |call| answered(MGET, call)),
    client_hook!("memcached_mget_by_key",
        (client: Client, group: Text, group_n: size_t, keys: *const Text, sizes: *const size_t, n: size_t) -> c_int,
        |call| answered(MGET, call)),
    client_hook!("memcached_fetch", (client: Client, key: Out, n: Out, size: Out, flags: Out, code: Code) -> Out,
        |call| written(FETCH, code, call)),
    client_hook!("memcached_fetch_result", (client: Client, result: Out, code: Code) -> Out,
        |call| written(FETCH, code, call)),
];

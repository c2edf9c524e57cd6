//! `dns`: name lookups.
//!
//! Since Ruby 3.3 a lookup runs in its own thread, so that it can be canceled; other libraries do the same. A thread started
//! by a library is a helper: its lookups count for the thread that started it, as long as that lives. Ruby threads are
//! started by the interpreter, and count for themselves.

use std::cell::Cell;
use std::mem::transmute;
use std::ptr;

use libc::{c_char, c_int, c_void};

use super::calls;
use super::{Tracer, add, first_cell};
use crate::Node;
use crate::clock;
use crate::counters::{self, Block};
use crate::interpose::{Caller, Code, Entry, Hook, Original, hook};
use crate::report::map;

const BASE: usize = first_cell("dns");
/// Counts of helpers, in the block of the thread that they help.
const HELPED: usize = BASE + calls::CELLS;
pub(super) const CELLS: usize = 2 * calls::CELLS;

pub(super) static TRACER: Tracer = Tracer::new("dns", &HOOKS, report);

fn report(cells: &[u64]) -> Node {
    let (own, helped) = cells.split_at(calls::CELLS);
    let all: Vec<u64> = own.iter().zip(helped).map(|(own, helped)| own + helped).collect();
    map(calls::report(&all, false).map(|calls| ("getaddrinfo", calls)).into_iter().collect())
}

/// A thread that has helpers.
#[derive(Clone, Copy)]
struct Requester {
    block: &'static Block,
    owner: u64,
}

thread_local! {
    /// The thread that this one helps.
    static REQUESTER: Cell<Option<Requester>> = const { Cell::new(None) };
}

fn requester() -> Requester {
    REQUESTER.get().unwrap_or_else(|| {
        let block = counters::mine();
        let owner = block.owner();
        Requester { block, owner }
    })
}

fn looked_up(ticks: u64) {
    match REQUESTER.get() {
        Some(Requester { block, owner }) if block.owner() == owner => {
            block.add_from_elsewhere(HELPED, 1);
            block.add_from_elsewhere(HELPED + 1, ticks);
        }
        _ => add(BASE, [1, ticks]),
    }
}

type Start = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;

/// The work of a helper.
struct Helper {
    start: Start,
    argument: *mut c_void,
    requester: Requester,
}

static CREATE: [Original; 2] = [const { Original::new() }; 2];

unsafe extern "C-unwind" fn create<const VARIANT: usize>(
    thread: *mut c_void,
    attributes: *const c_void,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    type Create =
        unsafe extern "C-unwind" fn(*mut c_void, *const c_void, Start, *mut c_void) -> c_int;
    // SAFETY: the engine filled in the address of `pthread_create`, which has this signature.
    let original = unsafe { transmute::<usize, Create>(CREATE[VARIANT].get()) };
    // SAFETY: requests memory of the size of the value written there.
    let helper = unsafe { libc::malloc(size_of::<Helper>()) }.cast::<Helper>();
    if helper.is_null() {
        // SAFETY: the caller's arguments. The thread will count for itself.
        return unsafe { original(thread, attributes, start, argument) };
    }
    let requester = requester();
    // SAFETY: fresh memory of that size, aligned for anything.
    unsafe {
        helper.write(Helper { start, argument, requester });
    }
    // SAFETY: the caller's arguments, except for the thread's function: ours takes the memory, and calls the caller's
    // function.
    let failed = unsafe { original(thread, attributes, help, helper.cast()) };
    if failed != 0 {
        // SAFETY: no thread was started that could use it.
        unsafe { libc::free(helper.cast()) };
    }
    failed
}

/// Runs in a helper. Nothing here may need dropping: the thread may be canceled.
unsafe extern "C-unwind" fn help(helper: *mut c_void) -> *mut c_void {
    // SAFETY: written by `create` for this thread alone, which frees it.
    let Helper { start, argument, requester } = unsafe { ptr::read(helper.cast()) };
    // SAFETY: as above; it was read.
    unsafe { libc::free(helper) };
    REQUESTER.set(Some(requester));
    // SAFETY: the function passed to `pthread_create`, with its argument.
    unsafe { start(argument) }
}

static CREATE_ENTRIES: [Entry; 2] = [
    Entry {
        caller: Caller::Others,
        code: Code::new(create::<0> as *const ()),
        original: &CREATE[0],
        companions: &[],
    },
    Entry {
        caller: Caller::Others,
        code: Code::new(create::<1> as *const ()),
        original: &CREATE[1],
        companions: &[],
    },
];

static HOOKS: [Hook; 2] = [
    hook!("getaddrinfo",
    (node: *const c_char, service: *const c_char, hints: *const c_void, found: *mut c_void) -> c_int,
    |call| {
        let begun = clock::now();
        let failed: c_int = call();
        looked_up(clock::since(begun));
        failed
    }),
    Hook {
        symbol: "pthread_create",
        entries: &CREATE_ENTRIES,
        own_calls: false,
        by_address: false,
    },
];

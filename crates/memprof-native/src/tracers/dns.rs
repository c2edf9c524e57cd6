//! `dns`: names that were looked up.
//!
//! Since Ruby 3.3 a look-up runs in a thread of its own, so that it can be given up, and others do the same. A thread
//! that a library starts is a helper: what it looks up counts for the thread that started it, as long as that lives.
//! Threads of Ruby are started by the interpreter, and stand for themselves.

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
/// What helpers count, in the block of the thread that they help.
const HELPED: usize = BASE + calls::CELLS;
pub(super) const CELLS: usize = 2 * calls::CELLS;

pub(super) static TRACER: Tracer = Tracer::new("dns", &HOOKS, report);

fn report(cells: &[u64]) -> Node {
    let (own, helped) = cells.split_at(calls::CELLS);
    let all: Vec<u64> = own
        .iter()
        .zip(helped)
        .map(|(own, helped)| own + helped)
        .collect();
    map(calls::report(&all, false)
        .map(|calls| ("getaddrinfo", calls))
        .into_iter()
        .collect())
}

/// A thread that has helpers.
#[derive(Clone, Copy)]
struct Requester {
    block: &'static Block,
    owner: u64,
}

thread_local! {
    /// Whom the thread helps.
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

/// What a helper is to do.
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
    // SAFETY: the engine filled in the address of `pthread_create`, whose signature this is.
    let original = unsafe { transmute::<usize, Create>(CREATE[VARIANT].get()) };
    // SAFETY: asks for memory of the size of what is written there.
    let helper = unsafe { libc::malloc(size_of::<Helper>()) }.cast::<Helper>();
    if helper.is_null() {
        // SAFETY: the caller's arguments. It will stand for itself.
        return unsafe { original(thread, attributes, start, argument) };
    }
    let requester = requester();
    // SAFETY: fresh memory of that size, aligned for anything.
    unsafe {
        helper.write(Helper {
            start,
            argument,
            requester,
        });
    }
    // SAFETY: the caller's arguments, but for what the thread runs: that takes the memory, and calls what the caller
    // wants to be called.
    let failed = unsafe { original(thread, attributes, help, helper.cast()) };
    if failed != 0 {
        // SAFETY: there is no thread that it was given to.
        unsafe { libc::free(helper.cast()) };
    }
    failed
}

/// Runs in a helper. Nothing here is to be dropped: the thread may be cancelled.
unsafe extern "C-unwind" fn help(helper: *mut c_void) -> *mut c_void {
    // SAFETY: written by `create` for this thread alone, which frees it.
    let Helper {
        start,
        argument,
        requester,
    } = unsafe { ptr::read(helper.cast()) };
    // SAFETY: as above; it was read.
    unsafe { libc::free(helper) };
    REQUESTER.set(Some(requester));
    // SAFETY: what the caller of `pthread_create` wants to be called, with its argument.
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

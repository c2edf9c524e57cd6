//! `memory`: calls of the allocator, by Ruby itself and by other code.

use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::{Tracer, add, chunk, first_cell};
use crate::Node;
use crate::counters;
use crate::interpose::{self, Caller, Code, Companion, Entry, Hook, Original};
use crate::malloc;
use crate::report::map;

/// The functions in report order.
const FUNCTIONS: [&str; 8] = [
    "malloc",
    "calloc",
    "realloc",
    "free",
    "posix_memalign",
    "aligned_alloc",
    "memalign",
    "valloc",
];
const MALLOC: usize = 0;
const CALLOC: usize = 3;
const REALLOC: usize = 6;
const FREE: usize = 9;
const POSIX_MEMALIGN: usize = 12;
const ALIGNED_ALLOC: usize = 15;
const MEMALIGN: usize = 18;
const VALLOC: usize = 21;

/// Calls, bytes requested, bytes set aside by the allocator (0 if not reported): per function and per caller, of two.
const BASE: usize = first_cell("memory");
const CELLS_A_CALLER: usize = FUNCTIONS.len() * 3;
pub(super) const CELLS: usize = 2 * CELLS_A_CALLER;

pub(super) static TRACER: Tracer = Tracer { obstacle, ..Tracer::new("memory", &HOOKS, report) };

pub(crate) fn obstacle() -> Option<&'static str> {
    chunk::prepare();
    /// Constant for the process, and expensive: it examines all objects.
    static IS_BUILT_IN: OnceLock<bool> = OnceLock::new();
    IS_BUILT_IN.get_or_init(|| interpose::is_built_in("malloc")).then_some(
        "this Ruby has its allocator built in, so that its calls to malloc cannot be seen",
    )
}

fn report(cells: &[u64]) -> Node {
    let (ruby, other) = cells.split_at(CELLS_A_CALLER);
    let both: Vec<u64> = ruby.iter().zip(other).map(|(ruby, other)| ruby + other).collect();
    let mut entries = functions(&both);
    if !entries.is_empty() {
        entries.extend([("ruby", map(functions(ruby))), ("other", map(functions(other)))]);
    }
    map(entries)
}

fn functions(cells: &[u64]) -> Vec<(&'static str, Node)> {
    let counts = cells.chunks(3).map(|cells| [cells[0], cells[1], cells[2]]);
    FUNCTIONS
        .iter()
        .zip(counts)
        .filter(|(_, [calls, ..])| *calls > 0)
        .map(|(&name, [calls, requested, actual])| {
            let mut entries = vec![("calls", Node::Count(calls))];
            if name != "free" {
                entries.push(("requested", Node::Count(requested)));
            }
            if actual > 0 || !WITHOUT_SIZES.load(Relaxed) {
                entries.push(("actual", Node::Count(actual)));
            }
            (name, map(entries))
        })
        .collect()
}

/// Two callers, and for each two allocators, in case the process has more than one.
const ENTRIES: usize = 4;
const fn first(entry: usize, function: usize) -> usize {
    BASE + (entry / 2) * CELLS_A_CALLER + function
}

/// Whether a trace is counting. The functions are also replaced just for a malloc recording.
#[inline(always)]
fn counts() -> bool {
    const PLACE: usize = super::place("memory");
    crate::trace::is_held(PLACE)
}

/// Whether an allocator of this process does not report the size of its blocks.
static WITHOUT_SIZES: AtomicBool = AtomicBool::new(false);

/// Replaces `malloc_usable_size` for an allocator without one. Another allocator's would misread the words before this one's
/// blocks.
extern "C" fn no_size(_: *mut c_void) -> usize {
    WITHOUT_SIZES.store(true, Relaxed);
    0
}

/// Functions of the same allocator that the replacements need: another allocator's would misread its memory.
struct Companions {
    size: Original,
    realloc: Original,
}

impl Companions {
    const fn new() -> Companions {
        Companions { size: Original::new(), realloc: Original::new() }
    }

    /// The companions to look for, for this function. libc implements `reallocarray` by the `realloc` in use: under
    /// jemalloc, which has no `reallocarray`, by jemalloc's.
    const fn of_library(&'static self, symbol: &str) -> [Companion; 2] {
        let as_libc_calls = matches!(symbol.as_bytes(), b"reallocarray");
        [
            Companion {
                symbol: "malloc_usable_size",
                original: &self.size,
                fallback: Some(Code::new(no_size as *const ())),
                as_libc_calls,
            },
            Companion { as_libc_calls, ..Companion::needed("realloc", &self.realloc) },
        ]
    }

    /// Bytes that the allocator set aside for a block.
    #[inline(always)]
    fn usable(&self, block: *mut c_void) -> u64 {
        if block.is_null() {
            return 0;
        }
        let size = self.size.get();
        if chunk::is_readable(size) {
            // SAFETY: a block of that allocator; if not, it would not survive the traced call either.
            return unsafe { chunk::size(block) };
        }
        // SAFETY: the engine filled in this function of the allocator that allocated this block, or is to free it.
        let size = unsafe { transmute::<usize, unsafe extern "C" fn(*mut c_void) -> usize>(size) };
        // SAFETY: as above.
        unsafe { size(block) as u64 }
    }

    fn realloc(&self, block: *mut c_void, n: usize) -> *mut c_void {
        type Realloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
        // SAFETY: the engine filled in this function of the same allocator.
        let realloc = unsafe { transmute::<usize, Realloc>(self.realloc.get()) };
        // SAFETY: the caller's block, which it meant to be reallocated.
        unsafe { realloc(block, n) }
    }
}

/// A hook with an entry for each caller and allocator. The body gets the call, the entry's number, its companions, and the
/// address after the call by name. Stubs in assembly pass that address in the register after the last argument's: Rust
/// functions cannot get their return address.
macro_rules! allocation {
    ($symbol:literal, ($($arg:ident: $type:ty),*) $(-> $result:ty)?, $registers:literal,
        |$call:ident, $entry:ident, $companions:ident, $caller:ident| $body:expr) => {{
        mod hook {
            use super::*;

            static ORIGINALS: [Original; ENTRIES] = [const { Original::new() }; ENTRIES];
            static NEEDED: [Companions; ENTRIES] = [const { Companions::new() }; ENTRIES];
            unsafe extern "C-unwind" fn replacement<const ENTRY: usize>($($arg: $type,)* $caller: usize) $(-> $result)? {
                let $call = || {
                    // SAFETY: the engine filled in the address of the function with that name, which has this signature.
                    let original = unsafe {
                        transmute::<usize, unsafe extern "C-unwind" fn($($type),*) $(-> $result)?>(ORIGINALS[ENTRY].get())
                    };
                    // SAFETY: the arguments are the caller's, who meant to call this function with them.
                    unsafe { original($($arg),*) }
                };
                let $entry = ENTRY;
                let $companions = &NEEDED[ENTRY];
                $body
            }
            stub!($symbol, "0", $registers, replacement::<0>);
            stub!($symbol, "1", $registers, replacement::<1>);
            stub!($symbol, "2", $registers, replacement::<2>);
            stub!($symbol, "3", $registers, replacement::<3>);
            unsafe extern "C" {
                #[link_name = concat!("memprof_", $symbol, "_0")]
                fn stub_0();
                #[link_name = concat!("memprof_", $symbol, "_1")]
                fn stub_1();
                #[link_name = concat!("memprof_", $symbol, "_2")]
                fn stub_2();
                #[link_name = concat!("memprof_", $symbol, "_3")]
                fn stub_3();
            }
            static COMPANIONS: [[Companion; 2]; ENTRIES] = [
                NEEDED[0].of_library($symbol),
                NEEDED[1].of_library($symbol),
                NEEDED[2].of_library($symbol),
                NEEDED[3].of_library($symbol),
            ];
            pub(super) static REPLACEMENTS: [Entry; ENTRIES] = [
                Entry { caller: Caller::Interpreter, code: Code::new(stub_0 as *const ()),
                    original: &ORIGINALS[0], companions: &COMPANIONS[0] },
                Entry { caller: Caller::Interpreter, code: Code::new(stub_1 as *const ()),
                    original: &ORIGINALS[1], companions: &COMPANIONS[1] },
                Entry { caller: Caller::Others, code: Code::new(stub_2 as *const ()),
                    original: &ORIGINALS[2], companions: &COMPANIONS[2] },
                Entry { caller: Caller::Others, code: Code::new(stub_3 as *const ()),
                    original: &ORIGINALS[3], companions: &COMPANIONS[3] },
            ];
        }
        Hook { symbol: $symbol, entries: &hook::REPLACEMENTS, own_calls: true, by_address: true }
    }};
}

/// Jumps to a replacement with the return address as an extra argument. `registers` names that argument's register, on
/// x86-64 and on aarch64.
#[cfg(target_arch = "x86_64")]
macro_rules! stub {
    ($symbol:literal, $entry:literal, $registers:literal, $replacement:path) => {
        std::arch::global_asm!(
            concat!(".pushsection .text.memprof_", $symbol, "_", $entry, ",\"ax\",@progbits"),
            concat!(".globl memprof_", $symbol, "_", $entry),
            concat!(".hidden memprof_", $symbol, "_", $entry),
            concat!(".type memprof_", $symbol, "_", $entry, ", @function"),
            concat!("memprof_", $symbol, "_", $entry, ":"),
            "endbr64",
            concat!(".set memprof_arguments, ", $registers),
            ".if memprof_arguments == 1",
            "mov rsi, qword ptr [rsp]",
            ".elseif memprof_arguments == 2",
            "mov rdx, qword ptr [rsp]",
            ".else",
            "mov rcx, qword ptr [rsp]",
            ".endif",
            "jmp {replacement}",
            concat!(".size memprof_", $symbol, "_", $entry, ", . - memprof_", $symbol, "_", $entry),
            ".popsection",
            replacement = sym $replacement,
        );
    };
}

/// The same for aarch64.
#[cfg(target_arch = "aarch64")]
macro_rules! stub {
    ($symbol:literal, $entry:literal, $registers:literal, $replacement:path) => {
        std::arch::global_asm!(
            concat!(".pushsection .text.memprof_", $symbol, "_", $entry, ",\"ax\",%progbits"),
            concat!(".globl memprof_", $symbol, "_", $entry),
            concat!(".hidden memprof_", $symbol, "_", $entry),
            concat!(".type memprof_", $symbol, "_", $entry, ", %function"),
            concat!("memprof_", $symbol, "_", $entry, ":"),
            "hint #34",
            concat!("mov x", $registers, ", x30"),
            "b {replacement}",
            concat!(".size memprof_", $symbol, "_", $entry, ", . - memprof_", $symbol, "_", $entry),
            ".popsection",
            replacement = sym $replacement,
        );
    };
}

/// Counts an allocated block, and records it if a recording is running.
#[inline(always)]
fn allocated(
    cell: usize,
    block: *mut c_void,
    size: usize,
    actual: impl FnOnce() -> u64,
    caller: usize,
) {
    if counts() {
        add(cell, [1, size as u64, actual()]);
    }
    if malloc::is_recording() {
        malloc::allocated(block as usize, size as u64, caller);
    }
}

/// Counts and records the reallocation of a block by `call`.
#[inline(always)]
fn reallocated(
    cell: usize,
    block: *mut c_void,
    size: usize,
    actual: impl FnOnce(*mut c_void) -> u64,
    caller: usize,
    call: impl FnOnce() -> *mut c_void,
) -> *mut c_void {
    let recorded = malloc::is_recording();
    let known = if recorded { malloc::forget(block as usize) } else { None };
    let moved = call();
    if counts() {
        add(cell, [1, size as u64, actual(moved)]);
    }
    if recorded {
        malloc::reallocated(known, block as usize, moved as usize, size as u64, caller);
    }
    moved
}

pub(crate) static HOOKS: [Hook; 9] = [
    allocation!("malloc", (n: usize) -> *mut c_void, "1", |call, entry, companions, caller| {
        let block = call();
        allocated(first(entry, MALLOC), block, n, || companions.usable(block), caller);
        block
    }),
    allocation!("calloc", (count: usize, n: usize) -> *mut c_void, "2", |call, entry, companions, caller| {
        let block = call();
        let size = count.saturating_mul(n);
        allocated(first(entry, CALLOC), block, size, || companions.usable(block), caller);
        block
    }),
    allocation!("realloc", (block: *mut c_void, n: usize) -> *mut c_void, "2", |call, entry, companions, caller| {
        reallocated(first(entry, REALLOC), block, n, |moved| companions.usable(moved), caller, call)
    }),
    // Based on `realloc`: in glibc it calls that through libc's own table, and would be counted twice.
    allocation!("reallocarray", (block: *mut c_void, count: usize, n: usize) -> *mut c_void, "3", |call, entry, companions, caller| {
        let size = count.saturating_mul(n);
        let usable = |moved| companions.usable(moved);
        reallocated(first(entry, REALLOC), block, size, usable, caller, || match count.checked_mul(n) {
            Some(n) => companions.realloc(block, n),
            None => call(),
        })
    }),
    allocation!("free", (block: *mut c_void), "1", |call, entry, companions, _caller| {
        if counts() {
            let actual = companions.usable(block);
            let cells = counters::mine();
            cells.add(first(entry, FREE), 1);
            cells.add(first(entry, FREE) + 2, actual);
        }
        if malloc::is_recording() {
            malloc::freed(block as usize);
        }
        call();
    }),
    allocation!("posix_memalign", (place: *mut *mut c_void, to: usize, n: usize) -> c_int, "3", |call, entry, companions, caller| {
        let failed: c_int = call();
        let block = if failed == 0 {
            // SAFETY: the function has just written there, without an error.
            unsafe { *place }
        } else {
            ptr::null_mut()
        };
        allocated(first(entry, POSIX_MEMALIGN), block, n, || companions.usable(block), caller);
        failed
    }),
    allocation!("aligned_alloc", (to: usize, n: usize) -> *mut c_void, "2", |call, entry, companions, caller| {
        let block = call();
        allocated(first(entry, ALIGNED_ALLOC), block, n, || companions.usable(block), caller);
        block
    }),
    allocation!("memalign", (to: usize, n: usize) -> *mut c_void, "2", |call, entry, companions, caller| {
        let block = call();
        allocated(first(entry, MEMALIGN), block, n, || companions.usable(block), caller);
        block
    }),
    allocation!("valloc", (n: usize) -> *mut c_void, "1", |call, entry, companions, caller| {
        let block = call();
        allocated(first(entry, VALLOC), block, n, || companions.usable(block), caller);
        block
    }),
];

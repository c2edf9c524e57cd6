//! Objects loaded while functions are replaced.
//!
//! `dlopen` depends on its caller, which determines where it looks for a bare name; so does `dlsym(RTLD_NEXT, ...)`. So
//! these are not wrapped like other functions. A few instructions save the arguments, ask what to do, and jump to the
//! original as if the caller had. Objects loaded this way are examined when the program first looks up one of their symbols.
//! With a path the caller does not matter: that `dlopen` is wrapped, and the object is examined before it returns.

use std::arch::global_asm;
use std::ffi::{CStr, c_char, c_int, c_void};

use super::engine;
use super::hook::{Caller, Code, Entry, Hook, Original};

static OPEN: [Original; 2] = [const { Original::new() }; 2];
static OPEN_IN: [Original; 2] = [const { Original::new() }; 2];
static SYMBOL: [Original; 2] = [const { Original::new() }; 2];

/// Saves the first three arguments, calls `$before` with them, restores them, and jumps to the returned address.
#[cfg(target_arch = "x86_64")]
macro_rules! detour {
    ($name:literal, $before:path) => {
        global_asm!(
            concat!(".globl ", $name), concat!(".hidden ", $name), concat!(".type ", $name, ", @function"),
            ".p2align 4",
            concat!($name, ":"),
            ".cfi_startproc",
            "push rdi", ".cfi_adjust_cfa_offset 8",
            "push rsi", ".cfi_adjust_cfa_offset 8",
            "push rdx", ".cfi_adjust_cfa_offset 8",
            "call {before}",
            "pop rdx", ".cfi_adjust_cfa_offset -8",
            "pop rsi", ".cfi_adjust_cfa_offset -8",
            "pop rdi", ".cfi_adjust_cfa_offset -8",
            "jmp rax",
            ".cfi_endproc",
            concat!(".size ", $name, ", . - ", $name),
            before = sym $before,
        );
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! detour {
    ($name:literal, $before:path) => {
        global_asm!(
            concat!(".globl ", $name), concat!(".hidden ", $name), concat!(".type ", $name, ", %function"),
            ".p2align 4",
            concat!($name, ":"),
            ".cfi_startproc",
            "stp x29, x30, [sp, #-48]!",
            ".cfi_def_cfa_offset 48", ".cfi_offset 29, -48", ".cfi_offset 30, -40",
            "mov x29, sp",
            "stp x0, x1, [sp, #16]",
            "str x2, [sp, #32]",
            "bl {before}",
            "mov x16, x0",
            "ldp x0, x1, [sp, #16]",
            "ldr x2, [sp, #32]",
            "ldp x29, x30, [sp], #48",
            ".cfi_def_cfa_offset 0", ".cfi_restore 29", ".cfi_restore 30",
            "br x16",
            ".cfi_endproc",
            concat!(".size ", $name, ", . - ", $name),
            before = sym $before,
        );
    };
}

detour!("memprof_native_dlopen_0", before_open::<0>);
detour!("memprof_native_dlopen_1", before_open::<1>);
detour!("memprof_native_dlmopen_0", before_open_in::<0>);
detour!("memprof_native_dlmopen_1", before_open_in::<1>);
detour!("memprof_native_dlsym_0", before_symbol::<0>);
detour!("memprof_native_dlsym_1", before_symbol::<1>);

unsafe extern "C" {
    fn memprof_native_dlopen_0();
    fn memprof_native_dlopen_1();
    fn memprof_native_dlmopen_0();
    fn memprof_native_dlmopen_1();
    fn memprof_native_dlsym_0();
    fn memprof_native_dlsym_1();
}

const fn entry(code: unsafe extern "C" fn(), original: &'static Original) -> Entry {
    Entry { caller: Caller::Any, code: Code::new(code as *const ()), original, companions: &[] }
}

static OPEN_ENTRIES: [Entry; 2] =
    [entry(memprof_native_dlopen_0, &OPEN[0]), entry(memprof_native_dlopen_1, &OPEN[1])];
static OPEN_IN_ENTRIES: [Entry; 2] =
    [entry(memprof_native_dlmopen_0, &OPEN_IN[0]), entry(memprof_native_dlmopen_1, &OPEN_IN[1])];
static SYMBOL_ENTRIES: [Entry; 2] =
    [entry(memprof_native_dlsym_0, &SYMBOL[0]), entry(memprof_native_dlsym_1, &SYMBOL[1])];

/// Installed whenever anything is.
pub(super) static HOOKS: [Hook; 3] = [
    Hook { symbol: "dlopen", entries: &OPEN_ENTRIES, own_calls: false, by_address: false },
    Hook { symbol: "dlmopen", entries: &OPEN_IN_ENTRIES, own_calls: false, by_address: false },
    Hook { symbol: "dlsym", entries: &SYMBOL_ENTRIES, own_calls: false, by_address: false },
];

/// Whether the loader finds the file regardless of the caller.
unsafe fn is_plain_path(name: *const c_char) -> bool {
    // SAFETY: an argument of `dlopen`: null, or a NUL-terminated name.
    !name.is_null() && {
        // SAFETY: as above.
        let name = unsafe { CStr::from_ptr(name) }.to_bytes();
        name.contains(&b'/') && !name.contains(&b'$')
    }
}

unsafe extern "C" fn before_open<const VARIANT: usize>(name: *const c_char, _: c_int) -> usize {
    // SAFETY: the arguments of a call of `dlopen`.
    if unsafe { is_plain_path(name) } {
        open::<VARIANT> as *const () as usize
    } else {
        OPEN[VARIANT].get()
    }
}

unsafe extern "C" fn before_open_in<const VARIANT: usize>(
    _: libc::c_long,
    name: *const c_char,
    _: c_int,
) -> usize {
    // SAFETY: the arguments of a call of `dlmopen`.
    if unsafe { is_plain_path(name) } {
        open_in::<VARIANT> as *const () as usize
    } else {
        OPEN_IN[VARIANT].get()
    }
}

unsafe extern "C" fn before_symbol<const VARIANT: usize>() -> usize {
    keeping_errno(engine::notice);
    SYMBOL[VARIANT].get()
}

unsafe extern "C-unwind" fn open<const VARIANT: usize>(
    name: *const c_char,
    mode: c_int,
) -> *mut c_void {
    type Open = unsafe extern "C-unwind" fn(*const c_char, c_int) -> *mut c_void;
    // SAFETY: the engine filled in the address of `dlopen`.
    let original = unsafe { std::mem::transmute::<usize, Open>(OPEN[VARIANT].get()) };
    // SAFETY: the caller's arguments.
    let handle = unsafe { original(name, mode) };
    after(handle)
}

unsafe extern "C-unwind" fn open_in<const VARIANT: usize>(
    namespace: libc::c_long,
    name: *const c_char,
    mode: c_int,
) -> *mut c_void {
    type OpenIn = unsafe extern "C-unwind" fn(libc::c_long, *const c_char, c_int) -> *mut c_void;
    // SAFETY: the engine filled in the address of `dlmopen`.
    let original = unsafe { std::mem::transmute::<usize, OpenIn>(OPEN_IN[VARIANT].get()) };
    // SAFETY: the caller's arguments.
    let handle = unsafe { original(namespace, name, mode) };
    after(handle)
}

fn after(handle: *mut c_void) -> *mut c_void {
    // After a failure, the caller has to fetch the loader's message.
    if !handle.is_null() {
        keeping_errno(engine::notice);
    }
    handle
}

fn keeping_errno(action: fn()) {
    // SAFETY: the address of the thread's errno is always valid for the thread itself.
    let errno = unsafe { *libc::__errno_location() };
    action();
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

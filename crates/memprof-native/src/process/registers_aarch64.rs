//! Registers of a stopped thread on aarch64.

use std::mem;

pub type Registers = libc::user_regs_struct;

/// Instruction `svc #0`.
pub const SYSTEM_CALL: &[u8] = &[0x01, 0x00, 0x00, 0xd4];

pub fn empty() -> Registers {
    // SAFETY: plain numbers, of which zero is one.
    unsafe { mem::zeroed() }
}

/// What the thread needs to run the instruction at `at`, and to call the system.
pub fn system_call(of: &Registers, at: u64, number: i64, arguments: [u64; 6]) -> Registers {
    let mut registers = *of;
    registers.regs[..6].copy_from_slice(&arguments);
    registers.regs[8] = number as u64;
    registers.pc = at;
    registers
}

/// What the system answered.
pub fn answer(of: &Registers) -> i64 {
    of.regs[0] as i64
}

/// The address of free stack below which `bytes` fit.
pub fn below_stack(of: &Registers, bytes: u64) -> u64 {
    (of.sp - bytes) & !0xf
}

/// What the thread needs to call a function that returns to address 0; and a word that may lie on its stack.
pub fn call(
    of: &Registers,
    stack: u64,
    function: u64,
    arguments: [u64; 2],
) -> (Registers, u64, u64) {
    let registers = calling(of, function, stack & !0xf, &arguments, 0);
    (registers, registers.sp - 16, 0)
}

fn calling(of: &Registers, function: u64, stack: u64, arguments: &[u64], back: u64) -> Registers {
    let mut registers = *of;
    registers.regs[..arguments.len()].copy_from_slice(arguments);
    // The frame pointer, and where the function returns to.
    registers.regs[29] = 0;
    registers.regs[30] = back;
    registers.sp = stack;
    registers.pc = function;
    registers
}

/// Whether the thread has returned to address 0, and with what.
pub fn returned(of: &Registers) -> Option<u64> {
    (of.pc == 0).then_some(of.regs[0])
}

/// Where the thread is.
pub fn place(of: &Registers) -> u64 {
    of.pc
}

/// What the thread needs to call a function that returns to the instruction at `back`, which calls the system; nothing has to
/// lie on its stack.
pub fn live_call(
    of: &Registers,
    function: u64,
    arguments: [u64; 4],
    back: u64,
) -> (Registers, Option<(u64, u64)>) {
    let registers = calling(of, function, below_stack(of, 0), &arguments, back);
    (registers, None)
}

/// Whether a thread at the beginning of a system call has returned from the function that it was to call as `call` says, to
/// the instruction at `back`; and with what.
pub fn returned_to(of: &Registers, call: &Registers, back: u64) -> Option<u64> {
    let behind = back + SYSTEM_CALL.len() as u64;
    (of.pc == behind && of.sp == call.sp).then_some(of.regs[0])
}

/// The same thread at the beginning of no system call: what that is called by is not among these registers.
pub fn without_system_call(of: &Registers) -> Registers {
    *of
}

/// Whether the thread was stopped in a system call, which the registers do not show.
pub fn in_system_call(_: &Registers) -> bool {
    false
}

/// Whether code at a place may change memory in a step that other threads cannot see half of: loads and stores of the
/// exclusive kind, and compare-and-swap.
pub fn is_exchange(code: &[u8]) -> bool {
    let word = code.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    word.is_some_and(|word| word & 0x3f00_0000 == 0x0800_0000)
}

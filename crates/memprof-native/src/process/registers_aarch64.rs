//! Registers of a stopped thread on aarch64.

use std::mem;

pub type Registers = libc::user_regs_struct;

/// Instruction `svc #0`.
pub const SYSTEM_CALL: &[u8] = &[0x01, 0x00, 0x00, 0xd4];

pub fn empty() -> Registers {
    // SAFETY: plain numbers, which may be zero.
    unsafe { mem::zeroed() }
}

/// The registers to run the system call instruction at `at`.
pub fn system_call(of: &Registers, at: u64, number: i64, arguments: [u64; 6]) -> Registers {
    let mut registers = *of;
    registers.regs[..6].copy_from_slice(&arguments);
    registers.regs[8] = number as u64;
    registers.pc = at;
    registers
}

/// The result of the system call.
pub fn answer(of: &Registers) -> i64 {
    of.regs[0] as i64
}

/// The address of free stack with room for `bytes`.
pub fn below_stack(of: &Registers, bytes: u64) -> u64 {
    (of.sp - bytes) & !0xf
}

/// The registers to call a function that returns to address 0, and a word that may be on its stack.
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
    // The frame pointer, and the return address.
    registers.regs[29] = 0;
    registers.regs[30] = back;
    registers.sp = stack;
    registers.pc = function;
    registers
}

/// The function's result, if the thread has returned to address 0.
pub fn returned(of: &Registers) -> Option<u64> {
    (of.pc == 0).then_some(of.regs[0])
}

/// The address that the thread is at.
pub fn place(of: &Registers) -> u64 {
    of.pc
}

/// The registers to call a function that returns to the system call instruction at `back`; nothing has to be on its stack.
pub fn live_call(
    of: &Registers,
    function: u64,
    arguments: [u64; 4],
    back: u64,
) -> (Registers, Option<(u64, u64)>) {
    let registers = calling(of, function, below_stack(of, 0), &arguments, back);
    (registers, None)
}

/// The function's result, if a thread at the start of a system call has returned from the call set up by `call` to the
/// instruction at `back`.
pub fn returned_to(of: &Registers, call: &Registers, back: u64) -> Option<u64> {
    let behind = back + SYSTEM_CALL.len() as u64;
    (of.pc == behind && of.sp == call.sp).then_some(of.regs[0])
}

/// The same thread without a pending system call; the call number is not among these registers.
pub fn without_system_call(of: &Registers) -> Registers {
    *of
}

/// Whether the thread was stopped in a system call, which these registers do not show.
pub fn in_system_call(_: &Registers) -> bool {
    false
}

/// Whether the code may change memory atomically: exclusive loads and stores, and compare-and-swap.
pub fn is_exchange(code: &[u8]) -> bool {
    let word = code.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    word.is_some_and(|word| word & 0x3f00_0000 == 0x0800_0000)
}

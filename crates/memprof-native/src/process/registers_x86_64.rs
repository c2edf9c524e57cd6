//! Registers of a stopped thread on x86-64.

use std::mem;

pub type Registers = libc::user_regs_struct;

/// Bytes below the stack pointer that a function may use without moving it.
const RED_ZONE: u64 = 128;
/// The direction flag, which must be clear when a function is called.
const DIRECTION: u64 = 1 << 10;
/// No system call is pending, so none is restarted.
const NONE: u64 = u64::MAX;

/// Instruction `syscall`.
pub const SYSTEM_CALL: &[u8] = &[0x0f, 0x05];

pub fn empty() -> Registers {
    // SAFETY: plain numbers, which may be zero.
    unsafe { mem::zeroed() }
}

/// The registers to run the system call instruction at `at`.
pub fn system_call(of: &Registers, at: u64, number: i64, arguments: [u64; 6]) -> Registers {
    let [rdi, rsi, rdx, r10, r8, r9] = arguments;
    Registers { rip: at, rax: number as u64, orig_rax: NONE, rdi, rsi, rdx, r10, r8, r9, ..*of }
}

/// The result of the system call.
pub fn answer(of: &Registers) -> i64 {
    of.rax as i64
}

/// The address of free stack with room for `bytes`.
pub fn below_stack(of: &Registers, bytes: u64) -> u64 {
    (of.rsp - RED_ZONE - bytes) & !0xf
}

/// The registers to call a function that returns to address 0, and the words that must be on its stack.
pub fn call(
    of: &Registers,
    stack: u64,
    function: u64,
    arguments: [u64; 2],
) -> (Registers, u64, u64) {
    let top = (stack & !0xf) - 8;
    (calling(of, function, top, arguments), top, 0)
}

fn calling(of: &Registers, function: u64, stack: u64, arguments: [u64; 2]) -> Registers {
    Registers {
        rip: function,
        rsp: stack,
        rbp: 0,
        rax: 0,
        orig_rax: NONE,
        rdi: arguments[0],
        rsi: arguments[1],
        eflags: of.eflags & !DIRECTION,
        ..*of
    }
}

/// The function's result, if the thread has returned to address 0.
pub fn returned(of: &Registers) -> Option<u64> {
    (of.rip == 0).then_some(of.rax)
}

/// The address that the thread is at.
pub fn place(of: &Registers) -> u64 {
    of.rip
}

/// The registers to call a function that returns to the system call instruction at `back`, and the word that must be on its
/// stack.
pub fn live_call(
    of: &Registers,
    function: u64,
    arguments: [u64; 4],
    back: u64,
) -> (Registers, Option<(u64, u64)>) {
    let top = below_stack(of, 0) - 8;
    let registers = Registers {
        rdx: arguments[2],
        rcx: arguments[3],
        ..calling(of, function, top, [arguments[0], arguments[1]])
    };
    (registers, Some((top, back)))
}

/// The function's result, if a thread at the start of a system call has returned from the call set up by `call` to the
/// instruction at `back`.
pub fn returned_to(of: &Registers, call: &Registers, back: u64) -> Option<u64> {
    let behind = back + SYSTEM_CALL.len() as u64;
    (of.rip == behind && of.rsp == call.rsp + 8).then_some(of.orig_rax)
}

/// The same thread without a pending system call.
pub fn without_system_call(of: &Registers) -> Registers {
    Registers { orig_rax: NONE, ..*of }
}

/// Whether the thread was stopped in a system call.
pub fn in_system_call(of: &Registers) -> bool {
    of.orig_rax as i64 >= 0
}

/// Whether the code may change memory atomically: `lock cmpxchg`.
pub fn is_exchange(code: &[u8]) -> bool {
    let rest = match code {
        [0xf0, rest @ ..] => rest,
        _ => return false,
    };
    // A prefix for wider operands or more registers may follow.
    let rest = match rest {
        [0x40..=0x4f | 0x66, rest @ ..] => rest,
        _ => rest,
    };
    matches!(rest, [0x0f, 0xb0 | 0xb1, ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exchanges_are_distinguished_from_other_code() {
        // lock cmpxchg %esi,0x3e0(%r12); with 64 bits; of a byte
        assert!(is_exchange(&[0xf0, 0x41, 0x0f, 0xb1, 0xb4, 0x24]));
        assert!(is_exchange(&[0xf0, 0x48, 0x0f, 0xb1, 0x0f]));
        assert!(is_exchange(&[0xf0, 0x0f, 0xb0, 0x0f]));
        // lock orl $0x4,0x20(%rsi); cmpxchg without a lock; a register, one byte
        assert!(!is_exchange(&[0xf0, 0x83, 0x4e, 0x20, 0x04]));
        assert!(!is_exchange(&[0x0f, 0xb1, 0x0f]));
        assert!(!is_exchange(&[0x55]));
        assert!(!is_exchange(&[]));
    }
}

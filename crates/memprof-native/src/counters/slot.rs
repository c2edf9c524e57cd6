//! One word per thread: the address of its block.
//!
//! In a library loaded at run time, `thread_local!` uses `__tls_get_addr`, which may allocate on a thread's first access. In
//! a signal handler that interrupted the allocator, that would deadlock. A word in the initial block of thread-local storage
//! has no such first access; Rust cannot request one, but assembly can.

#[cfg(not(target_env = "musl"))]
mod place {
    use std::arch::{asm, global_asm};

    global_asm!(
        ".pushsection .tbss.memprof_native_block,\"awT\",%nobits",
        ".globl memprof_native_block",
        ".hidden memprof_native_block",
        ".type memprof_native_block, %object",
        ".size memprof_native_block, 8",
        ".p2align 3",
        "memprof_native_block:",
        ".zero 8",
        ".popsection",
    );

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub fn get() -> usize {
        let value;
        // SAFETY: reads the thread's own word, which is defined above and laid out by the linker and the loader.
        unsafe {
            asm!("mov {value}, qword ptr [rip + memprof_native_block@GOTTPOFF]",
                 "mov {value}, qword ptr fs:[{value}]",
                 value = out(reg) value, options(nostack, preserves_flags, readonly));
        }
        value
    }

    #[cfg(target_arch = "x86_64")]
    pub fn set(value: usize) {
        // SAFETY: writes the thread's own word, which is defined above and laid out by the linker and the loader.
        unsafe {
            asm!("mov {place}, qword ptr [rip + memprof_native_block@GOTTPOFF]",
                 "mov qword ptr fs:[{place}], {value}",
                 place = out(reg) _, value = in(reg) value, options(nostack, preserves_flags));
        }
    }

    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    pub fn get() -> usize {
        let value;
        // SAFETY: reads the thread's own word, which is defined above and laid out by the linker and the loader.
        unsafe {
            asm!("adrp {place}, :gottprel:memprof_native_block",
                 "ldr {place}, [{place}, :gottprel_lo12:memprof_native_block]",
                 "mrs {value}, tpidr_el0",
                 "ldr {value}, [{value}, {place}]",
                 place = out(reg) _, value = out(reg) value, options(nostack, preserves_flags, readonly));
        }
        value
    }

    #[cfg(target_arch = "aarch64")]
    pub fn set(value: usize) {
        // SAFETY: writes the thread's own word, which is defined above and laid out by the linker and the loader.
        unsafe {
            asm!("adrp {place}, :gottprel:memprof_native_block",
                 "ldr {place}, [{place}, :gottprel_lo12:memprof_native_block]",
                 "mrs {thread}, tpidr_el0",
                 "str {value}, [{thread}, {place}]",
                 place = out(reg) _, thread = out(reg) _, value = in(reg) value, options(nostack, preserves_flags));
        }
    }
}

/// musl allocates every thread's storage when the library is loaded, so first accesses do not allocate; and it does not load
/// a library that needs space in the initial block.
#[cfg(target_env = "musl")]
mod place {
    use std::cell::Cell;

    thread_local! {
        static BLOCK: Cell<usize> = const { Cell::new(0) };
    }

    #[inline(always)]
    pub fn get() -> usize {
        BLOCK.with(Cell::get)
    }

    pub fn set(value: usize) {
        BLOCK.with(|block| block.set(value));
    }
}

pub(super) use place::{get, set};

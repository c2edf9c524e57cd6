//! ptrace(2), and waiting for its stops.

use std::ffi::{c_int, c_void};
use std::io;
use std::mem;
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use super::error::SnapshotError;
use super::registers::{self, Registers};

/// The type of a request.
#[cfg(not(target_env = "musl"))]
type Request = std::ffi::c_uint;
#[cfg(target_env = "musl")]
type Request = c_int;

/// Requests that the libc crate does not name (linux/ptrace.h).
const GETSIGMASK: Request = 0x420a;
const SETSIGMASK: Request = 0x420b;
/// General registers, for GETREGSET and SETREGSET (elf.h).
const NT_PRSTATUS: c_int = 1;

/// Options while a process copies itself: system calls differ from other traps, and the copy is traced from its start.
pub const COPYING: c_int = libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_TRACESYSGOOD;
/// Options of the copy: the kernel kills it when this program ends.
pub const COPY: c_int = libc::PTRACE_O_EXITKILL | libc::PTRACE_O_TRACESYSGOOD;

/// Floating point and vector registers: all that this processor has, or those that every one has.
#[cfg(target_arch = "x86_64")]
const VECTORS: [c_int; 2] = [0x202, 2];
#[cfg(target_arch = "aarch64")]
const VECTORS: [c_int; 1] = [2];
/// Buffer size for them.
const VECTOR_BYTES: usize = 1 << 16;

/// Interval between polls of a thread.
const GLANCE: Duration = Duration::from_micros(100);
/// Initial polls without a pause: most stops come within microseconds.
const QUICK: u32 = 200;

/// The reason why a thread does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The thread ended or was killed: the status of waitpid(2).
    Ended(c_int),
    /// PTRACE_INTERRUPT, or a stop of the whole process.
    Interrupted,
    /// The thread has made a copy of itself.
    Cloned,
    /// At the beginning or the end of a system call.
    SystemCall,
    /// Before this signal is delivered.
    Signal(c_int),
}

fn request(
    what: Request,
    thread: i32,
    address: *mut c_void,
    data: *mut c_void,
) -> Result<(), SnapshotError> {
    // SAFETY: ptrace accesses only what the callers of this function pass, by the rules of each request.
    let answer = unsafe { libc::ptrace(what, thread, address, data) };
    if answer == -1 {
        return Err(io::Error::last_os_error().into());
    }
    Ok(())
}

fn word(number: c_int) -> *mut c_void {
    ptr::without_provenance_mut(number as usize)
}

/// Starts tracing a thread, which keeps running.
pub fn seize(thread: i32, options: c_int) -> Result<(), SnapshotError> {
    request(libc::PTRACE_SEIZE, thread, ptr::null_mut(), word(options))
}

/// Asks a thread to stop.
pub fn interrupt(thread: i32) -> Result<(), SnapshotError> {
    request(libc::PTRACE_INTERRUPT, thread, ptr::null_mut(), ptr::null_mut())
}

/// Resumes a stopped thread, with this signal or 0.
pub fn resume(thread: i32, signal: c_int) -> Result<(), SnapshotError> {
    request(libc::PTRACE_CONT, thread, ptr::null_mut(), word(signal))
}

/// Resumes a stopped thread until the start or end of a system call.
pub fn resume_to_system_call(thread: i32) -> Result<(), SnapshotError> {
    request(libc::PTRACE_SYSCALL, thread, ptr::null_mut(), ptr::null_mut())
}

/// Stops tracing a stopped thread, which resumes.
pub fn detach(thread: i32) -> Result<(), SnapshotError> {
    request(libc::PTRACE_DETACH, thread, ptr::null_mut(), ptr::null_mut())
}

/// Sets options of a stopped thread.
pub fn set_options(thread: i32, options: c_int) -> Result<(), SnapshotError> {
    request(libc::PTRACE_SETOPTIONS, thread, ptr::null_mut(), word(options))
}

/// The process id of the copy that a thread has just made, as seen by this program.
pub fn copied_to(thread: i32) -> Result<i32, SnapshotError> {
    let mut pid: libc::c_ulong = 0;
    request(libc::PTRACE_GETEVENTMSG, thread, ptr::null_mut(), (&raw mut pid).cast())?;
    Ok(pid as i32)
}

/// Registers of a stopped thread.
pub fn registers(thread: i32) -> Result<Registers, SnapshotError> {
    let mut found = registers::empty();
    let mut place =
        libc::iovec { iov_base: (&raw mut found).cast(), iov_len: mem::size_of::<Registers>() };
    request(libc::PTRACE_GETREGSET, thread, word(NT_PRSTATUS), (&raw mut place).cast())?;
    match place.iov_len == mem::size_of::<Registers>() {
        true => Ok(found),
        false => Err(SnapshotError::Foreign),
    }
}

/// Sets registers of a stopped thread.
pub fn set_registers(thread: i32, registers: &Registers) -> Result<(), SnapshotError> {
    let mut registers = *registers;
    let mut place =
        libc::iovec { iov_base: (&raw mut registers).cast(), iov_len: mem::size_of::<Registers>() };
    request(libc::PTRACE_SETREGSET, thread, word(NT_PRSTATUS), (&raw mut place).cast())
}

/// Floating point and vector registers of a stopped thread, to be restored by [`set_vectors`].
pub fn vectors(thread: i32) -> Result<Vec<u8>, SnapshotError> {
    let mut error = SnapshotError::Foreign;
    for kind in VECTORS {
        let mut found = vec![0u8; VECTOR_BYTES];
        let mut place = libc::iovec { iov_base: found.as_mut_ptr().cast(), iov_len: found.len() };
        match request(libc::PTRACE_GETREGSET, thread, word(kind), (&raw mut place).cast()) {
            Ok(()) => {
                found.truncate(place.iov_len);
                // Marks which set was read.
                found.push(u8::from(kind == VECTORS[0]));
                return Ok(found);
            }
            Err(why) => error = why,
        }
    }
    Err(error)
}

/// Restores floating point and vector registers.
pub fn set_vectors(thread: i32, vectors: &[u8]) -> Result<(), SnapshotError> {
    let Some((first, bytes)) = vectors.split_last() else {
        return Ok(());
    };
    let kind = match *first {
        1 => VECTORS[0],
        _ => VECTORS[VECTORS.len() - 1],
    };
    let mut bytes = bytes.to_vec();
    let mut place = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    request(libc::PTRACE_SETREGSET, thread, word(kind), (&raw mut place).cast())
}

/// Skips the system call that a thread is about to make.
pub fn skip_system_call(thread: i32, registers: &Registers) -> Result<(), SnapshotError> {
    #[cfg(target_arch = "aarch64")]
    {
        const NT_ARM_SYSTEM_CALL: c_int = 0x404;
        let mut none: c_int = -1;
        let mut place =
            libc::iovec { iov_base: (&raw mut none).cast(), iov_len: mem::size_of::<c_int>() };
        request(libc::PTRACE_SETREGSET, thread, word(NT_ARM_SYSTEM_CALL), (&raw mut place).cast())?;
    }
    set_registers(thread, &registers::without_system_call(registers))
}

/// Runs one instruction of a stopped thread.
pub fn step(thread: i32) -> Result<(), SnapshotError> {
    request(libc::PTRACE_SINGLESTEP, thread, ptr::null_mut(), ptr::null_mut())
}

/// Signals that a stopped thread has blocked.
pub fn blocked_signals(thread: i32) -> Result<u64, SnapshotError> {
    let mut mask = 0u64;
    request(GETSIGMASK, thread, word(8), (&raw mut mask).cast())?;
    Ok(mask)
}

/// Sets the blocked signals. Those that arrive meanwhile stay pending.
pub fn block_signals(thread: i32, mut mask: u64) -> Result<(), SnapshotError> {
    request(SETSIGMASK, thread, word(8), (&raw mut mask).cast())
}

/// Waits for a stop; `None` if it does not come in time.
pub fn wait(thread: i32, until: Instant) -> Result<Option<Stop>, SnapshotError> {
    let mut looks = 0;
    loop {
        let mut status = 0;
        // SAFETY: writes the status.
        let found = unsafe { libc::waitpid(thread, &raw mut status, libc::__WALL | libc::WNOHANG) };
        if found == thread {
            return Ok(Some(stop(status)));
        }
        if found == -1 {
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => continue,
                Some(libc::ECHILD) => return Err(SnapshotError::Gone),
                _ => return Err(error.into()),
            }
        }
        if Instant::now() >= until {
            return Ok(None);
        }
        looks += 1;
        match looks < QUICK {
            true => thread::yield_now(),
            false => thread::sleep(GLANCE),
        }
    }
}

fn stop(status: c_int) -> Stop {
    if !libc::WIFSTOPPED(status) {
        return Stop::Ended(status);
    }
    let signal = libc::WSTOPSIG(status);
    match status >> 16 {
        libc::PTRACE_EVENT_STOP => Stop::Interrupted,
        libc::PTRACE_EVENT_CLONE => Stop::Cloned,
        _ if signal == libc::SIGTRAP | 0x80 => Stop::SystemCall,
        _ => Stop::Signal(signal),
    }
}

/// Copies memory of another process.
pub fn read(pid: i32, address: u64, bytes: &mut [u8]) -> io::Result<()> {
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let remote = remote(address, bytes.len());
    // SAFETY: writes no more bytes than fit.
    let count =
        unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    whole(count, bytes.len())
}

/// Writes to the memory of a process that this program traces.
pub fn write(pid: i32, address: u64, bytes: &[u8]) -> io::Result<()> {
    let local = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let remote = remote(address, bytes.len());
    // SAFETY: reads the bytes here, and writes them there.
    let count =
        unsafe { libc::process_vm_writev(pid, &raw const local, 1, &raw const remote, 1, 0) };
    whole(count, bytes.len())
}

fn remote(address: u64, length: usize) -> libc::iovec {
    libc::iovec { iov_base: ptr::without_provenance_mut(address as usize), iov_len: length }
}

fn whole(count: isize, length: usize) -> io::Result<()> {
    match count {
        -1 => Err(io::Error::last_os_error()),
        _ if count as usize == length => Ok(()),
        _ => Err(io::Error::from_raw_os_error(libc::EFAULT)),
    }
}

//! Makes and ends copies.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use super::channel::{Channel, refused};
use super::descriptors;
use super::error::SnapshotError;
use super::other_threads::OtherThreads;
use super::ptrace::{self, Stop};
use super::registers::{self, Registers};
use super::stopped::{PATIENCE, Stopped, instruction, run};
use super::thread_status;

/// Arguments of `clone` for a child like one of `fork`, but without an exit signal. Its stack is invalid: if this program is
/// killed before it sets the child's registers, the child faults at its first step.
const CLONE: [u64; 6] = [0, 16, 0, 0, 0, 0];

/// An in-memory file whose contents may be executed (MFD_EXEC).
const EXECUTABLE: u32 = 0x10;

/// Time for a process to reap its copy, and the interval between attempts.
const REAPING: Duration = Duration::from_secs(4);
const AGAIN: Duration = Duration::from_millis(5);

/// A copy of a process, as one of its threads left it, stopped before its first step. Only the thread that made it may use
/// it: the kernel identifies a tracer by its thread.
pub struct Snapshot {
    /// The thread that was copied.
    thread: i32,
    /// The copy, as this program sees it.
    pub(super) copy: i32,
    /// The copy, as its parent sees it.
    inner: i32,
    /// Address of the system call instruction.
    instruction: u64,
    /// Registers of the thread when it was copied.
    pub(super) registers: Registers,
    /// Registers of other threads at that moment, in the kernel's order.
    pub others: Vec<(i32, Vec<u64>)>,
    /// How long the thread was paused for, or any thread that had to wait for it.
    pub pause: Duration,
    /// Whether the copy has been waited for already.
    pub(super) ended: bool,
}

impl Snapshot {
    /// Copies the process of this thread, while its other threads keep running.
    pub fn take(thread: i32) -> Result<Snapshot, SnapshotError> {
        Snapshot::take_beside(thread, || None)
    }

    /// Copies the process while all its threads are paused, and records their registers.
    pub fn take_with_threads(thread: i32) -> Result<Snapshot, SnapshotError> {
        let process = process_of(thread).ok_or(SnapshotError::Gone)?;
        Snapshot::take_beside(thread, || Some(OtherThreads::stop(process, thread)))
    }

    fn take_beside(
        thread: i32,
        others: impl FnOnce() -> Option<OtherThreads>,
    ) -> Result<Snapshot, SnapshotError> {
        let instruction = instruction(thread)?;
        let mut beginning = Instant::now();
        let mut copy = None;
        let others = others();
        let (inner, registers) = {
            let stopped = Stopped::stop(thread)?;
            if others.is_none() {
                beginning = Instant::now();
            }
            let inner = stopped.call(instruction, libc::SYS_clone, CLONE, &mut copy);
            let registers = stopped.registers;
            stopped.release()?;
            (inner?, registers)
        };
        let registers_of_others = others.iter().flat_map(OtherThreads::registers);
        let others_then =
            registers_of_others.map(|(id, registers)| (id, words(&registers))).collect();
        drop(others);
        let pause = beginning.elapsed();
        if inner < 0 {
            let error = io::Error::from_raw_os_error(-inner as i32);
            return Err(SnapshotError::Refused("be copied", error));
        }
        let copy = copy.ok_or(SnapshotError::Gone)?;
        let snapshot = Snapshot {
            thread,
            copy,
            inner: inner as i32,
            instruction,
            registers,
            others: others_then,
            pause,
            ended: false,
        };
        snapshot.silence()?;
        Ok(snapshot)
    }

    /// The copy's process id.
    pub fn pid(&self) -> i32 {
        self.copy
    }

    /// General registers of the copied thread at that moment, in the kernel's order.
    pub fn registers(&self) -> Vec<u64> {
        words(&self.registers)
    }

    /// Redirects the copy's standard output and error to /dev/null and closes its other files.
    fn silence(&self) -> Result<(), SnapshotError> {
        let path = self.room();
        ptrace::write(self.copy, path, b"/dev/null\0")?;
        let here = libc::AT_FDCWD as u64;
        let null = self.system(libc::SYS_openat, [here, path, libc::O_RDWR as u64, 0, 0, 0])?;
        if null >= 0 {
            for descriptor in [1, 2] {
                self.system(libc::SYS_dup3, [null as u64, descriptor, 0, 0, 0, 0])?;
            }
        }
        // The copy would keep connections open that the process closes. Kernels before 5.9 lack this call.
        let all = [3, u64::from(u32::MAX), 0, 0, 0, 0];
        self.system(libc::SYS_close_range, all)?;
        Ok(())
    }

    /// Connects this program with the copy.
    pub fn channel(&self) -> Result<Channel, SnapshotError> {
        Channel::open(self.copy, self.room(), |number, arguments| self.system(number, arguments))
    }

    /// Makes the copy create an in-memory file with these contents and returns its number there. The copy opens no file of
    /// this program, not even by name.
    pub fn file(&self, contents: &[u8]) -> Result<i32, SnapshotError> {
        let name = self.room();
        ptrace::write(self.copy, name, b"memprof\0")?;
        let create = |flags: u32| {
            let arguments = [name, u64::from(libc::MFD_CLOEXEC | flags), 0, 0, 0, 0];
            self.system(libc::SYS_memfd_create, arguments)
        };
        let number = match create(EXECUTABLE)? {
            // Before Linux 6.3 all are executable.
            error if error == -i64::from(libc::EINVAL) => create(0)?,
            other => other,
        };
        let number = refused("create a file in memory", number)? as i32;
        let held = descriptors::hold(self.copy)?;
        let mut file = File::from(descriptors::take(held.as_fd(), number)?);
        file.write_all(contents)?;
        Ok(number)
    }

    /// Makes the copy call the system.
    fn system(&self, number: i64, arguments: [u64; 6]) -> Result<i64, SnapshotError> {
        run(self.copy, &self.registers, self.instruction, number, arguments, &mut None)
    }

    /// Address of 64 unused bytes in the copy.
    fn room(&self) -> u64 {
        registers::below_stack(&self.registers, 64)
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        if !self.ended {
            // SAFETY: the copy is a separate process, which this program traces and has not waited for.
            unsafe { libc::kill(self.copy, libc::SIGKILL) };
            let until = Instant::now() + PATIENCE;
            while let Ok(Some(stop)) = ptrace::wait(self.copy, until) {
                if matches!(stop, Stop::Ended(_)) {
                    break;
                }
            }
        }
        // The parent has to reap the copy, else a zombie remains for the parent's lifetime. Another command may be tracing
        // the parent right now.
        let mut threads = vec![self.thread];
        threads.extend(process_of(self.thread).or_else(|| process_of(self.copy)));
        let until = Instant::now() + REAPING;
        while !threads.iter().any(|thread| is_settled(&reap(*thread, self.inner)))
            && Instant::now() < until
        {
            std::thread::sleep(AGAIN);
        }
    }
}

/// Registers in the kernel's order.
fn words(registers: &Registers) -> Vec<u64> {
    let count = size_of::<Registers>() / size_of::<u64>();
    // SAFETY: the kernel's structure consists of words on both processors, and outlives the slice.
    let words =
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(registers).cast::<u64>(), count) };
    words.to_vec()
}

/// Whether a copy was reaped, or never can be.
fn is_settled(reaped: &Result<(), SnapshotError>) -> bool {
    !matches!(
        reaped,
        Err(SnapshotError::Traced
            | SnapshotError::Busy
            | SnapshotError::Forbidden
            | SnapshotError::Gone)
    )
}

/// Makes a process wait for its copy. The process may run another program by now.
fn reap(thread: i32, inner: i32) -> Result<(), SnapshotError> {
    let instruction = instruction(thread)?;
    let stopped = Stopped::stop(thread)?;
    let options = (libc::__WCLONE | libc::WNOHANG) as u64;
    let arguments = [inner as u64, 0, options, 0, 0, 0];
    let answer = stopped.call(instruction, libc::SYS_wait4, arguments, &mut None);
    stopped.release()?;
    answer.map(|_| ())
}

/// The process of a thread: the id of its first thread.
fn process_of(thread: i32) -> Option<i32> {
    thread_status::field(thread, "Tgid")?.parse().ok()
}

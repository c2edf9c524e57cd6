//! Makes the copy, and ends it.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use super::error::SnapshotError;
use super::maps;
use super::ptrace::{self, Stop};
use super::registers::{self, Registers};

/// Time for a thread to stop, and for a system call to return.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of code that are searched for the instruction that calls the system.
const SEARCHED: usize = 1 << 20;

/// A copy of a process as one of its threads left it, stopped before its first step. To be used by the thread that made
/// it: the kernel knows a tracer by its thread.
pub struct Snapshot {
    /// The thread that was copied.
    thread: i32,
    /// The copy, as this program sees it.
    pub(super) copy: i32,
    /// The copy, as its parent sees it.
    inner: i32,
    /// Where the instruction is that calls the system.
    instruction: u64,
    /// Registers of the thread when it was copied.
    pub(super) registers: Registers,
    /// How long the thread did not run.
    pub pause: Duration,
    /// Whether the copy has been waited for already.
    pub(super) ended: bool,
}

impl Snapshot {
    /// Copies the process of this thread.
    pub fn take(thread: i32) -> Result<Snapshot, SnapshotError> {
        let instruction = instruction(thread)?;
        let beginning;
        let mut copy = None;
        let (inner, registers) = {
            let stopped = Stopped::stop(thread)?;
            beginning = Instant::now();
            let arguments = registers::clone_arguments();
            let inner = stopped.call(instruction, libc::SYS_clone, arguments, &mut copy);
            let registers = stopped.registers;
            stopped.release()?;
            (inner?, registers)
        };
        let pause = beginning.elapsed();
        if inner < 0 {
            let error = io::Error::from_raw_os_error(-inner as i32);
            return Err(SnapshotError::Refused(error));
        }
        let copy = copy.ok_or(SnapshotError::Gone)?;
        let snapshot = Snapshot {
            thread,
            copy,
            inner: inner as i32,
            instruction,
            registers,
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

    /// General registers of the thread when it was copied, in the order of the kernel.
    pub fn registers(&self) -> Vec<u64> {
        let count = size_of::<Registers>() / size_of::<u64>();
        // SAFETY: the kernel's structure consists of words on both processors, and lives as long as this.
        let words = unsafe {
            std::slice::from_raw_parts(std::ptr::from_ref(&self.registers).cast::<u64>(), count)
        };
        words.to_vec()
    }

    /// Nothing that the copy writes to the process's standard output or error is the process's.
    fn silence(&self) -> Result<(), SnapshotError> {
        let path = registers::below_stack(&self.registers, 64);
        ptrace::write(self.copy, path, b"/dev/null\0")?;
        let call = |number, arguments| {
            run(
                self.copy,
                &self.registers,
                self.instruction,
                number,
                arguments,
                &mut None,
            )
        };
        let here = libc::AT_FDCWD as u64;
        let null = call(libc::SYS_openat, [here, path, libc::O_RDWR as u64, 0, 0, 0])?;
        if null >= 0 {
            for descriptor in [1, 2] {
                call(libc::SYS_dup3, [null as u64, descriptor, 0, 0, 0, 0])?;
            }
        }
        Ok(())
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        if !self.ended {
            // SAFETY: the copy is a process of its own, which this program traces; nobody has waited for it.
            unsafe { libc::kill(self.copy, libc::SIGKILL) };
            let until = Instant::now() + PATIENCE;
            while let Ok(Some(stop)) = ptrace::wait(self.copy, until) {
                if matches!(stop, Stop::Ended(_)) {
                    break;
                }
            }
        }
        // Its parent has to know that it ended, else a zombie stays as long as the parent lives.
        let mut threads = vec![self.thread];
        threads.extend(process_of(self.thread).or_else(|| process_of(self.copy)));
        for thread in threads {
            if reap(thread, self.inner, self.instruction).is_ok() {
                break;
            }
        }
    }
}

/// Has a process wait for its copy.
fn reap(thread: i32, inner: i32, instruction: u64) -> Result<(), SnapshotError> {
    let stopped = Stopped::stop(thread)?;
    let options = (libc::__WCLONE | libc::WNOHANG) as u64;
    let arguments = [inner as u64, 0, options, 0, 0, 0];
    let answer = stopped.call(instruction, libc::SYS_wait4, arguments, &mut None);
    stopped.release()?;
    answer.map(|_| ())
}

/// The process that a thread belongs to: the id of its first thread.
fn process_of(thread: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

/// A thread of the process that was stopped, and goes on where it was when this ends.
struct Stopped {
    thread: i32,
    registers: Registers,
    signals: u64,
    released: bool,
}

impl Stopped {
    fn stop(thread: i32) -> Result<Stopped, SnapshotError> {
        ptrace::seize(thread, ptrace::COPYING).map_err(|error| match error {
            SnapshotError::Forbidden if is_traced(thread) => SnapshotError::Traced,
            other => other,
        })?;
        let stopped = ptrace::interrupt(thread).and_then(|()| until_interrupted(thread));
        let found = stopped.and_then(|()| {
            Ok(Stopped {
                thread,
                registers: ptrace::registers(thread)?,
                signals: ptrace::blocked_signals(thread)?,
                released: false,
            })
        });
        if found.is_err() {
            // If it is stopped it goes on; if it never stopped, it is let go when this program ends.
            let _ = ptrace::detach(thread);
        }
        found
    }

    /// Calls the system in the thread, in which no signal is delivered meanwhile.
    fn call(
        &self,
        instruction: u64,
        number: i64,
        arguments: [u64; 6],
        copy: &mut Option<i32>,
    ) -> Result<i64, SnapshotError> {
        ptrace::block_signals(self.thread, u64::MAX)?;
        run(
            self.thread,
            &self.registers,
            instruction,
            number,
            arguments,
            copy,
        )
    }

    fn release(mut self) -> Result<(), SnapshotError> {
        self.restore()
    }

    /// The registers are set where the kernel looks after signals. There it also begins anew the system call, if any,
    /// that the thread was stopped in, as if nothing had been.
    fn restore(&mut self) -> Result<(), SnapshotError> {
        self.released = true;
        ptrace::interrupt(self.thread)?;
        ptrace::resume(self.thread, 0)?;
        until_interrupted(self.thread)?;
        ptrace::set_registers(self.thread, &self.registers)?;
        ptrace::block_signals(self.thread, self.signals)?;
        ptrace::detach(self.thread)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        if !self.released {
            let _ = self.restore();
        }
    }
}

fn is_traced(thread: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    let tracer = status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|pid| pid.trim() != "0")
}

/// Waits for the stop that was asked for. Signals that come before it are delivered.
fn until_interrupted(thread: i32) -> Result<(), SnapshotError> {
    let until = Instant::now() + PATIENCE;
    loop {
        match ptrace::wait(thread, until)? {
            Some(Stop::Interrupted) => return Ok(()),
            Some(Stop::Ended(_)) => return Err(SnapshotError::Gone),
            Some(Stop::Signal(signal)) => ptrace::resume(thread, signal)?,
            Some(_) => ptrace::resume(thread, 0)?,
            None => return Err(SnapshotError::Busy),
        }
    }
}

/// Has a stopped thread call the system; returns the system's answer. The thread is stopped again, with other registers.
fn run(
    thread: i32,
    from: &Registers,
    instruction: u64,
    number: i64,
    arguments: [u64; 6],
    copy: &mut Option<i32>,
) -> Result<i64, SnapshotError> {
    let call = registers::system_call(from, instruction, number, arguments);
    ptrace::set_registers(thread, &call)?;
    let until = Instant::now() + PATIENCE;
    let mut halves = 0;
    while halves < 2 {
        ptrace::resume_to_system_call(thread)?;
        match ptrace::wait(thread, until)? {
            Some(Stop::SystemCall) => halves += 1,
            Some(Stop::Cloned) => {
                let pid = ptrace::copied_to(thread)?;
                *copy = Some(pid);
                catch(pid, until)?;
            }
            Some(Stop::Ended(_)) => return Err(SnapshotError::Gone),
            Some(Stop::Interrupted | Stop::Signal(_)) => {}
            None => return Err(SnapshotError::Busy),
        }
    }
    Ok(registers::answer(&ptrace::registers(thread)?))
}

/// Waits for the first stop of a copy, which is to die with this program.
fn catch(copy: i32, until: Instant) -> Result<(), SnapshotError> {
    match ptrace::wait(copy, until)? {
        Some(Stop::Ended(_)) => Err(SnapshotError::Gone),
        Some(_) => ptrace::set_options(copy, ptrace::COPY),
        None => Err(SnapshotError::Busy),
    }
}

/// The address of an instruction that calls the system: in the code that the kernel maps, in libc's, or anywhere else.
fn instruction(thread: i32) -> Result<u64, SnapshotError> {
    let mut maps = maps::of(thread)?;
    maps.retain(|one| one.executable);
    maps.sort_by_key(|one| match one.path.rsplit('/').next() {
        Some("[vdso]") => 0,
        Some(name) if name.starts_with("libc") || name.starts_with("ld-") => 1,
        _ => 2,
    });
    for mapping in maps {
        let length = (mapping.end - mapping.start).min(SEARCHED as u64) as usize;
        let mut code = vec![0; length];
        if ptrace::read(thread, mapping.start, &mut code).is_err() {
            continue;
        }
        let step = if cfg!(target_arch = "aarch64") { 4 } else { 1 };
        let wanted = registers::SYSTEM_CALL;
        let mut places = (0..code.len().saturating_sub(wanted.len())).step_by(step);
        if let Some(place) = places.find(|at| code[*at..].starts_with(wanted)) {
            return Ok(mapping.start + place as u64);
        }
    }
    Err(SnapshotError::Missing("syscall".into()))
}

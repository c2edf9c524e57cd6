//! A briefly paused thread that makes system calls meanwhile.

use std::path::Path;
use std::time::{Duration, Instant};

use super::error::SnapshotError;
use super::maps;
use super::ptrace::{self, Stop};
use super::registers::{self, Registers};
use super::thread_status;

/// Time for a thread to stop, and for a system call to return.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of code to search for the system call instruction.
const SEARCHED: usize = 1 << 20;

/// A stopped thread of the process; it resumes where it was when this is dropped.
pub(super) struct Stopped {
    pub(super) thread: i32,
    pub(super) registers: Registers,
    /// Floating point and vector registers, once a function was called.
    pub(super) vectors: Option<Vec<u8>>,
    signals: u64,
    released: bool,
}

impl Stopped {
    pub(super) fn stop(thread: i32) -> Result<Stopped, SnapshotError> {
        ptrace::seize(thread, ptrace::COPYING).map_err(|error| match error {
            SnapshotError::Forbidden => why_not(thread),
            other => other,
        })?;
        let stopped = ptrace::interrupt(thread)
            .and_then(|()| until_interrupted(thread))
            .and_then(|()| set_options(thread, ptrace::COPYING));
        let found = stopped.and_then(|()| {
            Ok(Stopped {
                thread,
                registers: ptrace::registers(thread)?,
                vectors: None,
                signals: ptrace::blocked_signals(thread)?,
                released: false,
            })
        });
        if found.is_err() {
            // A stopped thread resumes; one that never stopped is released when this program ends.
            let _ = ptrace::detach(thread);
        }
        found
    }

    /// Makes a system call in the thread, with all signals held back meanwhile.
    pub(super) fn call(
        &self,
        instruction: u64,
        number: i64,
        arguments: [u64; 6],
        copy: &mut Option<i32>,
    ) -> Result<i64, SnapshotError> {
        self.check(instruction)?;
        ptrace::block_signals(self.thread, u64::MAX)?;
        run(self.thread, &self.registers, instruction, number, arguments, copy)
    }

    /// Fails if the process has begun to run another program, without the instruction.
    pub(super) fn check(&self, instruction: u64) -> Result<(), SnapshotError> {
        let mut code = [0; registers::SYSTEM_CALL.len()];
        let read = ptrace::read(self.thread, instruction, &mut code);
        match read.is_ok() && code == registers::SYSTEM_CALL {
            true => Ok(()),
            false => Err(SnapshotError::Gone),
        }
    }

    pub(super) fn release(mut self) -> Result<(), SnapshotError> {
        self.restore()
    }

    /// Restores the registers at the point where the kernel checks for signals. There it also restarts the system call, if
    /// any, that the stop interrupted.
    fn restore(&mut self) -> Result<(), SnapshotError> {
        self.released = true;
        ptrace::interrupt(self.thread)?;
        ptrace::resume(self.thread, 0)?;
        until_interrupted(self.thread)?;
        if let Some(vectors) = &self.vectors {
            ptrace::set_vectors(self.thread, vectors)?;
        }
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

fn why_not(thread: i32) -> SnapshotError {
    let tracer = thread_status::field(thread, "TracerPid");
    match tracer.as_deref() {
        None | Some("0") => SnapshotError::Forbidden,
        // A thread of this program traces it, and it has not stopped yet.
        Some(id) if Path::new("/proc/self/task").join(id).exists() => SnapshotError::Busy,
        Some(_) => SnapshotError::Traced,
    }
}

/// Sets options of a stopped thread, and suspends its system call filter, which might forbid the calls made for this program
/// or even kill the process for them.
fn set_options(thread: i32, options: i32) -> Result<(), SnapshotError> {
    if !thread_status::is_filtered(thread) {
        return ptrace::set_options(thread, options);
    }
    // The kernel permits that only to root, outside of containers.
    let suspended = ptrace::set_options(thread, options | libc::PTRACE_O_SUSPEND_SECCOMP);
    if suspended.is_err() && thread_status::has_more_filters(thread) {
        return Err(SnapshotError::Filtered);
    }
    match suspended {
        Ok(()) => Ok(()),
        Err(_) => ptrace::set_options(thread, options),
    }
}

/// Waits for the requested stop, delivering signals that come first.
pub(super) fn until_interrupted(thread: i32) -> Result<(), SnapshotError> {
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

/// Makes a stopped thread call the system and returns the result. Leaves the thread stopped, with other registers.
pub(super) fn run(
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

/// Waits for the first stop of a copy, which is set to die with this program.
fn catch(copy: i32, until: Instant) -> Result<(), SnapshotError> {
    match ptrace::wait(copy, until)? {
        Some(Stop::Ended(_)) => Err(SnapshotError::Gone),
        Some(_) => set_options(copy, ptrace::COPY),
        None => Err(SnapshotError::Busy),
    }
}

/// The address of a system call instruction: in the code that the kernel maps, in libc, or anywhere else.
pub(super) fn instruction(thread: i32) -> Result<u64, SnapshotError> {
    let mut maps = maps::of(thread)?;
    if maps.is_empty() {
        return Err(SnapshotError::NoMemory);
    }
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

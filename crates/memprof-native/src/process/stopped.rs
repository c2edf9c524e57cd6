//! A thread that stands still for a moment, and calls the system meanwhile.

use std::fs;
use std::time::{Duration, Instant};

use super::error::SnapshotError;
use super::maps;
use super::ptrace::{self, Stop};
use super::registers::{self, Registers};

/// Time for a thread to stop, and for a system call to return.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of code that are searched for the instruction that calls the system.
const SEARCHED: usize = 1 << 20;

/// A thread of the process that was stopped, and goes on where it was when this ends.
pub(super) struct Stopped {
    pub(super) thread: i32,
    pub(super) registers: Registers,
    /// Registers of floating point and vectors, once a function was called.
    pub(super) vectors: Option<Vec<u8>>,
    signals: u64,
    released: bool,
}

impl Stopped {
    pub(super) fn stop(thread: i32) -> Result<Stopped, SnapshotError> {
        ptrace::seize(thread, ptrace::COPYING).map_err(|error| match error {
            SnapshotError::Forbidden if is_traced(thread) => SnapshotError::Traced,
            other => other,
        })?;
        let stopped = ptrace::interrupt(thread).and_then(|()| until_interrupted(thread));
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
            // If it is stopped it goes on; if it never stopped, it is released when this program ends.
            let _ = ptrace::detach(thread);
        }
        found
    }

    /// Calls the system in the thread, in which no signal is delivered meanwhile.
    pub(super) fn call(
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

    pub(super) fn release(mut self) -> Result<(), SnapshotError> {
        self.restore()
    }

    /// The registers are set where the kernel looks after signals. There it also begins anew the system call, if any,
    /// that the thread was stopped in, as if nothing had been.
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

fn is_traced(thread: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    let tracer = status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|pid| pid.trim() != "0")
}

/// Waits for the stop that was asked for. Signals that come before it are delivered.
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

/// Has a stopped thread call the system; returns the system's answer. The thread is stopped again, with other registers.
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

/// Waits for the first stop of a copy, which is to die with this program.
fn catch(copy: i32, until: Instant) -> Result<(), SnapshotError> {
    match ptrace::wait(copy, until)? {
        Some(Stop::Ended(_)) => Err(SnapshotError::Gone),
        Some(_) => ptrace::set_options(copy, ptrace::COPY),
        None => Err(SnapshotError::Busy),
    }
}

/// The address of an instruction that calls the system: in the code that the kernel maps, in libc's, or anywhere else.
pub(super) fn instruction(thread: i32) -> Result<u64, SnapshotError> {
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

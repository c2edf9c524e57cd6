//! Makes a running process evaluate a line of Ruby, at its VM's next check for interrupts.
//!
//! The main thread is stopped and calls two async-signal-safe functions: one adds `rb_eval_string` to the VM's list of
//! postponed jobs, with the address of the line; the other is Ruby's own signal handler, with a signal that the program does
//! not use, so that a sleeping main thread checks for interrupts. Neither allocates or takes a lock. The VM does the rest by
//! itself, where Ruby code may run.

use std::fs::{self, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use super::channel::{Channel, refused};
use super::descriptors;
use super::error::SnapshotError;
use super::maps;
use super::process_symbols::Symbols;
use super::ptrace;
use super::registers;
use super::stopped::{Stopped, instruction};

/// First bytes of the page with the line. The page stays in the process for reuse: a job may still refer to it.
const MAGIC: &[u8; 16] = b"memprof attach\0\0";
/// A line that does nothing.
const NOTHING: [u8; 4] = *b"nil\0";
const PAGE: u64 = 4096;
/// Signals that Ruby handles from its start, all by the same function.
const HANDLED: [i32; 7] = [
    libc::SIGINT,
    libc::SIGHUP,
    libc::SIGTERM,
    libc::SIGQUIT,
    libc::SIGALRM,
    libc::SIGUSR1,
    libc::SIGUSR2,
];
/// Signals that Ruby ignores unless the program handles them.
const IDLE: [i32; 6] =
    [libc::SIGURG, libc::SIGWINCH, libc::SIGCONT, libc::SIGIO, libc::SIGTTIN, libc::SIGTTOU];

/// A process prepared to evaluate a line of Ruby.
pub struct Attachment {
    pid: i32,
    instruction: u64,
    /// `rb_eval_string`.
    eval: u64,
    register: Register,
    /// Address of the line in the process.
    line: u64,
    /// Whether the line there belongs to this attachment: once withdrawn, it may be another command's.
    placed: bool,
    /// The connection with the code that the line runs, and the number of the process's end.
    channel: Option<OwnedFd>,
    there: i32,
    /// Ruby's signal handler, and a signal.
    wake: Option<(u64, i32)>,
    /// Address ranges of the VM's code.
    code: Vec<Range<u64>>,
    /// Address ranges of the loader's code.
    loader: Vec<Range<u64>>,
    /// The longest time that a thread was paused for.
    pub pause: Duration,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The VM will evaluate the line.
    Requested,
    /// The VM cannot take the request at this moment.
    NotNow,
}

enum Register {
    /// Ruby 3.3 and later: each function has its own slot.
    Preregistered { preregister: u64, trigger: u64 },
    /// Earlier versions: a list.
    Listed(u64),
}

impl Attachment {
    /// Writes the line into the process behind `held`, whose main thread is stopped meanwhile, and opens a connection with
    /// it: the line names its end by `DESCRIPTOR` and `INODE`. The VM evaluates the line as restricted as a `trap` block,
    /// and may do so more than once.
    pub fn begin(pid: i32, held: BorrowedFd<'_>, line: &str) -> Result<Attachment, SnapshotError> {
        let symbols = Symbols::of(pid, &["libruby"])?;
        let eval = symbols.find("rb_eval_string")?;
        let register = match (
            symbols.find("rb_postponed_job_preregister"),
            symbols.find("rb_postponed_job_trigger"),
        ) {
            (Ok(preregister), Ok(trigger)) => Register::Preregistered { preregister, trigger },
            _ => Register::Listed(symbols.find("rb_postponed_job_register_one")?),
        };
        let maps = maps::of(pid)?;
        let here = |address: u64| maps.iter().find(|one| (one.start..one.end).contains(&address));
        let vm = here(eval).map(|one| one.path.clone()).unwrap_or_default();
        let ranges = |wanted: &dyn Fn(&str) -> bool| -> Vec<Range<u64>> {
            let code = maps.iter().filter(|one| one.executable && wanted(&one.path));
            code.map(|one| one.start..one.end).collect()
        };
        let is_loader = |path: &str| {
            let name = path.rsplit('/').next().unwrap_or_default();
            name.starts_with("ld-") || name.starts_with("ld.so")
        };
        let mut attachment = Attachment {
            pid,
            instruction: instruction(pid)?,
            eval,
            register,
            line: 0,
            placed: false,
            channel: None,
            there: -1,
            wake: None,
            code: ranges(&|path| path == vm),
            loader: ranges(&is_loader),
            pause: Duration::ZERO,
        };
        attachment.prepare(held, line)?;
        Ok(attachment)
    }

    fn prepare(&mut self, held: BorrowedFd<'_>, line: &str) -> Result<(), SnapshotError> {
        if line.len() as u64 + MAGIC.len() as u64 >= PAGE {
            return Err(SnapshotError::Refused(
                "store the line",
                io::Error::from_raw_os_error(libc::ENAMETOOLONG),
            ));
        }
        let stopped = Stopped::stop(self.pid)?;
        // The pid may have been reused by now; while the process is stopped, check that it is the one held.
        if descriptors::ended(held) {
            return Err(SnapshotError::Gone);
        }
        let beginning = Instant::now();
        let page = page(self.pid).map_or_else(|| self.new_page(&stopped), Ok);
        // Another command's line, not yet evaluated: that command withdraws it afterwards.
        if page.as_ref().is_ok_and(|page| self.is_taken(*page)) {
            return Err(SnapshotError::Busy);
        }
        let wake = self.waking(&stopped);
        let room = registers::below_stack(&stopped.registers, 64);
        let channel = Channel::open(self.pid, room, |number, arguments| {
            stopped.call(self.instruction, number, arguments, &mut None)
        });
        let placed = channel.and_then(|channel| {
            let line = line
                .replace("DESCRIPTOR", &channel.there.to_string())
                .replace("INODE", &channel.inode.to_string());
            self.channel = Some(channel.here);
            self.there = channel.there;
            self.wake = wake?;
            self.line = page? + MAGIC.len() as u64;
            self.write(&line)?;
            self.placed = true;
            Ok(())
        });
        stopped.release()?;
        self.pause = beginning.elapsed();
        if placed.is_err() && self.channel.is_some() {
            self.close()?;
        }
        placed
    }

    fn is_taken(&self, page: u64) -> bool {
        let mut line = [0; NOTHING.len()];
        let read = ptrace::read(self.pid, page + MAGIC.len() as u64, &mut line);
        read.is_ok() && line[0] != 0 && line != NOTHING
    }

    /// Writes the page from here: the process itself may not write to it.
    fn write(&self, line: &str) -> Result<(), SnapshotError> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(line.as_bytes());
        bytes.push(0);
        let memory = format!("/proc/{}/mem", self.pid);
        let memory = OpenOptions::new().write(true).open(memory)?;
        memory.write_all_at(&bytes, self.line - MAGIC.len() as u64)?;
        Ok(())
    }

    /// This program's end of the connection; can be taken once.
    pub fn channel(&mut self) -> Option<OwnedFd> {
        self.channel.take()
    }

    /// Disarms the line, should it be evaluated later.
    pub fn withdraw(&mut self) -> Result<(), SnapshotError> {
        if !std::mem::take(&mut self.placed) {
            return Ok(());
        }
        self.write("nil\0")
    }

    /// Closes the process's end, for a line withdrawn before it was evaluated.
    pub fn close(&self) -> Result<(), SnapshotError> {
        let stopped = Stopped::stop(self.pid)?;
        let arguments = [self.there as u64, 0, 0, 0, 0, 0];
        let answer = stopped.call(self.instruction, libc::SYS_close, arguments, &mut None);
        stopped.release()?;
        answer.map(|_| ())
    }

    fn new_page(&self, stopped: &Stopped) -> Result<u64, SnapshotError> {
        let kind = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
        let arguments = [0, PAGE, libc::PROT_READ as u64, kind, u64::MAX, 0];
        let page = stopped.call(self.instruction, libc::SYS_mmap, arguments, &mut None)?;
        Ok(refused("allocate a page", page)? as u64)
    }

    /// Ruby's signal handler, if it can be identified, and a signal that is ignored.
    fn waking(&self, stopped: &Stopped) -> Result<Option<(u64, i32)>, SnapshotError> {
        let place = registers::below_stack(&stopped.registers, 64);
        let handler = |signal: i32| {
            let arguments = [signal as u64, 0, place, 8, 0, 0];
            let number = libc::SYS_rt_sigaction;
            let answer = stopped.call(self.instruction, number, arguments, &mut None)?;
            let mut handler = [0; 8];
            ptrace::read(self.pid, place, &mut handler)?;
            Ok::<_, SnapshotError>((answer == 0).then_some(u64::from_ne_bytes(handler)))
        };
        let mut handlers = Vec::new();
        for signal in HANDLED {
            let found = handler(signal)?;
            handlers.extend(found.filter(|at| self.code.iter().any(|code| code.contains(at))));
        }
        let count = |one: &u64| handlers.iter().filter(|other| *other == one).count();
        let rubys = handlers.iter().max_by_key(|one| count(one)).copied();
        let Some(rubys) = rubys.filter(|one| count(one) > 1) else {
            return Ok(None);
        };
        for signal in IDLE {
            if handler(signal)? == Some(libc::SIG_DFL as u64) {
                return Ok(Some((rubys, signal)));
            }
        }
        Ok(None)
    }

    /// Asks the VM to evaluate the line soon. May be repeated. With `wake`, a main thread blocked in a system call also
    /// checks for interrupts: its call returns EINTR, as for a signal.
    pub fn request(&mut self, wake: bool) -> Result<Outcome, SnapshotError> {
        let mut main = Stopped::stop(self.pid)?;
        let beginning = Instant::now();
        let outcome = self.request_in(&mut main, wake);
        let released = main.release();
        self.pause = self.pause.max(beginning.elapsed());
        let outcome = outcome?;
        released?;
        Ok(outcome)
    }

    fn request_in(&self, main: &mut Stopped, wake: bool) -> Result<Outcome, SnapshotError> {
        let place = registers::place(&main.registers);
        // The functions called there may need the loader to look them up.
        if self.loader.iter().any(|code| code.contains(&place)) {
            return Ok(Outcome::NotNow);
        }
        match self.register {
            Register::Preregistered { preregister, trigger } => {
                let arguments = [0, self.eval, self.line, 0];
                let handle = main.call_function(self.instruction, preregister, arguments)? as u32;
                if handle == u32::MAX {
                    return Err(SnapshotError::Refused(
                        "evaluate a line",
                        io::Error::other("its table of postponed jobs is full"),
                    ));
                }
                main.call_function(self.instruction, trigger, [u64::from(handle), 0, 0, 0])?;
            }
            Register::Listed(register) => {
                let mut others = self.others()?;
                let mut quiet = main.quiet(&self.code)?;
                for thread in &mut others {
                    quiet = quiet && thread.quiet(&self.code)?;
                }
                let arguments = [0, self.eval, self.line, 0];
                // 0 means that the list is full.
                if !quiet || main.call_function(self.instruction, register, arguments)? as u32 == 0
                {
                    return Ok(Outcome::NotNow);
                }
            }
        }
        if let Some((handler, signal)) = self.wake.filter(|_| wake) {
            main.call_function(self.instruction, handler, [signal as u64, 0, 0, 0])?;
        }
        Ok(Outcome::Requested)
    }

    /// All threads except the main one, stopped.
    fn others(&self) -> Result<Vec<Stopped>, SnapshotError> {
        let mut others = Vec::new();
        for entry in fs::read_dir(format!("/proc/{}/task", self.pid))?.flatten() {
            let id = entry.file_name().to_str().and_then(|name| name.parse().ok());
            let Some(id) = id.filter(|id| *id != self.pid) else {
                continue;
            };
            match Stopped::stop(id) {
                Ok(stopped) => others.push(stopped),
                Err(SnapshotError::Gone) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(others)
    }
}

/// The page of an earlier attachment.
fn page(pid: i32) -> Option<u64> {
    let maps = maps::of(pid).ok()?;
    let nameless = maps.iter().filter(|one| one.path.is_empty() && !one.executable);
    let mut starts = nameless.map(|one| one.start);
    starts.find(|start| {
        let mut magic = [0; MAGIC.len()];
        ptrace::read(pid, *start, &mut magic).is_ok() && magic == *MAGIC
    })
}

//! Dumping in a forked child: the program continues after the fork, while the child writes its snapshot.
//!
//! The child is created by fork(2) itself, not by Ruby's: the program's hooks don't run in it, and threads keep their state. It
//! never returns to Ruby, runs no GC, allocates no Ruby object, and ends with `_exit`.

use std::ffi::c_int;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::{Request, Written, barrier, walk_in_child};
use crate::os_errors;
use crate::vm::process_memory;
use crate::vm::protect::protect;

/// Signals with handlers of Ruby, which must not run in the child.
const SIGNALS: c_int = 65;

/// Nice value of the child, to disturb the program as little as possible.
const NICE: c_int = 10;

/// A child that dumps.
pub struct Child {
    /// Its process id.
    pub pid: libc::pid_t,
    /// Pipe for its report, one line of JSON: the result, or the reason of a failure.
    pub report: OwnedFd,
}

/// Forks a child that dumps the heap to `file`. Called with the GVL, after [`super::prepare`].
pub fn fork(file: File, request: Request) -> io::Result<Child> {
    super::check()?;
    let (report, write) = pipe()?;
    let mut request = Some(request);
    let pid = barrier(|| {
        if let Some(request) = request.as_mut().filter(|request| request.has_memory()) {
            request.worker = process_memory::worker();
        }
        // SAFETY: the child calls nothing of Ruby's but the functions that read the heap, and ends with `_exit`.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => child(file, &write, request.take()),
            pid => Ok(pid),
        }
    })?;
    Ok(Child { pid, report })
}

fn child(file: File, report: &OwnedFd, request: Option<Request>) -> ! {
    isolate(&[file.as_raw_fd(), report.as_raw_fd()]);
    wait_to_write(&file);
    // No panic must leave this function: the child would continue as a second copy of the program.
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        protect(|| match request {
            Some(request) => walk_in_child(file, request),
            None => Err(super::bug()),
        })?
    }));
    let line = match outcome {
        Ok(Ok(written)) => success(&written),
        Ok(Err(error)) => failure(&os_errors::text(&error)),
        Err(_) => failure("internal error in memprof (please report it)"),
    };
    // SAFETY: the descriptor is open; it is closed with the process.
    let mut report = std::mem::ManuallyDrop::new(unsafe { File::from_raw_fd(report.as_raw_fd()) });
    let _ = report.write_all(line.as_bytes());
    // SAFETY: ends the process without running anything of Ruby's or the program's.
    unsafe { libc::_exit(0) }
}

fn success((counts, bytes): &Written) -> String {
    let mut json = serde_json::to_value(counts).unwrap_or_default();
    json["bytes"] = (*bytes).into();
    format!("{json}\n")
}

fn failure(message: &str) -> String {
    format!("{}\n", serde_json::json!({ "error": message }))
}

/// Isolates the child: it runs no Ruby signal handlers, leaves no core file, holds none of the program's connections and files
/// open, and has a lower priority. The writer thread, started later, inherits that.
fn isolate(keep: &[c_int]) {
    // SAFETY: these calls change only the child.
    unsafe {
        for signal in 1..SIGNALS {
            libc::signal(signal, libc::SIG_DFL);
        }
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
        // Signals to the program's process group are not meant for the child.
        for signal in [libc::SIGINT, libc::SIGHUP, libc::SIGQUIT, libc::SIGTSTP] {
            libc::signal(signal, libc::SIG_IGN);
        }
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        let limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &raw const limit);
        libc::nice(NICE);
    }
    close_all_but(keep);
}

/// Makes the child sleep while a pipe is full. A nonblocking pipe, as Ruby's are, would be retried continuously, and a child
/// without a reader would seem to make progress, see `Dump::Child`.
fn wait_to_write(file: &File) {
    // SAFETY: changes a flag of an open file.
    unsafe {
        let flags = libc::fcntl(file.as_raw_fd(), libc::F_GETFL);
        if flags != -1 {
            libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags & !libc::O_NONBLOCK);
        }
    }
}

/// Closes inherited descriptors, except for standard error and those in `keep`.
fn close_all_but(keep: &[c_int]) {
    let mut keep = keep.to_vec();
    keep.push(libc::STDERR_FILENO);
    keep.sort_unstable();
    let mut from = 0;
    for kept in keep {
        close_range(from, kept - 1);
        from = kept + 1;
    }
    close_range(from, c_int::MAX);
}

fn close_range(first: c_int, last: c_int) {
    if first > last {
        return;
    }
    #[cfg(target_os = "linux")]
    // SAFETY: closes descriptors that nothing in the child uses any more.
    if unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } == 0 {
        return;
    }
    // SAFETY: sysconf has no conditions; closing a number that is none fails.
    unsafe {
        let most = libc::sysconf(libc::_SC_OPEN_MAX).clamp(256, 65_536) as c_int;
        for descriptor in first..=last.min(most) {
            libc::close(descriptor);
        }
    }
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: writes two descriptors, which are then owned; neither is inherited by programs that are executed.
    unsafe {
        if libc::pipe(ends.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        for end in ends {
            libc::fcntl(end, libc::F_SETFD, libc::FD_CLOEXEC);
        }
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

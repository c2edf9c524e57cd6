//! The reasons why a process cannot be copied.

use std::fmt;
use std::io;

/// A copy that failed, or a call that did not return.
#[derive(Debug)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The process or thread no longer exists.
    Gone,
    /// The kernel does not let this program stop the process.
    Forbidden,
    /// Another program traces the process: a debugger, strace.
    Traced,
    /// The process has another word size or architecture.
    Foreign,
    /// The process does not run Ruby, or its Ruby does not export this function.
    Missing(String),
    /// The kernel refused an operation: its name, and the error.
    Refused(&'static str, io::Error),
    /// The process has a system call filter (seccomp) that this program may not suspend.
    Filtered,
    /// The process is a zombie or a kernel thread.
    NoMemory,
    /// The thread did not stop in time, because it waits for a device.
    Busy,
    /// The kernel lacks a required system call.
    TooOld,
    /// The call in the copy ended with a signal, or the copy ended: the details.
    Died(String),
    /// Any other system error.
    System(io::Error),
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SnapshotError::Gone => out.write_str("the process ended"),
            SnapshotError::Forbidden => out.write_str("the kernel does not allow it to be traced"),
            SnapshotError::Traced => out.write_str("another program traces it"),
            SnapshotError::Foreign => out.write_str("it runs code of another architecture"),
            SnapshotError::Missing(name) => write!(out, "it has no function {name}"),
            SnapshotError::Refused(what, error) => write!(out, "it cannot {what}: {error}"),
            SnapshotError::Filtered => {
                out.write_str("it has a seccomp filter, which might kill it when it is copied")
            }
            SnapshotError::NoMemory => {
                out.write_str("it has no memory: it ended, or is a thread of the kernel")
            }
            SnapshotError::Busy => {
                out.write_str("it cannot be stopped while it waits for the kernel; try again")
            }
            SnapshotError::TooOld => out.write_str("this needs Linux 5.6 or later"),
            SnapshotError::Died(how) => write!(out, "the copy ended: {how}"),
            SnapshotError::System(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for SnapshotError {}

impl From<io::Error> for SnapshotError {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error() {
            // Errors of system calls, and of files in /proc.
            Some(libc::ESRCH | libc::ENOENT) => SnapshotError::Gone,
            Some(libc::EPERM | libc::EACCES) => SnapshotError::Forbidden,
            _ => SnapshotError::System(error),
        }
    }
}

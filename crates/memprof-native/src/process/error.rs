//! Why there is no copy of a process.

use std::fmt;
use std::io;

/// A copy that could not be made, or a call that did not return.
#[derive(Debug)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The process, or its thread, is no more.
    Gone,
    /// The kernel does not let this program stop the process.
    Forbidden,
    /// Another program traces it: a debugger, strace.
    Traced,
    /// It has another word size or architecture.
    Foreign,
    /// It runs no Ruby, or one that does not export its functions: the name that is missing.
    Missing(String),
    /// The kernel did not let it do something: what, and the answer.
    Refused(&'static str, io::Error),
    /// It has a filter of system calls (seccomp) that this program may not suspend.
    Filtered,
    /// It has ended and was not waited for, or is a thread of the kernel.
    NoMemory,
    /// The thread did not stop in time: it waits for a device.
    Busy,
    /// The kernel lacks a call that this takes.
    TooOld,
    /// The call in the copy ended with a signal, or the copy ended: what happened.
    Died(String),
    /// Anything else that the system said.
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
            SnapshotError::Refused(what, error) => write!(out, "it can't {what}: {error}"),
            SnapshotError::Filtered => {
                out.write_str("it has a seccomp filter, which might kill it when it is copied")
            }
            SnapshotError::NoMemory => {
                out.write_str("it has no memory: it ended, or is a thread of the kernel")
            }
            SnapshotError::Busy => {
                out.write_str("it can't be stopped while it waits for the kernel; try again")
            }
            SnapshotError::TooOld => out.write_str("that takes Linux 5.6 or later"),
            SnapshotError::Died(how) => write!(out, "the copy ended: {how}"),
            SnapshotError::System(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for SnapshotError {}

impl From<io::Error> for SnapshotError {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error() {
            // Of system calls, and of files in /proc.
            Some(libc::ESRCH | libc::ENOENT) => SnapshotError::Gone,
            Some(libc::EPERM | libc::EACCES) => SnapshotError::Forbidden,
            _ => SnapshotError::System(error),
        }
    }
}

//! A connection with another process, without a name in any file system: the process makes it, and this one takes an end.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use super::descriptors;
use super::error::SnapshotError;
use super::ptrace;

/// Both ends, one in each process.
pub struct Channel {
    /// The end of this process.
    pub here: OwnedFd,
    /// The number of the end in the other process.
    pub there: i32,
    /// Identifies that end: its number may be reused for another file.
    pub inode: u64,
}

impl Channel {
    /// Makes a stopped process open the connection, by system calls; `place` has room for two numbers there.
    pub(super) fn open(
        process: i32,
        place: u64,
        call: impl Fn(i64, [u64; 6]) -> Result<i64, SnapshotError>,
    ) -> Result<Channel, SnapshotError> {
        let held = descriptors::hold(process).map_err(unsupported)?;
        let kind = (libc::SOCK_STREAM | libc::SOCK_CLOEXEC) as u64;
        let arguments = [libc::AF_UNIX as u64, kind, 0, place, 0, 0];
        refused("open a socket", call(libc::SYS_socketpair, arguments)?)?;
        let mut ends = [0; 8];
        ptrace::read(process, place, &mut ends)?;
        let (there, here) = ends.split_at(4);
        let number = |bytes: &[u8]| i32::from_ne_bytes(bytes.try_into().unwrap_or_default());
        let (there, here) = (number(there), number(here));
        let taken = descriptors::take(held.as_fd(), here).and_then(|taken| {
            let other = File::from(descriptors::take(held.as_fd(), there)?).metadata()?;
            Ok((taken, other.ino()))
        });
        call(libc::SYS_close, [here as u64, 0, 0, 0, 0, 0])?;
        let (here, inode) = match taken {
            Ok(taken) => taken,
            Err(error) => {
                call(libc::SYS_close, [there as u64, 0, 0, 0, 0, 0])?;
                return Err(unsupported(error));
            }
        };
        Ok(Channel { here, there, inode })
    }
}

/// The result of a system call, or its error; `what` names the operation.
pub(super) fn refused(what: &'static str, answer: i64) -> Result<i64, SnapshotError> {
    match answer {
        // The kernel's range of errors.
        -4095..=-1 => {
            Err(SnapshotError::Refused(what, std::io::Error::from_raw_os_error(-answer as i32)))
        }
        _ => Ok(answer),
    }
}

fn unsupported(error: std::io::Error) -> SnapshotError {
    match error.raw_os_error() {
        Some(libc::ENOSYS) => SnapshotError::TooOld,
        _ => error.into(),
    }
}

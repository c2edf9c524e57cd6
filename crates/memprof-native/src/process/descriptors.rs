//! Descriptors in place of names: never opens a path under another process's control, or signals a process by its pid.
//!
//! Linux 5.6 or later has all of these calls.

use std::ffi::CStr;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

/// Most descriptors per message.
const MOST: usize = 2;

/// Opens a descriptor for a process: its pid may be reused, the descriptor always refers to it.
pub fn hold(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: takes two numbers.
    descriptor(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })
}

/// Sends a signal to a held process.
pub fn signal(process: BorrowedFd<'_>, signal: i32) -> io::Result<()> {
    let (held, none) = (process.as_raw_fd(), ptr::null::<libc::siginfo_t>());
    // SAFETY: without a siginfo the kernel fills in its own, as for kill(2).
    done(unsafe { libc::syscall(libc::SYS_pidfd_send_signal, held, signal, none, 0) })
}

/// Whether a held process has ended and been reaped: its pid may then be reused.
pub fn ended(process: BorrowedFd<'_>) -> bool {
    signal(process, 0).is_err_and(|error| error.raw_os_error() == Some(libc::ESRCH))
}

/// Duplicates a descriptor that another process has open.
pub fn take(process: BorrowedFd<'_>, number: i32) -> io::Result<OwnedFd> {
    // SAFETY: takes three numbers.
    descriptor(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0) })
}

/// The kind of file to open below a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A directory, only to open others below it. Links are followed but cannot escape: `/` and `..` end at the directory.
    Directory,
    /// Any file, to inspect or connect to. No link is followed.
    Anything,
    /// A file to read, without blocking. No link is followed.
    File,
}

/// Opens a file below a directory; the path never leads outside of it, even if the file system changes meanwhile.
pub fn open_beneath(directory: BorrowedFd<'_>, path: &CStr, entry: Entry) -> io::Result<OwnedFd> {
    let strictly = libc::RESOLVE_BENEATH | libc::RESOLVE_NO_SYMLINKS;
    let (flags, resolve) = match entry {
        Entry::Directory => (libc::O_PATH | libc::O_DIRECTORY, libc::RESOLVE_IN_ROOT),
        Entry::Anything => (libc::O_PATH | libc::O_NOFOLLOW, strictly),
        Entry::File => (libc::O_NONBLOCK | libc::O_NOCTTY, strictly),
    };
    // SAFETY: plain numbers, which may be zero.
    let mut how: libc::open_how = unsafe { mem::zeroed() };
    how.flags = (flags | libc::O_CLOEXEC) as u64;
    how.resolve = resolve | libc::RESOLVE_NO_MAGICLINKS;
    let size = mem::size_of::<libc::open_how>();
    // SAFETY: path and structure live until the call returns.
    descriptor(unsafe {
        libc::syscall(libc::SYS_openat2, directory.as_raw_fd(), path.as_ptr(), &raw const how, size)
    })
}

/// Sends bytes over a socket, with a descriptor attached to the first of them.
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], with: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut rest = bytes;
    let mut with = with;
    while !rest.is_empty() {
        let mut part =
            libc::iovec { iov_base: rest.as_ptr().cast_mut().cast(), iov_len: rest.len() };
        let mut control = [0u64; 8];
        let mut message = message(&mut part, &mut control);
        message.msg_controllen = match with {
            None => 0,
            // SAFETY: the buffer is aligned, and has room for a header and a descriptor.
            Some(descriptor) => unsafe {
                let size = mem::size_of::<i32>() as u32;
                message.msg_controllen = libc::CMSG_SPACE(size) as _;
                let header = libc::CMSG_FIRSTHDR(&raw const message);
                (*header).cmsg_level = libc::SOL_SOCKET;
                (*header).cmsg_type = libc::SCM_RIGHTS;
                (*header).cmsg_len = libc::CMSG_LEN(size) as _;
                ptr::write_unaligned(libc::CMSG_DATA(header).cast(), descriptor.as_raw_fd());
                libc::CMSG_SPACE(size) as _
            },
        };
        // SAFETY: reads the bytes and the control buffer, which live until it returns.
        let sent =
            unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) };
        if sent < 0 {
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::Interrupted {
                continue;
            }
            return Err(error);
        }
        with = None;
        rest = &rest[sent as usize..];
    }
    Ok(())
}

/// Receives some bytes and the attached descriptors; 0 bytes at the end of the connection.
pub fn receive(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut control = [0u64; 8];
    let mut message = message(&mut part, &mut control);
    // SAFETY: writes no more bytes than fit.
    let count =
        unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) };
    if count < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found = Vec::new();
    // SAFETY: the kernel has filled in the headers; each descriptor that they name is new, and owned by this process.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_RIGHTS {
                let bytes = (*header).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                let numbers: *const i32 = libc::CMSG_DATA(header).cast();
                for index in 0..bytes / mem::size_of::<i32>() {
                    let number = ptr::read_unaligned(numbers.add(index));
                    found.push(OwnedFd::from_raw_fd(number));
                }
            }
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
    }
    found.truncate(MOST);
    Ok((count as usize, found))
}

/// Reads bytes available from a socket; 0 if it has none now, or has ended.
pub fn receive_now(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> io::Result<usize> {
    let (room, into) = (bytes.len(), bytes.as_mut_ptr().cast());
    // SAFETY: writes no more bytes than fit.
    now(unsafe { libc::recv(socket.as_raw_fd(), into, room, libc::MSG_DONTWAIT) })
}

/// Sends as many bytes as a socket accepts now and returns their number. A closed socket is an error, without a signal.
pub fn send_now(socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    let (from, length) = (bytes.as_ptr().cast(), bytes.len());
    // SAFETY: reads the bytes.
    let count = unsafe { libc::send(socket.as_raw_fd(), from, length, flags) };
    now(count)
}

fn now(count: isize) -> io::Result<usize> {
    if count >= 0 {
        return Ok(count as usize);
    }
    let error = io::Error::last_os_error();
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
        _ => Err(error),
    }
}

fn message(part: &mut libc::iovec, control: &mut [u64; 8]) -> libc::msghdr {
    // SAFETY: plain numbers and pointers, which may be zero.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = mem::size_of_val(control) as _;
    message
}

fn descriptor(answer: libc::c_long) -> io::Result<OwnedFd> {
    done(answer)?;
    // SAFETY: the kernel has just made it for this process.
    Ok(unsafe { OwnedFd::from_raw_fd(answer as i32) })
}

fn done(answer: libc::c_long) -> io::Result<()> {
    match answer {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::fs::{self, File};
    use std::os::fd::AsFd;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixStream;

    fn kind(result: io::Result<OwnedFd>) -> Option<i32> {
        result.err().and_then(|error| error.raw_os_error())
    }

    #[test]
    fn nothing_outside_of_the_directory_is_opened() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        fs::create_dir_all(root.join("tmp/deep")).unwrap();
        fs::write(root.join("tmp/file"), "inside").unwrap();
        fs::write(directory.path().join("secret"), "outside").unwrap();
        symlink(directory.path().join("secret"), root.join("tmp/absolute")).unwrap();
        symlink("../../secret", root.join("tmp/up")).unwrap();
        symlink("/tmp/deep", root.join("within")).unwrap();
        symlink("/proc/self/root", root.join("magic")).unwrap();
        let held = File::open(&root).unwrap();
        let open = |path: &str, entry| {
            let path = CString::new(path).unwrap();
            open_beneath(held.as_fd(), &path, entry)
        };
        assert!(open("tmp/file", Entry::File).is_ok());
        for path in ["tmp/absolute", "tmp/up", "within/file"] {
            assert_eq!(kind(open(path, Entry::File)), Some(libc::ELOOP), "{path}");
        }
        assert_eq!(kind(open("within/file", Entry::Anything)), Some(libc::ELOOP));
        // The link itself.
        let link = File::from(open("tmp/up", Entry::Anything).unwrap());
        assert!(link.metadata().unwrap().is_symlink());
        for path in ["../secret", "/etc/passwd"] {
            assert_eq!(kind(open(path, Entry::File)), Some(libc::EXDEV));
        }
        assert!(open("/within", Entry::Directory).is_ok());
        for path in ["tmp/absolute", "tmp/up", "../secret"] {
            let found = kind(open(path, Entry::Directory));
            assert_eq!(found, Some(libc::ENOENT), "{path}");
        }
        assert!(open("magic/etc", Entry::Directory).is_err());
    }

    #[test]
    fn a_descriptor_goes_with_the_first_byte() {
        let (here, there) = UnixStream::pair().unwrap();
        let file = tempfile::tempfile().unwrap();
        send(here.as_fd(), b"two", Some(file.as_fd())).unwrap();
        let mut bytes = [0; 8];
        let (count, found) = receive(there.as_fd(), &mut bytes).unwrap();
        assert_eq!((&bytes[..count], found.len()), (&b"two"[..], 1));
        drop(here);
        assert_eq!(receive(there.as_fd(), &mut bytes).unwrap().0, 0);
    }

    #[test]
    fn a_process_that_has_ended_gets_no_signal() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let held = hold(child.id() as i32).unwrap();
        assert!(signal(held.as_fd(), 0).is_ok());
        assert!(take(held.as_fd(), 0).is_ok());
        drop(child.stdin.take());
        child.wait().unwrap();
        let error = signal(held.as_fd(), 0).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ESRCH));
    }
}

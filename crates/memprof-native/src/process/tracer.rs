//! A separate process that stops and copies others on behalf of this one.
//!
//! A stopped thread has modified registers, and would resume with them if its tracer were killed. So the tracer is not the
//! command, which a user may interrupt or kill at any moment, but a child: it takes no signals, has its own session, and
//! cleans up when the command is gone.

use std::ffi::c_int;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::time::{Duration, Instant};

use super::descriptors;

/// Time for the child to end; it may have to wait for a thread to stop.
const PATIENCE: Duration = Duration::from_secs(5);
const GLANCE: Duration = Duration::from_millis(1);
/// Bytes of the length prefix of a message.
const LENGTH: usize = 8;
/// Longest message.
const LONGEST: usize = 1 << 28;

/// Messages between this process and the child.
pub struct Line {
    socket: OwnedFd,
    /// Bytes received so far of the next message.
    ahead: Vec<u8>,
    /// Descriptors received with it.
    with: Vec<OwnedFd>,
}

impl Line {
    fn new(socket: OwnedFd) -> Line {
        Line { socket, ahead: Vec::new(), with: Vec::new() }
    }

    /// Sends a message with a descriptor.
    pub fn send(&self, message: &[u8], with: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let mut bytes = (message.len() as u64).to_ne_bytes().to_vec();
        bytes.extend(message);
        descriptors::send(self.socket.as_fd(), &bytes, with)
    }

    /// The next message and its descriptor; `None` if none comes in time. An error once the other side has ended.
    pub fn receive(&mut self, limit: Duration) -> io::Result<Option<(Vec<u8>, Option<OwnedFd>)>> {
        let until = Instant::now() + limit;
        loop {
            if let Some(message) = self.whole()? {
                return Ok(Some((message, self.with.pop())));
            }
            let left = until.saturating_duration_since(Instant::now());
            if !wait(&[self.socket.as_fd()], left)? {
                return Ok(None);
            }
            let mut bytes = vec![0; 1 << 16];
            let (count, with) = descriptors::receive(self.socket.as_fd(), &mut bytes)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.ahead.extend(&bytes[..count]);
            self.with.extend(with);
        }
    }

    fn whole(&mut self) -> io::Result<Option<Vec<u8>>> {
        let Some(length) = self.ahead.first_chunk::<LENGTH>() else {
            return Ok(None);
        };
        let length = u64::from_ne_bytes(*length) as usize;
        if length > LONGEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if self.ahead.len() < LENGTH + length {
            return Ok(None);
        }
        let rest = self.ahead.split_off(LENGTH + length);
        let message = std::mem::replace(&mut self.ahead, rest);
        Ok(Some(message[LENGTH..].to_vec()))
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Whether one of these becomes readable or ends in time. A signal ends the wait.
pub fn wait(of: &[BorrowedFd<'_>], limit: Duration) -> io::Result<bool> {
    let entry = |descriptor: &BorrowedFd<'_>| libc::pollfd {
        fd: descriptor.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let mut entries: Vec<libc::pollfd> = of.iter().map(entry).collect();
    let limit = c_int::try_from(limit.as_millis()).unwrap_or(c_int::MAX);
    // SAFETY: writes to the entries.
    let found = unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as _, limit) };
    match found {
        -1 => {
            let error = io::Error::last_os_error();
            match error.kind() {
                io::ErrorKind::Interrupted => Ok(false),
                _ => Err(error),
            }
        }
        found => Ok(found > 0),
    }
}

/// The child; dropping this ends it.
pub struct Tracer {
    /// Messages to and from it.
    pub line: Line,
    pid: i32,
}

impl Tracer {
    /// Starts the child. It inherits only the kept descriptors and standard error, and ends with `work`, which must return
    /// soon after the line ends.
    pub fn start(keep: &[BorrowedFd<'_>], work: impl FnOnce(&mut Line)) -> io::Result<Tracer> {
        let (here, there) = pair()?;
        let signals = Blocked::all();
        // SAFETY: libc's own fork, which leaves the child with a consistent malloc. The child runs no Ruby code, and never
        // returns.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop(here);
                let keep = keep.iter().map(AsRawFd::as_raw_fd);
                isolate(keep.chain([there.as_raw_fd()]).collect());
                let mut line = Line::new(there);
                let _ = catch_unwind(AssertUnwindSafe(|| work(&mut line)));
                // SAFETY: ends the child without running any of the program's code.
                unsafe { libc::_exit(0) }
            }
            pid => {
                drop(signals);
                drop(there);
                Ok(Tracer { line: Line::new(here), pid })
            }
        }
    }
}

impl Drop for Tracer {
    /// Waits until the child has restored everything.
    fn drop(&mut self) {
        // SAFETY: an open socket; shutting it down makes the child end.
        unsafe { libc::shutdown(self.line.socket.as_raw_fd(), libc::SHUT_WR) };
        let until = Instant::now() + PATIENCE;
        loop {
            // SAFETY: waits for a child of this process; if the program already waited for it, it is gone.
            let found = unsafe { libc::waitpid(self.pid, ptr::null_mut(), libc::WNOHANG) };
            if found != 0 || Instant::now() > until {
                return;
            }
            std::thread::sleep(GLANCE);
        }
    }
}

/// Signals blocked in this thread until this is dropped.
struct Blocked(libc::sigset_t);

impl Blocked {
    fn all() -> Blocked {
        // SAFETY: the sets are initialized before they are used.
        unsafe {
            let mut all = MaybeUninit::<libc::sigset_t>::uninit();
            let mut before = MaybeUninit::<libc::sigset_t>::uninit();
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            Blocked(before.assume_init())
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: a mask that this thread had before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, ptr::null_mut()) };
    }
}

/// Runs in the child: leaves the program's session and closes its files.
fn isolate(mut keep: Vec<i32>) {
    keep.push(libc::STDERR_FILENO);
    keep.sort_unstable();
    // SAFETY: these calls change only the child.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"memprof tracer".as_ptr());
        let mut from = 0;
        for kept in keep {
            if from < kept {
                libc::syscall(libc::SYS_close_range, from, kept - 1, 0);
            }
            from = kept + 1;
        }
        libc::syscall(libc::SYS_close_range, from, c_int::MAX, 0);
    }
}

fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: writes two descriptors, which are then owned.
    unsafe {
        match libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) {
            0 => Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn messages_go_both_ways_and_no_signal_comes() {
        let mut tracer = Tracer::start(&[], |line| {
            while let Ok(message) = line.receive(PATIENCE) {
                let Some((message, _)) = message else {
                    continue;
                };
                let _ = line.send(&message, None);
            }
        })
        .unwrap();
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            // SAFETY: a child of this process.
            unsafe { libc::kill(tracer.pid, signal) };
        }
        for length in [0, 1, 1 << 20] {
            let message = vec![7; length];
            tracer.line.send(&message, None).unwrap();
            let (answer, _) = tracer.line.receive(PATIENCE).unwrap().unwrap();
            assert_eq!(answer.len(), length);
        }
        let pid = tracer.pid;
        drop(tracer);
        assert!(fs::metadata(format!("/proc/{pid}")).is_err());
    }

    #[test]
    fn it_ends_although_its_work_panics() {
        let mut tracer = Tracer::start(&[], |_| std::panic::resume_unwind(Box::new(()))).unwrap();
        let error = tracer.line.receive(PATIENCE).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}

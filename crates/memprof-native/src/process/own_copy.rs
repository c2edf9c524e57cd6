//! An idle copy of this process: its memory is frozen while this process goes on.

use std::io;
use std::mem::MaybeUninit;

/// The copy; dropping this ends it.
pub struct OwnCopy {
    pid: i32,
}

impl OwnCopy {
    /// Makes the copy. It has no exit signal, so no `wait` of the program sees it; it takes no signals and keeps no
    /// connection of the program open.
    pub fn make() -> io::Result<OwnCopy> {
        // SAFETY: the sets are initialized before use; the mask is restored.
        let pid = unsafe {
            let mut all = MaybeUninit::<libc::sigset_t>::uninit();
            let mut before = MaybeUninit::<libc::sigset_t>::uninit();
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            let pid = libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0);
            if pid == 0 {
                // SAFETY: only system calls are made here, so no lock of another thread is waited for.
                pause_forever();
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut());
            pid
        };
        if pid < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnCopy { pid: pid as i32 })
    }

    /// The copy's process id.
    pub fn pid(&self) -> i32 {
        self.pid
    }
}

/// # Safety
/// Must be called in the copy, which must not return to the program.
unsafe fn pause_forever() -> ! {
    // SAFETY: these system calls change only the copy.
    unsafe {
        // The copy ends with the thread that made it.
        libc::syscall(libc::SYS_prctl, libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0);
        loop {
            // Waits for a signal; all are blocked.
            libc::syscall(libc::SYS_ppoll, 0, 0, 0, 0, 0);
        }
    }
}

impl Drop for OwnCopy {
    fn drop(&mut self) {
        // SAFETY: the copy is a child of this process, and has not been waited for.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            while libc::waitpid(self.pid, std::ptr::null_mut(), libc::__WALL) == -1
                && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
            {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    #[test]
    fn the_copy_has_the_memory_of_the_moment() {
        let mut value = Box::new(1u64);
        let copy = OwnCopy::make().expect("a copy");
        *value = 2;
        let memory = File::open(format!("/proc/{}/mem", copy.pid())).expect("its memory");
        let mut bytes = [0; 8];
        let address = std::ptr::from_ref(&*value) as u64;
        memory.read_exact_at(&mut bytes, address).expect("bytes");
        assert_eq!(u64::from_ne_bytes(bytes), 1);
        // A wait for any child does not see it.
        // SAFETY: waits for nothing, and changes nothing but a number of our own.
        let found = unsafe { libc::waitpid(copy.pid(), std::ptr::null_mut(), libc::WNOHANG) };
        assert_eq!(found, -1);
        let pid = copy.pid();
        drop(copy);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }
}

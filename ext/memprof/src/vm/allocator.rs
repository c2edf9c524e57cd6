//! Statistics of the allocator behind malloc: glibc's `malloc_info`, or jemalloc's `mallctl`.
//!
//! Both may be loaded without implementing malloc: glibc always is. So each is used only if malloc is in the same object.

use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;

use memprof_ledger::Allocator;

/// The statistics; `None` for an allocator without them (musl, tcmalloc) or an unknown one.
pub fn statistics() -> Option<Allocator> {
    jemalloc::statistics().or_else(glibc::statistics)
}

/// The same in a copy that has only one thread of its process: a missing thread may have held a malloc lock, which is never
/// released here. So a child asks, and is killed if it waits for a lock.
#[cfg(target_os = "linux")]
pub use in_copy::statistics as statistics_in_copy;

#[cfg(not(target_os = "linux"))]
pub fn statistics_in_copy() -> Option<Allocator> {
    None
}

/// The function of this name, if its object also defines malloc.
fn beside_malloc(name: &CStr) -> Option<*mut c_void> {
    let (function, malloc) = (function(name)?, function(c"malloc")?);
    (object(function)? == object(malloc)?).then_some(function)
}

fn function(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: dlsym with a NUL-terminated name has no other conditions.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

/// Start of the object that contains this address.
fn object(address: *mut c_void) -> Option<*mut c_void> {
    let mut facts = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: dladdr takes any address, and has filled in the struct unless it returns 0.
    unsafe {
        (libc::dladdr(address, facts.as_mut_ptr()) != 0).then(|| facts.assume_init().dli_fbase)
    }
}

mod jemalloc {
    use std::ffi::{CString, c_char, c_int, c_void};
    use std::ptr;

    use memprof_ledger::{Allocator, Arena};

    type MallCtl =
        unsafe extern "C" fn(*const c_char, *mut c_void, *mut usize, *mut c_void, usize) -> c_int;

    pub fn statistics() -> Option<Allocator> {
        let address = super::beside_malloc(c"mallctl")?;
        // SAFETY: the function of this name is jemalloc's, whose signature has been the same since 2.0.
        let control: MallCtl = unsafe { std::mem::transmute(address) };
        refresh(control)?;
        let arenas: u32 = read(control, "arenas.narenas")?;
        let arenas = (0..arenas).filter_map(|index| {
            let number = |name| read::<usize>(control, &format!("stats.arenas.{index}.{name}"));
            let in_use = number("small.allocated")? + number("large.allocated")?;
            let resident = number("resident")?.max(in_use);
            (resident > 0)
                .then(|| Arena { in_use: in_use as u64, free: (resident - in_use) as u64 })
        });
        Some(Allocator {
            name: "jemalloc".into(),
            arenas: arenas.collect(),
            ..Allocator::default()
        })
    }

    /// jemalloc updates its statistics when the epoch is set.
    fn refresh(control: MallCtl) -> Option<()> {
        let mut epoch = 1_u64;
        // SAFETY: "epoch" takes an u64, which lives through the call.
        let result = unsafe {
            control(
                c"epoch".as_ptr(),
                ptr::null_mut(),
                ptr::null_mut(),
                (&raw mut epoch).cast(),
                size_of::<u64>(),
            )
        };
        (result == 0).then_some(())
    }

    /// A number; `None` if the name is unknown or its value has another size.
    fn read<T: Copy + Default>(control: MallCtl, name: &str) -> Option<T> {
        let name = CString::new(name).ok()?;
        let (mut value, mut size) = (T::default(), size_of::<T>());
        // SAFETY: the value has room for `size` bytes, and jemalloc refuses any other size.
        let result = unsafe {
            control(name.as_ptr(), (&raw mut value).cast(), &raw mut size, ptr::null_mut(), 0)
        };
        (result == 0).then_some(value)
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod glibc {
    use std::ptr;
    use std::slice;

    use memprof_ledger::Allocator;

    pub fn statistics() -> Option<Allocator> {
        super::beside_malloc(c"malloc_info")?;
        let (mut text, mut length) = (ptr::null_mut(), 0);
        // SAFETY: the two variables outlive the stream, which is closed before they are read; what it wrote to is then ours,
        // and is freed once.
        unsafe {
            let stream = libc::open_memstream(&raw mut text, &raw mut length);
            if stream.is_null() {
                return None;
            }
            let failed = libc::malloc_info(0, stream) != 0;
            let failed = libc::fclose(stream) != 0 || failed;
            let bytes = if text.is_null() {
                &[][..]
            } else {
                slice::from_raw_parts(text.cast::<u8>(), length)
            };
            let allocator = (!failed)
                .then(|| memprof_ledger::parse_malloc_info(&String::from_utf8_lossy(bytes)));
            libc::free(text.cast());
            allocator.flatten()
        }
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod glibc {
    pub fn statistics() -> Option<memprof_ledger::Allocator> {
        None
    }
}

#[cfg(target_os = "linux")]
mod in_copy {
    use std::ffi::c_int;
    use std::fs::File;
    use std::io::{self, Read, Write};
    use std::os::fd::{AsRawFd, FromRawFd};
    use std::time::{Duration, Instant};

    use memprof_ledger::Allocator;

    /// Timeout for malloc to answer in a copy of a process.
    const PATIENCE: Duration = Duration::from_millis(500);

    pub fn statistics() -> Option<Allocator> {
        let mut ends = [0; 2];
        // SAFETY: writes two descriptors, which are then owned.
        let (mut answer, mut report) = unsafe {
            if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
                return None;
            }
            (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1]))
        };
        // SAFETY: a child as of fork(2), without the handlers of libc, which take malloc's locks, and without a signal at its
        // end. It calls what this thread might call, and ends here.
        let child = unsafe { libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0) } as libc::pid_t;
        match child {
            -1 => return None,
            0 => {
                // SAFETY: changes only the child, and ends it without running anything of the program's.
                unsafe {
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                    let text =
                        super::statistics().and_then(|found| serde_json::to_vec(&found).ok());
                    let _ = report.write_all(&text.unwrap_or_default());
                    libc::_exit(0)
                }
            }
            _ => drop(report),
        }
        let mut text = Vec::new();
        let until = Instant::now() + PATIENCE;
        while is_readable(&answer, until) {
            let mut bytes = [0; 4096];
            match answer.read(&mut bytes) {
                Ok(count @ 1..) => text.extend(&bytes[..count]),
                _ => break,
            }
        }
        // SAFETY: a child of this process that nothing else waits for.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), libc::__WALL);
        }
        serde_json::from_slice(&text).ok()
    }

    fn is_readable(file: &File, until: Instant) -> bool {
        let mut entry = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let limit = c_int::try_from(left.as_millis()).unwrap_or(c_int::MAX);
            // SAFETY: writes to the one entry.
            match unsafe { libc::poll(&raw mut entry, 1, limit) } {
                -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                found => return found > 0,
            }
        }
    }
}

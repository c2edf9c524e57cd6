//! Checks, creates, renames and removes dump files without running Ruby code in between: an exception from another thread or a
//! signal comes either before a file is created, or after its name is removed or known.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use memprof_dump::source_name;

/// Owner-only, and doesn't follow links.
fn new_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    options
}

/// Creates a file to write to, and locks it. `None` if someone removed it as stale before it was locked.
pub fn create_locked(path: &Path) -> io::Result<Option<File>> {
    let file = new_file().write(true).open(path)?;
    // SAFETY: the descriptor is open. Another process may take the lock without waiting: then the file is not ours.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::WouldBlock {
            let _ = fs::remove_file(path);
            return Err(error);
        }
        return Ok(None);
    }
    let here = file.metadata()?;
    let ours = match fs::symlink_metadata(path) {
        Ok(there) => (there.ino(), there.dev()) == (here.ino(), here.dev()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(error),
    };
    Ok(ours.then_some(file))
}

/// Writes a file atomically: under a temporary name first, renamed when complete. On errors the old file is unchanged, and
/// another process's temporary file always is.
pub fn write_whole<T, E>(
    path: &Path,
    temporary: &Path,
    failed: impl Fn(&io::Error) -> E,
    write: impl FnOnce(File) -> Result<T, E>,
) -> Result<T, E> {
    let file = new_file().write(true).open(temporary);
    let outcome = write(file.map_err(|error| failed(&error))?).and_then(|value| {
        fs::rename(temporary, path).map_err(|error| failed(&error))?;
        Ok(value)
    });
    if outcome.is_err() {
        let _ = fs::remove_file(temporary);
    }
    outcome
}

/// Creates a file to write and read, and unlinks it.
pub fn create_nameless(path: &Path) -> io::Result<File> {
    let file = new_file().read(true).write(true).open(path)?;
    fs::remove_file(path)?;
    Ok(file)
}

/// Removes a file; false if there was none.
pub fn remove(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Renames a file, replacing an existing one.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

/// Type of a path: "directory" or "file", followed through links; for others "link" if it is a link, or "other". A link of the
/// system is always a "link". `None` if there is nothing.
pub fn kind(path: &Path) -> Option<&'static str> {
    let there = fs::metadata(path).ok()?;
    let link = fs::symlink_metadata(path).is_ok_and(|itself| itself.is_symlink());
    Some(match () {
        () if there.is_dir() => "directory",
        () if there.is_file() && !(link && is_of_the_system(path)) => "file",
        () if link => "link",
        () => "other",
    })
}

/// True for names such as /dev/stdin, also by another path to that directory. Their targets differ by process, and a file in
/// their place would be shared by all processes.
fn is_of_the_system(link: &Path) -> bool {
    let directory = link.parent().and_then(|parent| parent.canonicalize().ok());
    directory
        .is_some_and(|directory| directory == Path::new("/dev") || directory.starts_with("/proc"))
}

/// Size of an open file if its path still refers to it; `None` if it was moved, removed or replaced.
pub fn size_at(descriptor: RawFd, path: &Path) -> io::Result<Option<u64>> {
    // SAFETY: the descriptor is looked at, and not closed. If the caller has closed it, the system says so.
    let file = ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) });
    let here = file.metadata()?;
    let there = fs::metadata(path).ok();
    let same = there.is_some_and(|there| (there.ino(), there.dev()) == (here.ino(), here.dev()));
    Ok(same.then_some(here.len()))
}

/// Bytes that this user can still write to the file system of a path.
pub fn free_space(path: &Path) -> io::Result<u64> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    let mut answer = MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: `name` ends with a null byte and lives during the call; `answer` has room for what the system writes.
    if unsafe { libc::statvfs(name.as_ptr(), answer.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the system has written all of it, as the call succeeded.
    let answer = unsafe { answer.assume_init() };
    #[allow(clippy::useless_conversion)] // narrower on macOS
    Ok(u64::from(answer.f_bavail).saturating_mul(u64::from(answer.f_frsize)))
}

/// A descriptor owned by Ruby, borrowed during a call: the caller has it open.
pub fn borrowed(descriptor: RawFd) -> io::Result<BorrowedFd<'static>> {
    if descriptor < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: not -1; the system refuses a number that is not open.
    Ok(unsafe { BorrowedFd::borrow_raw(descriptor) })
}

/// True if the name exists, even as a broken link.
pub fn is_taken(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// True for the name of an existing source file, or a name that Ruby itself gives to code without a file.
pub fn is_source(name: &str) -> bool {
    let path = source_name::behind_eval(name);
    source_name::is_own(path) || fs::metadata(path).is_ok_and(|file| file.is_file())
}

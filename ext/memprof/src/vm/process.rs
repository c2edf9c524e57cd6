//! This process as shown in /proc, read without releasing the GVL: since Ruby 3.2 each file operation in Ruby first lets all
//! other threads run. Without /proc, as on macOS, there is nothing to read.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;

const DESCRIPTORS: &str = "/proc/self/fd";

/// An open file of the process.
pub struct OpenFile {
    pub descriptor: i32,
    /// Flags that it was opened with.
    pub flags: Option<i32>,
    /// Type bits of its mode, as in stat(2); 0 for descriptors without a type, such as epoll or a timer.
    pub file_type: u32,
    /// Name: a path, which may be any bytes, or a type and a number.
    pub name: Vec<u8>,
}

/// Sizes of the process in KiB.
pub struct Sizes {
    pub resident: u64,
    /// Maximum resident size.
    pub resident_ever: Option<u64>,
    pub address_space: u64,
}

/// The open files, by descriptor.
pub fn open_files() -> Vec<OpenFile> {
    // No /proc here.
    let Ok(entries) = fs::read_dir(DESCRIPTORS) else {
        return Vec::new();
    };
    let mut descriptors: Vec<i32> =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    descriptors.sort_unstable();
    // Descriptors closed since are skipped, such as that of the directory.
    let files = descriptors.into_iter().map(open_file);
    files.filter_map(io::Result::ok).collect()
}

fn open_file(descriptor: i32) -> io::Result<OpenFile> {
    let name = fs::read_link(format!("{DESCRIPTORS}/{descriptor}"))?;
    let information = fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}"))?;
    let flags = field(&information, "flags:");
    Ok(OpenFile {
        descriptor,
        flags: flags.and_then(|octal| i32::from_str_radix(octal, 8).ok()),
        file_type: file_type(descriptor)?,
        name: name.into_os_string().into_vec(),
    })
}

/// Doesn't ask a file server: the process is paused meanwhile, and the server may be gone.
#[cfg(target_os = "linux")]
fn file_type(descriptor: i32) -> io::Result<u32> {
    // SAFETY: zeros are a valid statx, which the kernel fills in; the path is empty, so that it asks for the descriptor.
    unsafe {
        let mut found: libc::statx = std::mem::zeroed();
        let flags = libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC;
        if libc::statx(descriptor, c"".as_ptr(), flags, libc::STATX_TYPE, &raw mut found) == 0 {
            return Ok(u32::from(found.stx_mode) & libc::S_IFMT);
        }
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        // An old kernel, or a container that forbids unknown calls.
        Some(libc::ENOSYS | libc::EPERM) => mode(descriptor),
        _ => Err(error),
    }
}

#[cfg(not(target_os = "linux"))]
fn file_type(descriptor: i32) -> io::Result<u32> {
    mode(descriptor).map(u32::from)
}

fn mode(descriptor: i32) -> io::Result<libc::mode_t> {
    // SAFETY: zeros are a valid stat, which the kernel fills in.
    let (result, found) = unsafe {
        let mut found: libc::stat = std::mem::zeroed();
        (libc::fstat(descriptor, &raw mut found), found)
    };
    if result == 0 { Ok(found.st_mode & libc::S_IFMT) } else { Err(io::Error::last_os_error()) }
}

/// Sizes of the process; `None` if the kernel does not report them.
pub fn sizes() -> Option<Sizes> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kib = |name| field(&status, name)?.strip_suffix(" kB")?.parse().ok();
    Some(Sizes {
        resident: kib("VmRSS:")?,
        resident_ever: kib("VmHWM:"),
        address_space: kib("VmSize:")?,
    })
}

/// The text after a name at the beginning of a line.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    (text.lines()).find_map(|line| line.strip_prefix(name)).map(str::trim)
}

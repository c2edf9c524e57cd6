//! The memory of a live process. The process should be paused, or be a copy that does not run: otherwise the data read would be
//! inconsistent.

use std::fs::{self, File};
use std::io::Read;
use std::sync::Mutex;

use crate::error::{Error, unreadable};
use crate::image::{Image, Machine, Thread};
use crate::segment::{Access, Segment};

/// Maximum bytes read of the list of mappings: a process may have many, with long names.
const LONGEST_MAPS: u64 = 64 << 20;

impl Image {
    /// Opens the memory of a process.
    ///
    /// # Errors
    /// If reading it is not permitted.
    pub fn of_process(pid: u32, threads: Vec<Thread>) -> Result<Image, Error> {
        let mut maps = Vec::new();
        let file = File::open(format!("/proc/{pid}/maps"))?;
        file.take(LONGEST_MAPS).read_to_end(&mut maps)?;
        let source = File::open(format!("/proc/{pid}/mem"))?;
        let command = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let mut files: Vec<String> = Vec::new();
        let segments: Vec<Segment> = String::from_utf8_lossy(&maps)
            .lines()
            .filter_map(|line| segment(line, &mut files))
            .collect();
        if segments.is_empty() {
            return unreadable("the process has no memory");
        }
        Ok(Image {
            source,
            recent: Mutex::default(),
            segments,
            files,
            threads,
            machine: Machine::own(),
            command: command.trim_end().to_owned(),
            pid: Some(pid),
            signal: None,
            missing: 0,
        })
    }
}

/// Threads blocked in system calls, with their stack pointers: the kernel reports these without stopping the threads. Their other
/// registers are unknown.
#[must_use]
pub fn waiting_threads(pid: u32) -> Vec<Thread> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let ids = tasks.into_iter().flatten().flatten();
    let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut threads: Vec<Thread> = ids
        .filter_map(|id: u32| {
            // The number of the system call and its arguments, the stack pointer, the instruction pointer; or "running".
            let call = fs::read_to_string(format!("/proc/{pid}/task/{id}/syscall")).ok()?;
            let mut last = call
                .split_ascii_whitespace()
                .rev()
                .map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
            Some(Thread {
                id,
                instruction: last.next()??,
                stack_pointer: last.next()??,
                ..Thread::default()
            })
        })
        .collect();
    threads.sort_unstable_by_key(|thread| thread.id);
    threads
}

/// `55d9-55da rw-p 00000000 08:01 123 /usr/bin/ruby`; its bytes are available if the process can read them.
fn segment(line: &str, files: &mut Vec<String>) -> Option<Segment> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let end = u64::from_str_radix(end, 16).ok()?;
    let access = words.next()?.as_bytes();
    let has = |place: usize, letter| access.get(place) == Some(&letter);
    let access = Access { read: has(0, b'r'), write: has(1, b'w'), execute: has(2, b'x') };
    // The path is the rest of the line, including blanks. Memory may have an arbitrary name in brackets.
    let path = line.splitn(6, ' ').nth(5).map(str::trim_start);
    let path = path.filter(|path| path.starts_with('/'));
    let file = path.map(|path| {
        if files.last().map(String::as_str) != Some(path) {
            files.push(path.to_owned());
        }
        files.len() as u32 - 1
    });
    // The kernel's own pages are executable, but not all of them are readable.
    let is_kernels = line.ends_with("[vvar]") || line.ends_with("[vsyscall]");
    let stored = if access.read && !is_kernels { end - start } else { 0 };
    Some(Segment { start, end, stored, offset: start, access, file })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::process::Command;
    use std::thread;
    use std::time::{Duration, Instant};

    #[test]
    fn only_a_path_is_a_file() {
        let mut files = Vec::new();
        let mut file_of = |name: &str| {
            let line = format!("7f00-7f10 rw-p 00001000 08:01 42        {name}");
            segment(&line, &mut files).unwrap().file
        };
        assert_eq!(file_of("[anon:/usr/lib/libc.so]"), None);
        assert_eq!(file_of(""), None);
        assert_eq!(file_of("/usr/lib/a b.so (deleted)"), Some(0));
        assert_eq!(files, ["/usr/lib/a b.so (deleted)"]);
    }

    #[test]
    fn reads_a_process_whose_files_have_names_in_no_encoding() {
        let directory = std::env::temp_dir().join(format!("memprof-image-{}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        let program = directory.join(OsStr::from_bytes(b"sleep\xff"));
        fs::copy("/bin/sleep", &program).unwrap();
        let mut child = Command::new(&program).arg("1000").spawn().unwrap();
        // The process exists before its files are mapped.
        let maps = format!("/proc/{}/maps", child.id());
        let deadline = Instant::now() + Duration::from_secs(60);
        let is_mapped = |maps: Vec<u8>| maps.windows(5).any(|name| name == b"sleep");
        while !fs::read(&maps).is_ok_and(is_mapped) {
            assert!(Instant::now() < deadline, "it does not start");
            thread::yield_now();
        }
        let image = Image::of_process(child.id(), Vec::new());
        child.kill().unwrap();
        child.wait().unwrap();
        fs::remove_dir_all(&directory).unwrap();
        let files = image.unwrap().files;
        assert!(files.iter().any(|file| file.ends_with("sleep\u{fffd}")), "{files:?}");
    }
}

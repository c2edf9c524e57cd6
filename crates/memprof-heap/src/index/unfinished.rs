//! An index while it is being written: `INDEX.PID.IN_PROGRESS`, locked by its writer. An unlocked file was left by a killed
//! process, and the next opening of the dump removes it.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{FlockOperation, OFlags, flock};

const ENDING: &[u8] = b".IN_PROGRESS";
/// An index is worth a few attempts, but a dump can be read without one.
const ATTEMPTS: usize = 5;

/// The index being written while a heap is opened. The waiting caller has a second handle and removes the file when the heap is
/// no longer wanted, as the process may end before the opening thread checks.
#[derive(Clone, Debug, Default)]
pub struct Unfinished(Arc<Mutex<State>>);

#[derive(Debug, Default)]
enum State {
    #[default]
    Nothing,
    At(PathBuf),
    Unwanted,
}

impl Unfinished {
    /// Removes the file, and prevents another one.
    pub fn discard(&self) {
        let mut state = self.state();
        if let State::At(path) = &*state {
            let _ = fs::remove_file(path);
        }
        *state = State::Unwanted;
    }

    /// A new file to write an index to; `None` if it cannot be created.
    pub(in super::super) fn create(&self, index: &Path) -> Option<File> {
        let mut state = self.state();
        if matches!(*state, State::Unwanted) {
            return None;
        }
        // A new file that is not locked yet may be taken for a stale one. The file is then removed, so the next attempt uses
        // another name.
        for attempt in 0..ATTEMPTS {
            let mut name = index.as_os_str().to_owned();
            let more = if attempt == 0 { String::new() } else { format!("0{attempt}") };
            name.push(format!(".{}{more}.IN_PROGRESS", std::process::id()));
            let path = PathBuf::from(name);
            let mut options = OpenOptions::new();
            options.read(true).write(true).create_new(true).mode(0o600);
            let file = options.open(&path).ok()?;
            // Without file locks, no file is taken for a stale one, either.
            let locked = flock(&file, FlockOperation::NonBlockingLockExclusive);
            if locked != Err(rustix::io::Errno::AGAIN) && same(&file, &path) {
                *state = State::At(path);
                return Some(file);
            }
        }
        None
    }

    /// Renames the complete index to its final name.
    pub(in super::super) fn finish(&self, index: &Path) -> io::Result<()> {
        let mut state = self.state();
        if let State::At(path) = &*state {
            fs::rename(path, index)?;
            *state = State::Nothing;
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes unfinished indexes of killed processes.
pub(in super::super) fn remove_stale(index: &Path) {
    let (Some(directory), Some(name)) = (index.parent(), index.file_name()) else {
        return;
    };
    let directory = match directory {
        empty if empty == Path::new("") => Path::new("."),
        directory => directory,
    };
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        if is_unfinished(&entry.file_name(), name) {
            remove_unlocked(&entry.path());
        }
    }
}

/// Whether a name is that of an unfinished index with a process id.
fn is_unfinished(name: &OsStr, index: &OsStr) -> bool {
    let rest = name.as_bytes().strip_prefix(index.as_bytes());
    let process = rest.and_then(|rest| rest.strip_prefix(b".")?.strip_suffix(ENDING));
    process.is_some_and(|process| !process.is_empty() && process.iter().all(u8::is_ascii_digit))
}

fn remove_unlocked(path: &Path) {
    let mut options = OpenOptions::new();
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    options.read(true).custom_flags(flags as i32);
    let Ok(file) = options.open(path) else {
        return;
    };
    let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
    let is_left = || flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    if is_file && is_left() && same(&file, path) {
        let _ = fs::remove_file(path);
    }
}

fn same(file: &File, path: &Path) -> bool {
    let (Ok(here), Ok(there)) = (file.metadata(), fs::symlink_metadata(path)) else {
        return false;
    };
    (here.ino(), here.dev()) == (there.ino(), there.dev())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("a directory");
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let mut names: Vec<String> = entries.flatten().map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn what_nobody_waits_for_is_taken_away_and_not_made_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let index = directory.path().join("index");
        let writer = Unfinished::default();
        let waiter = writer.clone();
        let file = writer.create(&index);
        assert!(file.is_some());
        assert_eq!(names(directory.path()).len(), 1);
        waiter.discard();
        assert!(names(directory.path()).is_empty());
        assert!(writer.create(&index).is_none());
        writer.finish(&index).expect("nothing to do");
        assert!(names(directory.path()).is_empty());
    }

    #[test]
    fn a_whole_index_stays() {
        let directory = tempfile::tempdir().expect("a directory");
        let index = directory.path().join("index");
        let writer = Unfinished::default();
        let file = writer.create(&index);
        assert!(file.is_some());
        writer.finish(&index).expect("a name");
        writer.discard();
        assert_eq!(names(directory.path()), ["index"]);
    }

    #[test]
    fn only_what_has_no_writer_is_stale() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        let index = at("heap.json.memprof-index");
        let writer = Unfinished::default();
        let file = writer.create(&index);
        assert!(file.is_some());
        let others = [
            "heap.json.memprof-index.IN_PROGRESS",
            "heap.json.memprof-index.12x.IN_PROGRESS",
            "heap.json.memprof-index.12",
            "other.json.memprof-index.12.IN_PROGRESS",
        ];
        for name in others {
            fs::write(at(name), "").expect("room");
        }
        fs::write(at("heap.json.memprof-index.12.IN_PROGRESS"), "").expect("room");
        let link = at("heap.json.memprof-index.13.IN_PROGRESS");
        std::os::unix::fs::symlink(at(others[0]), link).expect("a link");
        remove_stale(&index);
        let left = names(directory.path());
        assert_eq!(left.len(), others.len() + 2, "{left:?}");
        drop(file);
        remove_stale(&index);
        assert_eq!(names(directory.path()).len(), others.len() + 1);
    }
}

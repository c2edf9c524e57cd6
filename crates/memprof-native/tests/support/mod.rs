//! Support for tests of whole processes: libraries to trace, and a process for each test.
//!
//! The test itself contains the engine, so its own calls are never traced. The traced code is written in C, built when the
//! test runs, and loaded.

#![allow(dead_code, reason = "each test uses a part of it")]

pub mod lines;
pub mod loaded_tables;

use std::ffi::{CString, c_char, c_int, c_void};
use std::mem::transmute_copy;
use std::path::{Path, PathBuf};
use std::process::Command;

use memprof_native::{Node, Report};
use tempfile::TempDir;

/// Runs the test in a separate process: this program again, with only this test.
pub fn alone(test: impl FnOnce()) {
    alone_with(|_| {}, test);
}

/// Like [`alone`], with a prepared process.
pub fn alone_with(prepare: impl FnOnce(&mut Command), test: impl FnOnce()) {
    const MARK: &str = "MEMPROF_NATIVE_ALONE";
    if std::env::var_os(MARK).is_some() {
        // SAFETY: a signal that ends this process, should the test never end.
        unsafe { libc::alarm(300) };
        return test();
    }
    let thread = std::thread::current();
    let name = thread.name().expect("the name of the test");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(MARK, "1");
    prepare(&mut command);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {}\n{text}", output.status);
    assert!(text.contains("1 passed"), "{name} did not run:\n{text}");
}

/// Builds libraries from C and loads them.
pub struct Workshop {
    pub dir: TempDir,
}

impl Workshop {
    pub fn new() -> Workshop {
        Workshop { dir: tempfile::tempdir().unwrap() }
    }

    /// Builds a library with this name.
    pub fn build(&self, name: &str, source: &str, flags: &[&str]) -> PathBuf {
        let (text, library) =
            (self.dir.path().join(format!("{name}.c")), self.dir.path().join(format!("{name}.so")));
        std::fs::write(&text, source).unwrap();
        let status = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-fno-builtin", "-w", "-o"])
            .args([&library, &text])
            .args(flags)
            .status()
            .unwrap();
        assert!(status.success(), "cc {name}");
        library
    }

    /// Builds the library with the functions that tests call.
    pub fn work(&self, name: &str, flags: &[&str]) -> Library {
        Library::open(&self.build(name, WORK, flags))
    }
}

/// A loaded library.
pub struct Library {
    handle: *mut c_void,
}

// SAFETY: a loader handle is not bound to a thread.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    pub fn open(path: &Path) -> Library {
        let name = CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: a NUL-terminated path; the library's constructors are the test's.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) };
        assert!(!handle.is_null(), "dlopen {path:?}");
        Library { handle }
    }

    /// A function of the library; the test has to request its actual type.
    pub fn get<F: Copy>(&self, name: &str) -> F {
        let name = CString::new(name).unwrap();
        // SAFETY: a NUL-terminated name, and an open handle.
        let address = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        assert!(!address.is_null(), "dlsym {name:?}");
        assert_eq!(size_of::<F>(), size_of_val(&address));
        // SAFETY: F is a function pointer type, and that of this function, as the test ensures.
        unsafe { transmute_copy(&address) }
    }

    pub fn close(self) {
        // SAFETY: the handle is open, and is not used again.
        assert_eq!(unsafe { libc::dlclose(self.handle) }, 0);
    }
}

/// The node at this path: a tracer, and then key by key.
pub fn node<'a>(report: &'a Report, path: &str) -> Option<&'a Node> {
    let mut keys = path.split('.');
    let tracer = keys.next()?;
    let (_, root) = report.iter().find(|(name, _)| *name == tracer)?;
    keys.try_fold(root, |node, key| node.get(key))
}

/// The number at this path, or 0 if it is missing.
pub fn count(report: &Report, path: &str) -> u64 {
    node(report, path).and_then(Node::count).unwrap_or(0)
}

/// The duration at this path, or 0 if it is missing.
pub fn seconds(report: &Report, path: &str) -> f64 {
    node(report, path).and_then(Node::seconds).unwrap_or(0.0)
}

pub type Read = unsafe extern "C" fn(c_int, *mut c_void, usize) -> isize;
pub type Malloc = unsafe extern "C" fn(usize) -> *mut c_void;
pub type Free = unsafe extern "C" fn(*mut c_void);
pub type Rounds = unsafe extern "C" fn(c_int) -> c_int;
pub type Open = unsafe extern "C" fn(*const c_char) -> *mut c_void;
pub type Close = unsafe extern "C" fn(*mut c_void) -> c_int;

pub const WORK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

ssize_t do_read(int fd, void *to, size_t n) { return read(fd, to, n); }
ssize_t do_write(int fd, const void *from, size_t n) { return write(fd, from, n); }
int do_close(int fd) { return close(fd); }
int do_open_file(const char *path, int flags, int mode) { return open(path, flags, mode); }
int do_poll(int timeout) { return poll(NULL, 0, timeout); }
ssize_t do_writev(int fd, void *a, size_t n, void *b, size_t m) {
  struct iovec v[2] = { { a, n }, { b, m } };
  return writev(fd, v, 2);
}
ssize_t bad_readv(int fd) { return readv(fd, (struct iovec *)8, 3); }
ssize_t do_sendmsg(int fd, void *a, size_t n) {
  struct iovec v = { a, n };
  struct msghdr m;
  memset(&m, 0, sizeof m);
  m.msg_iov = &v;
  m.msg_iovlen = 1;
  return sendmsg(fd, &m, 0);
}
ssize_t do_recv(int fd, void *to, size_t n) { return recv(fd, to, n, 0); }
void *do_malloc(size_t n) { return malloc(n); }
void *do_calloc(size_t m, size_t n) { return calloc(m, n); }
void *do_realloc(void *p, size_t n) { return realloc(p, n); }
void *do_reallocarray(void *p, size_t m, size_t n) { return reallocarray(p, m, n); }
void *do_memalign(size_t n) { void *p; return posix_memalign(&p, 64, n) ? NULL : p; }
char *do_strdup(const char *s) { return strdup(s); }
void do_free(void *p) { free(p); }
void *do_dlopen(const char *path) { return dlopen(path, RTLD_NOW | RTLD_LOCAL); }
void *do_dlsym(void *h, const char *name) { return dlsym(h, name); }
int do_dlclose(void *h) { return dlclose(h); }

/* Writes and reads a byte, so many times; says how often that went well. */
int pipe_rounds(int rounds) {
  int ends[2], done = 0;
  char c = 'x';
  if (pipe(ends)) return -1;
  for (int i = 0; i < rounds; i++)
    if (write(ends[1], &c, 1) == 1 && read(ends[0], &c, 1) == 1) done++;
  close(ends[0]);
  close(ends[1]);
  return done;
}

/* Allocates and frees; says how many blocks it did not get. */
int malloc_rounds(int rounds) {
  void *kept[64] = { 0 };
  int failed = 0;
  for (int i = 0; i < rounds; i++) {
    free(kept[i & 63]);
    size_t n = 24 + (size_t)(i * 37 & 1023);
    kept[i & 63] = malloc(n);
    if (!kept[i & 63]) failed++;
    else memset(kept[i & 63], i, n);
  }
  for (int i = 0; i < 64; i++) free(kept[i]);
  return failed;
}

/* Loads and unloads a library through the tables of this one. */
int load_rounds(int rounds, const char *path) {
  int done = 0;
  for (int i = 0; i < rounds; i++) {
    void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!h) continue;
    int (*work)(int) = (int (*)(int))dlsym(h, "malloc_rounds");
    if (work && work(3) == 0) done++;
    dlclose(h);
  }
  return done;
}
"#;

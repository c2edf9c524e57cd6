//! Programs that are hard to trace: signal handlers that allocate, forks in the middle.

mod support;

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use memprof_native::{Scope, Trace, names};
use support::loaded_tables::{changes, words};
use support::{Free, Malloc, Rounds, Workshop, alone, count};

static HANDLED: AtomicU64 = AtomicU64::new(0);
/// 0: before the trace, 1: signals arrive, 2: no more signals.
static PHASE: AtomicU64 = AtomicU64::new(0);
static ALLOCATOR: OnceLock<(Malloc, Free, Rounds)> = OnceLock::new();

extern "C" fn handler(_: c_int) {
    let (malloc, free, close) = ALLOCATOR.get().unwrap();
    // SAFETY: functions of the library. The signal comes only while the thread computes or reads and writes, never while it
    // is inside the allocator itself, which is not reentrant.
    unsafe {
        free(malloc(48));
        let errno = *libc::__errno_location();
        close(-1);
        *libc::__errno_location() = errno;
    }
    HANDLED.fetch_add(1, Relaxed);
}

#[test]
fn a_signal_handler_that_allocates_while_hooks_run() {
    alone(|| {
        let shop = Workshop::new();
        let work = shop.work("work", &["-Wl,-z,now"]);
        let pipe: Rounds = work.get("pipe_rounds");
        ALLOCATOR
            .set((work.get("do_malloc"), work.get("do_free"), work.get("do_close")))
            .ok()
            .unwrap();
        // SAFETY: a handler with the required signature; interrupted calls are restarted.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as *const () as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut());
        }
        // SAFETY: takes no arguments, cannot fail.
        let target = unsafe { libc::pthread_self() };
        let sender = std::thread::spawn(move || {
            while PHASE.load(Relaxed) < 2 {
                if PHASE.load(Relaxed) == 1 {
                    // SAFETY: the thread waits for this one.
                    unsafe { libc::pthread_kill(target, libc::SIGUSR1) };
                }
                std::thread::sleep(Duration::from_micros(100));
            }
        });
        let trace = Trace::begin(&["fd", "memory"], Scope::Thread).unwrap();
        PHASE.store(1, Relaxed);
        let (begun, mut rounds) = (Instant::now(), 0);
        while HANDLED.load(Relaxed) < 2000 && begun.elapsed() < Duration::from_secs(20) {
            // SAFETY: a function of the library, with that type.
            rounds += unsafe { pipe(50) } as u64;
        }
        PHASE.store(2, Relaxed);
        sender.join().unwrap();
        let report = trace.finish();
        let handled = HANDLED.load(Relaxed);
        assert!(handled > 100, "{handled} signals");
        assert_eq!(count(&report, "memory.malloc.calls"), handled);
        assert_eq!(count(&report, "memory.free.calls"), handled);
        assert_eq!(count(&report, "memory.malloc.requested"), handled * 48);
        assert_eq!(count(&report, "fd.read.calls"), rounds);
        assert_eq!(count(&report, "fd.write.actual"), rounds);
        assert_eq!(count(&report, "fd.close.calls"), handled + rounds / 50 * 2);
    });
}

/// Runs `check` in a forked child and returns its result: 0 is right. A deadlocked child is killed.
fn in_child(check: impl FnOnce() -> c_int) -> c_int {
    // SAFETY: the child only computes, traces, and ends.
    match unsafe { libc::fork() } {
        // SAFETY: a signal that ends the child; and its exit, without running the test harness's code.
        0 => unsafe {
            libc::alarm(60);
            libc::_exit(check())
        },
        child => {
            let mut status = 0;
            // SAFETY: the child was forked above.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            assert!(libc::WIFEXITED(status), "the child ended by itself: {status}");
            libc::WEXITSTATUS(status)
        }
    }
}

#[test]
fn a_fork_inside_a_trace() {
    alone(|| {
        let shop = Workshop::new();
        let work = shop.work("work", &["-Wl,-z,now"]);
        let pipe: Rounds = work.get("pipe_rounds");
        drop(Trace::begin(names(), Scope::Thread).unwrap());
        let before = words();
        // SAFETY: a function of the library, with that type.
        let run = move |times| assert_eq!(unsafe { pipe(times) }, times);
        let mut trace = Some(Trace::begin(&["fd"], Scope::Thread).unwrap());
        let process = Trace::begin(&["fd"], Scope::Process).unwrap();
        run(10);
        let child = in_child(|| {
            run(5);
            let nested = Trace::begin(&["fd", "memory"], Scope::Thread).unwrap();
            run(3);
            // A thread of the child counts only for the child, in its own counters.
            std::thread::spawn(move || run(2)).join().unwrap();
            let reports = [nested.finish(), trace.take().unwrap().finish(), process.finish()];
            let calls = reports.map(|report| count(&report, "fd.read.calls"));
            let left = changes(&before, &words());
            c_int::from(calls != [3, 18, 20]) + 2 * c_int::from(!left.is_empty())
        });
        assert_eq!(child, 0);
        run(1);
        assert_eq!(count(&trace.unwrap().finish(), "fd.read.calls"), 11);
        assert_eq!(changes(&before, &words()), [""; 0]);
    });
}

#[test]
fn forks_while_other_threads_begin_and_finish() {
    alone(|| {
        let shop = Workshop::new();
        let work = shop.work("work", &["-Wl,-z,now"]);
        let pipe: Rounds = work.get("pipe_rounds");
        drop(Trace::begin(&["fd"], Scope::Thread).unwrap()); // the first, which no fork may interrupt
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let others: Vec<_> = (0..3)
            .map(|_| {
                let stop = stop.clone();
                std::thread::spawn(move || {
                    while !stop.load(Relaxed) {
                        drop(Trace::begin(&["fd"], Scope::Thread).unwrap());
                        std::thread::sleep(Duration::from_micros(200));
                    }
                })
            })
            .collect();
        for _ in 0..100 {
            let child = in_child(|| {
                let Ok(trace) = Trace::begin(&["fd"], Scope::Thread) else {
                    return 3;
                };
                // SAFETY: a function of the library, with that type.
                let done = unsafe { pipe(4) };
                c_int::from(done != 4 || count(&trace.finish(), "fd.read.calls") != 4)
            });
            assert_eq!(child, 0);
        }
        stop.store(true, Relaxed);
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

#[test]
fn a_block_from_before_and_one_for_after() {
    alone(|| {
        let shop = Workshop::new();
        let work = shop.work("work", &[]);
        let (malloc, free): (Malloc, Free) = (work.get("do_malloc"), work.get("do_free"));
        // SAFETY: functions of the library, with these types; each block is freed once.
        let old: *mut c_void = unsafe { malloc(1000) };
        let trace = Trace::begin(&["memory"], Scope::Thread).unwrap();
        // SAFETY: as above.
        let new = unsafe {
            free(old);
            malloc(2000)
        };
        let report = trace.finish();
        // SAFETY: as above.
        unsafe { free(new) };
        assert_eq!(count(&report, "memory.free.calls"), 1);
        assert!(count(&report, "memory.free.actual") >= 1000);
        assert!(count(&report, "memory.malloc.actual") >= 2000);
    });
}

/// A preloaded allocator, like jemalloc and tcmalloc. The words before its blocks differ from glibc's.
const ALLOCATOR_SOURCE: &str = r#"
#include <errno.h>
#include <stddef.h>
#include <string.h>
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);
struct head { size_t size; void *base; };
static struct head *head(void *p) { return (struct head *)p - 1; }
static void *make(size_t to, size_t n) {
  if (n > (size_t)1 << 40) { errno = ENOMEM; return NULL; }
  char *base = __libc_memalign(to, n + to);
  if (!base) return NULL;
  head(base + to)->size = n;
  head(base + to)->base = base;
  return base + to;
}
size_t malloc_usable_size(void *p) { return p ? head(p)->size : 0; }
void *malloc(size_t n) { return make(16, n); }
void *calloc(size_t m, size_t n) { void *p = make(16, m * n); if (p) memset(p, 0, m * n); return p; }
void free(void *p) { if (p) __libc_free(head(p)->base); }
void *realloc(void *p, size_t n) {
  void *q = make(16, n);
  if (p && q) { memcpy(q, p, head(p)->size < n ? head(p)->size : n); free(p); }
  return q;
}
void *aligned_alloc(size_t to, size_t n) { return make(to < 16 ? 16 : to, n); }
void *memalign(size_t to, size_t n) { return aligned_alloc(to, n); }
int posix_memalign(void **p, size_t to, size_t n) { *p = aligned_alloc(to, n); return *p ? 0 : ENOMEM; }
"#;

#[test]
fn an_allocator_that_is_preloaded() {
    let shop = Workshop::new();
    let allocator = shop.build("allocator", ALLOCATOR_SOURCE, &[]);
    let preload = |command: &mut std::process::Command| {
        command.env("LD_PRELOAD", &allocator);
    };
    support::alone_with(preload, || {
        for (name, flag) in [("lazy", "-Wl,-z,lazy"), ("now", "-Wl,-z,now")] {
            let work = shop.work(name, &[flag]);
            let rounds: Rounds = work.get("malloc_rounds");
            let memalign: Malloc = work.get("do_memalign");
            let free: Free = work.get("do_free");
            let trace = Trace::begin(&["memory"], Scope::Thread).unwrap();
            // SAFETY: functions of the library, with these types; the block is freed once.
            unsafe {
                assert_eq!(rounds(1000), 0);
                free(memalign(333));
            }
            let report = trace.finish();
            assert_eq!(count(&report, "memory.malloc.calls"), 1000);
            let bytes =
                ["requested", "actual"].map(|key| count(&report, &format!("memory.malloc.{key}")));
            assert_eq!(bytes[0], bytes[1], "this allocator sets aside what it is asked for");
            assert_eq!(count(&report, "memory.posix_memalign.actual"), 333);
            assert_eq!(count(&report, "memory.free.actual"), bytes[1] + 333);
        }
    });
}

#[test]
fn an_allocator_without_usable_size() {
    let shop = Workshop::new();
    let source = ALLOCATOR_SOURCE
        .replace("size_t malloc_usable_size(void *p) { return p ? head(p)->size : 0; }", "");
    assert_ne!(source, ALLOCATOR_SOURCE);
    let allocator = shop.build("allocator", &source, &[]);
    let preload = |command: &mut std::process::Command| {
        command.env("LD_PRELOAD", &allocator);
    };
    support::alone_with(preload, || {
        let work = shop.work("lazy", &["-Wl,-z,lazy"]);
        let rounds: Rounds = work.get("malloc_rounds");
        let trace = Trace::begin(&["memory"], Scope::Thread).unwrap();
        // SAFETY: a function of the library, with this type.
        assert_eq!(unsafe { rounds(1000) }, 0);
        let report = trace.finish();
        assert_eq!(count(&report, "memory.malloc.calls"), 1000);
        assert!(count(&report, "memory.malloc.requested") > 0);
        assert!(count(&report, "memory.free.calls") >= 1000);
        let text = format!("{report:?}");
        assert!(!text.contains("actual"), "unknown sizes: {text}");
    });
}

//! The state after a trace: tables exactly as found, whatever happened meanwhile.

mod support;

use std::ffi::{CString, c_char, c_int};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use memprof_native::{Scope, Trace, names};
use support::loaded_tables::{changes, protections, words};
use support::{Close, Library, Open, Rounds, Workshop, alone, count};

#[test]
fn every_word_and_every_page_as_found() {
    alone(|| {
        let shop = Workshop::new();
        let _full = shop.work("full", &["-Wl,-z,now,-z,relro"]);
        let _partial = shop.work("partial", &["-Wl,-z,lazy,-z,relro"]);
        let _none = shop.work("none", &["-Wl,-z,lazy,-z,norelro"]);
        drop(Trace::begin(names(), Scope::Thread).unwrap());
        let (before, pages) = (words(), protections());
        for _ in 0..3 {
            let outer = Trace::begin(&["fd"], Scope::Thread).unwrap();
            let inner = Trace::begin(names(), Scope::Process).unwrap();
            let during = words();
            assert_eq!(before.len(), during.len());
            let changed = before.iter().filter(|(place, word)| during[*place] != **word).count();
            assert!(changed > 50, "{changed} words are replaced");
            assert_eq!(protections(), pages, "no page is left writable");
            drop(outer);
            assert!(words() != before, "the inner trace goes on");
            drop(inner);
            assert_eq!(changes(&before, &words()), [""; 0]);
            assert_eq!(protections(), pages);
        }
    });
}

#[test]
fn the_first_trace_leaves_every_word_as_found() {
    alone(|| {
        let shop = Workshop::new();
        let lazy = shop.work("lazy", &["-Wl,-z,lazy"]);
        let before = words();
        drop(Trace::begin(&["fd", "memory"], Scope::Thread).unwrap());
        assert_eq!(changes(&before, &words()), [""; 0]);
        // Words bound during the trace belong to the loader.
        let rounds: Rounds = lazy.get("malloc_rounds");
        let trace = Trace::begin(&["memory"], Scope::Thread).unwrap();
        // SAFETY: a function of the library, with that type.
        assert_eq!(unsafe { rounds(100) }, 0);
        assert_eq!(count(&trace.finish(), "memory.malloc.calls"), 100);
    });
}

#[test]
fn libraries_that_come_and_go() {
    alone(|| {
        let shop = Workshop::new();
        let loader = shop.work("loader", &["-Wl,-z,now"]);
        let (open, close): (Open, Close) = (loader.get("do_dlopen"), loader.get("do_dlclose"));
        let path = shop.build("late", LATE, &["-Wl,-z,now"]);
        let name = CString::new(path.to_str().unwrap()).unwrap();
        let before = words();
        let trace = Trace::begin(&["memory"], Scope::Thread).unwrap();
        for _ in 0..5 {
            // SAFETY: functions of the libraries, with these types; each handle is closed once.
            unsafe {
                let handle = open(name.as_ptr());
                let late: unsafe extern "C" fn() =
                    std::mem::transmute(libc::dlsym(handle, c"late".as_ptr()));
                late();
                assert_eq!(close(handle), 0);
            }
        }
        // Unloaded while it is traced, and loaded again unobserved.
        let again = Library::open(&path);
        again.close();
        // SAFETY: as above; this one stays open.
        let handle = unsafe { open(name.as_ptr()) };
        let report = trace.finish();
        assert_eq!(count(&report, "memory.calloc.calls"), 5);
        assert_eq!(count(&report, "memory.calloc.requested"), 5 * 33);
        // SAFETY: as above.
        unsafe { close(handle) };
        assert_eq!(changes(&before, &words()), [""; 0]);
    });
}

/// Its constructor runs before it can be examined; `late` after.
const LATE: &str = "#include <stdlib.h>\nvoid late(void) { free(calloc(3, 11)); }";

#[test]
fn a_bare_name_is_looked_for_where_its_caller_says() {
    alone(|| {
        let shop = Workshop::new();
        shop.build("libmemprof_test_bare", LATE, &[]);
        let search = format!("-Wl,-rpath,{}", shop.dir.path().display());
        let loader = shop.work("loader", &[&search, "-Wl,--enable-new-dtags"]);
        let (open, symbol): (
            Open,
            unsafe extern "C" fn(
                *mut libc::c_void,
                *const c_char,
            ) -> Option<unsafe extern "C" fn()>,
        ) = (loader.get("do_dlopen"), loader.get("do_dlsym"));
        let trace = Trace::begin(&["memory"], Scope::Thread).unwrap();
        // SAFETY: functions of the libraries, with these types.
        unsafe {
            let handle = open(c"libmemprof_test_bare.so".as_ptr());
            assert!(!handle.is_null(), "found by the RUNPATH of the library that asks");
            symbol(handle, c"late".as_ptr()).unwrap()();
            assert!(open(c"libmemprof_test_none.so".as_ptr()).is_null());
            assert!(!libc::dlerror().is_null(), "the loader's message is left to the program");
        }
        assert_eq!(count(&trace.finish(), "memory.calloc.calls"), 1);
    });
}

#[test]
fn start_and_stop_ten_thousand_times_among_threads_and_loads() {
    alone(|| {
        let shop = Workshop::new();
        let work = Arc::new(shop.work("work", &["-Wl,-z,now,-z,relro"]));
        let lazy = Arc::new(shop.work("lazy", &["-Wl,-z,lazy"]));
        let plugins: Vec<_> = (0..3)
            .map(|index| {
                let flags: &[&str] = if index == 0 { &["-Wl,-z,lazy"] } else { &["-Wl,-z,now"] };
                let path = shop.build(&format!("plugin{index}"), PLUGIN, flags);
                CString::new(path.to_str().unwrap()).unwrap()
            })
            .collect();
        let (pipe, malloc): (Rounds, Rounds) = (work.get("pipe_rounds"), lazy.get("malloc_rounds"));
        // SAFETY: functions of the libraries, with these types.
        unsafe {
            pipe(1);
            malloc(100);
        }
        let load: unsafe extern "C" fn(c_int, *const c_char) -> c_int = work.get("load_rounds");
        let _bound = Trace::begin(names(), Scope::Thread).map(drop);
        // SAFETY: a function of the library, with that type.
        unsafe { load(1, plugins[0].as_ptr()) };
        let (before, pages) = (words(), protections());
        let stop = Arc::new(AtomicBool::new(false));
        let (rounds, loads) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let busy: Vec<_> = (0..16)
            .map(|index: usize| {
                let (stop, rounds, loads) = (stop.clone(), rounds.clone(), loads.clone());
                let plugin = plugins[index % plugins.len()].clone();
                thread::spawn(move || {
                    while !stop.load(Relaxed) {
                        // SAFETY: functions of the libraries, with these types.
                        unsafe {
                            match index % 4 {
                                0 => assert_eq!(malloc(200), 0),
                                1 if index < 8 => {
                                    loads.fetch_add(load(1, plugin.as_ptr()) as usize, Relaxed);
                                }
                                _ => assert_eq!(pipe(20), 20),
                            }
                        }
                        rounds.fetch_add(1, Relaxed);
                        // With fewer processors than threads, the one that starts and stops traces still needs its turn.
                        thread::sleep(Duration::from_micros(300));
                    }
                })
            })
            .collect();
        for round in 0..10_000 {
            let tracers: &[&str] = if round % 3 == 0 { &["fd", "memory"] } else { &["fd"] };
            let trace =
                Trace::begin(tracers, if round % 2 == 0 { Scope::Thread } else { Scope::Process })
                    .unwrap();
            if round % 500 == 0 {
                // SAFETY: a function of the library, with that type.
                assert_eq!(unsafe { pipe(3) }, 3);
                assert!(count(&trace.finish(), "fd.read.calls") >= 3);
            }
        }
        stop.store(true, Relaxed);
        busy.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(rounds.load(Relaxed) > 100 && loads.load(Relaxed) > 10, "{rounds:?} {loads:?}");
        assert_eq!(changes(&before, &words()), [""; 0]);
        assert_eq!(protections(), pages);
    });
}

const PLUGIN: &str = r#"
#include <stdlib.h>
#include <unistd.h>
int malloc_rounds(int rounds) {
  int failed = 0;
  for (int i = 0; i < rounds; i++) {
    void *p = malloc(100);
    failed += !p;
    free(p);
    close(-1);
  }
  return failed;
}
"#;

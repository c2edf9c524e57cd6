//! Functions called by address through libffi: a library of that name that works like libffi.

mod support;

use std::ffi::{c_int, c_void};

use memprof_native::{Report, Scope, Trace};
use support::{Library, Workshop, alone, count};

const FFI: &str = r#"
    void ffi_call(void *interface, void (*function)(void), void *result, void **arguments) {
      *(int *)result = ((int (*)(void *, void *))function)(arguments[0], arguments[1]);
    }
"#;
const CLIENT: &str = "int mysql_query(void *m, const char *q) { return *q == '!'; }\n";
/// Calls a function that it is given, through the library.
const CALLER: &str = r#"
    void ffi_call(void *, void *, void *, void **);
    int run(void *function, const char *query) {
      int result = -1;
      void *arguments[] = { &result, (void *)query };
      ffi_call(0, function, &result, arguments);
      return result;
    }
"#;

type Run = unsafe extern "C" fn(*const c_void, *const i8) -> c_int;

fn caller(shop: &Workshop) -> (Library, Run) {
    let library = shop.build("ffi", FFI, &["-Wl,-soname,ffi.so"]);
    let directory = format!("-Wl,-rpath,{}", shop.dir.path().display());
    let flags = [library.to_str().unwrap(), &directory];
    let library = Library::open(&shop.build("caller", CALLER, &flags));
    let run = library.get("run");
    (library, run)
}

fn ask(run: Run, client: *const c_void, query: &std::ffi::CStr) -> c_int {
    // SAFETY: functions of the libraries above, and a NUL-terminated query.
    unsafe { run(client, query.as_ptr().cast()) }
}

fn queries(report: &Report) -> u64 {
    count(report, "mysql.queries")
}

#[test]
fn fetched_before_the_trace() {
    alone(|| {
        let shop = Workshop::new();
        let (_caller, run) = caller(&shop);
        let client = Library::open(&shop.build("client", CLIENT, &[]));
        let query: *const c_void = client.get("mysql_query");

        let outer = Trace::begin(&["mysql"], Scope::Thread).unwrap();
        assert_eq!(ask(run, query, c"select 1"), 0);
        let inner = Trace::begin(&["mysql", "sqlite"], Scope::Thread).unwrap();
        assert_eq!(ask(run, query, c"!"), 1, "the answer is the function's own");
        assert_eq!(queries(&inner.finish()), 1);
        assert_eq!(ask(run, query, c"insert"), 0);
        let report = outer.finish();
        assert_eq!(queries(&report), 3);
        assert_eq!(count(&report, "mysql.types.insert.queries"), 1);

        ask(run, query, c"select");
        let other = Trace::begin(&["memory"], Scope::Thread).unwrap();
        ask(run, query, c"select");
        assert_eq!(queries(&other.finish()), 0);
        let later = Trace::begin(&["mysql"], Scope::Thread).unwrap();
        assert_eq!(queries(&later.finish()), 0);
    });
}

#[test]
fn loaded_in_the_middle_and_unloaded_afterwards() {
    alone(|| {
        let shop = Workshop::new();
        let path = shop.build("client", CLIENT, &[]);
        let (_caller, run) = caller(&shop);
        for _ in 0..3 {
            let trace = Trace::begin(&["mysql"], Scope::Thread).unwrap();
            let client = Library::open(&path);
            // The test's own calls are not seen: another trace looks up a symbol on the program's behalf.
            let inner = Trace::begin(&["mysql"], Scope::Thread).unwrap();
            let query: *const c_void = client.get("mysql_query");
            assert_eq!(ask(run, query, c"select"), 0);
            // Its functions are followed, so it stays loaded for now.
            client.close();
            assert!(is_loaded(&path));
            assert_eq!(queries(&inner.finish()), 1);
            drop(trace);
            assert!(!is_loaded(&path), "it goes with the last trace");
        }
    });
}

fn is_loaded(path: &std::path::Path) -> bool {
    std::fs::read_to_string("/proc/self/maps").unwrap().contains(path.to_str().unwrap())
}

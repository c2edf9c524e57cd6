//! Clients of databases and caches: fake libraries with their names that do what the test says, and a program that calls
//! them as typical programs do.

mod support;

use std::ffi::{c_char, c_int};

use memprof_native::{Node, Scope, Trace};
use support::{Library, Workshop, alone, count, node, seconds};

/// Builds a client library and a program linked to it, traces the program's `run`, and returns the report.
fn traced(tracer: &str, library: &str, program: &str) -> memprof_native::Report {
    let shop = Workshop::new();
    let client = shop.build("client", &format!("{PAUSE}{library}"), &["-Wl,-soname,client.so"]);
    let directory = format!("-Wl,-rpath,{}", shop.dir.path().display());
    let program = shop.build(
        "program",
        &format!("{PAUSE}{program}"),
        &[client.to_str().unwrap(), &directory],
    );
    // The program's libraries are loaded before the trace, or after it has begun.
    let early = Library::open(&program);
    let trace = Trace::begin(&[tracer], Scope::Thread).unwrap();
    let run: unsafe extern "C" fn() -> c_int = early.get("run");
    // SAFETY: a function of the program, with that type.
    assert_eq!(unsafe { run() }, 0);
    trace.finish()
}

const PAUSE: &str =
    "#include <stddef.h>\n#include <string.h>\n#include <stdlib.h>\nint usleep(unsigned);\n";

#[test]
fn mysql() {
    alone(|| {
        let report = traced(
            "mysql",
            r#"
            int mysql_real_query(void *m, const char *q, unsigned long n) { usleep(2000); return 0; }
            int mysql_query(void *m, const char *q) { return mysql_real_query(m, q, strlen(q)); }
            int mysql_send_query(void *m, const char *q, unsigned long n) { return *q == '!'; }
            char mysql_read_query_result(void *m) { usleep(3000); return 0; }
            int mysql_stmt_prepare(void *s, const char *q, unsigned long n) { return 0; }
            int mysql_stmt_execute(void *s) { return 0; }
            "#,
            r#"
            int mysql_real_query(void *, const char *, unsigned long), mysql_query(void *, const char *);
            int mysql_send_query(void *, const char *, unsigned long), mysql_stmt_prepare(void *, const char *, unsigned long);
            char mysql_read_query_result(void *);
            int mysql_stmt_execute(void *);
            int run(void) {
              char connection[64], one[64], two[64];
              mysql_query(connection, "SELECT 1");
              mysql_real_query(connection, " insert xxx", 7);
              mysql_send_query(connection, "select 2", 8);
              usleep(4000);
              mysql_read_query_result(connection);
              mysql_send_query(connection, "!", 1);
              mysql_stmt_prepare(one, "UPDATE x", 8);
              mysql_stmt_prepare(two, "delete x", 8);
              for (int i = 0; i < 3; i++) mysql_stmt_execute(one);
              return mysql_stmt_execute(two);
            }
            "#,
        );
        assert_eq!(
            count(&report, "mysql.queries"),
            8,
            "the library's call of itself is not counted: {report:?}"
        );
        let kinds = ["select", "insert", "update", "delete", "unknown"];
        assert_eq!(
            kinds.map(|kind| count(&report, &format!("mysql.types.{kind}.queries"))),
            [2, 1, 3, 1, 1]
        );
        assert!(
            seconds(&report, "mysql.types.select.time") >= 0.002 + 0.004 + 0.003,
            "from sending to the result"
        );
        assert!(seconds(&report, "mysql.types.insert.time") >= 0.002);
        let sum: f64 =
            kinds.iter().map(|kind| seconds(&report, &format!("mysql.types.{kind}.time"))).sum();
        assert!((seconds(&report, "mysql.time") - sum).abs() < 1e-9);
    });
}

#[test]
fn postgres() {
    alone(|| {
        let report = traced(
            "postgres",
            r#"
            void *PQexec(void *c, const char *q) { usleep(2000); return c; }
            void *PQprepare(void *c, const char *n, const char *q, int k, void *t) { return c; }
            void *PQexecPrepared(void *c, const char *n, int k, void *v, void *l, void *f, int r) { return c; }
            int PQsendQueryParams(void *c, const char *q, int n, void *t, void *v, void *l, void *f, int r) { return 1; }
            int PQsendQuery(void *c, const char *q) { return 0; }
            int PQisBusy(void *c) { static int left = 2; usleep(1000); return left-- > 0; }
            void *PQgetResult(void *c) { static int left = 1; return left-- > 0 ? c : NULL; }
            "#,
            r#"
            void *PQexec(void *, const char *), *PQprepare(void *, const char *, const char *, int, void *), *PQgetResult(void *);
            void *PQexecPrepared(void *, const char *, int, void *, void *, void *, int);
            int PQsendQueryParams(void *, const char *, int, void *, void *, void *, void *, int);
            int PQsendQuery(void *, const char *), PQisBusy(void *);
            int run(void) {
              char c[64];
              PQexec(c, "begin");
              PQprepare(c, "one", "insert into x", 0, NULL);
              PQprepare(c, "two", "update x", 0, NULL);
              PQexecPrepared(c, "one", 0, NULL, NULL, NULL, 0);
              PQexecPrepared(c, "two", 0, NULL, NULL, NULL, 0);
              PQexecPrepared(c, "three", 0, NULL, NULL, NULL, 0);
              PQsendQueryParams(c, "select $1", 0, NULL, NULL, NULL, NULL, 0);
              while (PQisBusy(c)) usleep(1000);
              usleep(900000); /* the result is there, but the program is at something else */
              while (PQgetResult(c)) ;
              PQsendQuery(c, "select");
              return 0;
            }
            "#,
        );
        let kinds = ["select", "insert", "update", "delete", "unknown"];
        assert_eq!(
            kinds.map(|kind| count(&report, &format!("postgres.types.{kind}.queries"))),
            [2, 1, 1, 0, 2]
        );
        assert_eq!(count(&report, "postgres.queries"), 6);
        let waited = seconds(&report, "postgres.types.select.time");
        assert!((0.005..0.9).contains(&waited), "{waited}: until the program knew of the result");
    });
}

#[test]
fn sqlite() {
    alone(|| {
        let report = traced(
            "sqlite",
            r#"
            struct s { const char *sql; int rows, at; };
            void *make(const char *sql, int rows) { struct s *s = malloc(sizeof *s); s->sql = sql; s->rows = rows; s->at = 0; return s; }
            const char *sqlite3_sql(struct s *s) { return s ? s->sql : NULL; }
            int sqlite3_stmt_busy(struct s *s) { return s && s->at > 0; }
            int sqlite3_step(struct s *s) {
              if (!s) return 21;
              usleep(1000);
              if (s->at++ < s->rows) return 100;
              s->at = 0;
              return 101;
            }
            int sqlite3_exec(void *db, const char *q, void *f, void *d, void *e) { struct s *s = make(q, 0); sqlite3_step(s); return 0; }
            "#,
            r#"
            void *make(const char *, int);
            int sqlite3_step(void *), sqlite3_exec(void *, const char *, void *, void *, void *);
            int run(void) {
              void *rows = make("select * from x", 3), *insert = make("insert into x", 0);
              for (int i = 0; i < 2; i++) while (sqlite3_step(rows) == 100) ;
              sqlite3_step(insert);
              sqlite3_exec(NULL, "delete from x", NULL, NULL, NULL);
              return sqlite3_step(NULL) != 21;
            }
            "#,
        );
        let kinds = ["select", "insert", "update", "delete", "unknown"];
        assert_eq!(
            kinds.map(|kind| count(&report, &format!("sqlite.types.{kind}.queries"))),
            [2, 1, 0, 1, 1]
        );
        assert!(seconds(&report, "sqlite.types.select.time") >= 0.008, "every step takes its time");
    });
}

/// The real library, where the machine has it.
#[test]
fn sqlite_itself() {
    alone(|| {
        // SAFETY: a library by its name; it has no constructors that matter.
        if unsafe { libc::dlopen(c"libsqlite3.so.0".as_ptr(), libc::RTLD_NOW) }.is_null() {
            eprintln!("skipped: there is no libsqlite3.so.0");
            return;
        }
        let shop = Workshop::new();
        let source = r#"
            int sqlite3_open(const char *, void **), sqlite3_step(void *), sqlite3_finalize(void *), sqlite3_close(void *);
            int sqlite3_exec(void *, const char *, void *, void *, void *);
            int sqlite3_prepare_v2(void *, const char *, int, void **, void *);
            int run(const char *path) {
              void *db, *s;
              if (sqlite3_open(path, &db)) return 1;
              sqlite3_exec(db, "create table x (a)", 0, 0, 0);
              for (int i = 0; i < 10; i++) sqlite3_exec(db, "insert into x values (1)", 0, 0, 0);
              if (sqlite3_prepare_v2(db, "  SELECT a FROM x", -1, &s, 0)) return 2;
              int rows = 0;
              while (sqlite3_step(s) == 100) rows++;
              sqlite3_finalize(s);
              return sqlite3_close(db) ? 3 : rows == 10 ? 0 : 4;
            }
        "#;
        let program = Library::open(&shop.build("program", source, &["-l:libsqlite3.so.0"]));
        let run: unsafe extern "C" fn(*const c_char) -> c_int = program.get("run");
        let path = std::ffi::CString::new(shop.dir.path().join("x.db").to_str().unwrap()).unwrap();
        let trace = Trace::begin(&["sqlite", "fd", "memory"], Scope::Thread).unwrap();
        // SAFETY: a function of the program, with that type.
        assert_eq!(unsafe { run(path.as_ptr()) }, 0);
        let report = trace.finish();
        assert_eq!(count(&report, "sqlite.types.select.queries"), 1);
        assert_eq!(count(&report, "sqlite.types.insert.queries"), 10);
        assert_eq!(count(&report, "sqlite.types.unknown.queries"), 1);
        assert!(
            count(&report, "fd.fsync.calls") >= 10,
            "SQLite calls them through a table of its own: {report:?}"
        );
        assert!(count(&report, "fd.write.actual") > 4096);
        assert!(count(&report, "memory.malloc.calls") > 10);
    });
}

#[test]
fn memcache() {
    alone(|| {
        let report = traced(
            "memcache",
            r#"
            char *memcached_get(void *m, const char *k, size_t n, size_t *s, unsigned *f, int *rc) {
              *rc = k[0] == 'a' ? 0 : k[0] == 'b' ? 16 : k[0] == 'c' ? 3 : 4000;
              return NULL;
            }
            int memcached_set(void *m, const char *k, size_t n, const char *v, size_t s, long t, unsigned f) { usleep(2000); return 0; }
            int memcached_delete(void *m, const char *k, size_t n, long t) { return 16; }
            "#,
            r#"
            char *memcached_get(void *, const char *, size_t, size_t *, unsigned *, int *);
            int memcached_set(void *, const char *, size_t, const char *, size_t, long, unsigned);
            int memcached_delete(void *, const char *, size_t, long);
            int run(void) {
              size_t size; unsigned flags; int code;
              for (const char *k = "aabcd"; *k; k++) memcached_get(NULL, k, 1, &size, &flags, &code);
              memcached_set(NULL, "a", 1, "v", 1, 0, 0);
              return memcached_delete(NULL, "a", 1, 0) != 16;
            }
            "#,
        );
        assert_eq!(count(&report, "memcache.get.calls"), 5);
        let codes = ["success", "notfound", "3", "unknown"];
        assert_eq!(
            codes.map(|code| count(&report, &format!("memcache.get.responses.{code}"))),
            [2, 1, 1, 1]
        );
        assert!(seconds(&report, "memcache.set.time") >= 0.002);
        assert_eq!(count(&report, "memcache.delete.responses.notfound"), 1);
        assert_eq!(node(&report, "memcache.mget"), None);
    });
}

#[test]
fn dns() {
    alone(|| {
        let shop = Workshop::new();
        let source = r#"
            #include <netdb.h>
            #include <stddef.h>
            int run(void) {
              struct addrinfo hints = { .ai_flags = AI_NUMERICHOST }, *found;
              if (getaddrinfo("127.0.0.1", "80", &hints, &found)) return 1;
              freeaddrinfo(found);
              return getaddrinfo("no number", NULL, &hints, &found) == 0;
            }
        "#;
        let program = Library::open(&shop.build("program", source, &[]));
        let run: unsafe extern "C" fn() -> c_int = program.get("run");
        let trace = Trace::begin(&["dns"], Scope::Thread).unwrap();
        // SAFETY: a function of the program, with that type.
        assert_eq!(unsafe { run() }, 0);
        let report = trace.finish();
        assert_eq!(count(&report, "dns.getaddrinfo.calls"), 2);
        assert!(node(&report, "dns.getaddrinfo.time").and_then(Node::seconds).is_some());
    });
}

/// The same as Ruby 3.3 and later do it.
#[test]
fn dns_in_helpers() {
    alone(|| {
        let shop = Workshop::new();
        let source = r#"
            #include <netdb.h>
            #include <pthread.h>
            #include <stddef.h>
            void *look_up(void *times) {
              struct addrinfo hints = { .ai_flags = AI_NUMERICHOST }, *found;
              for (int left = *(int *)times; left > 0; left--) {
                if (getaddrinfo("127.0.0.1", "80", &hints, &found)) return NULL;
                freeaddrinfo(found);
              }
              return times;
            }
            int run(int times) {
              pthread_t helpers[3];
              void *result;
              for (int i = 0; i < 3; i++) if (pthread_create(&helpers[i], NULL, look_up, &times)) return 1;
              for (int i = 0; i < 3; i++) if (pthread_join(helpers[i], &result) || result != &times) return 2;
              return look_up(&times) != &times;
            }
        "#;
        let program = Library::open(&shop.build("program", source, &["-pthread"]));
        let run: unsafe extern "C" fn(c_int) -> c_int = program.get("run");
        let looked_up = |times: c_int, scope| {
            let trace = Trace::begin(&["dns"], scope).unwrap();
            // SAFETY: a function of the program, with that type.
            assert_eq!(unsafe { run(times) }, 0);
            count(&trace.finish(), "dns.getaddrinfo.calls")
        };
        assert_eq!(looked_up(10, Scope::Thread), 40);
        assert_eq!(looked_up(10, Scope::Process), 40);
        let all = Trace::begin(&["dns"], Scope::Process).unwrap();
        let own: Vec<_> = std::thread::scope(|scope| {
            let threads =
                [200, 300].map(|times| scope.spawn(move || looked_up(times, Scope::Thread)));
            threads.map(|thread| thread.join().unwrap()).into()
        });
        assert_eq!(own, [800, 1200]);
        assert_eq!(count(&all.finish(), "dns.getaddrinfo.calls"), 2000);
    });
}

#[test]
fn resources() {
    alone(|| {
        let trace = Trace::begin(&["resources"], Scope::Thread).unwrap();
        let mut pages = vec![0u8; 16 << 20];
        pages.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        while computed() < 0.1 {
            std::hint::black_box(pages.iter().map(|&byte| u64::from(byte)).sum::<u64>());
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
        let report = trace.finish();
        let used = seconds(&report, "resources.utime") + seconds(&report, "resources.stime");
        assert!((0.05..1.0).contains(&used), "{used}: about a tenth of a second");
        assert!(count(&report, "resources.minor_faults") > 0);
        assert!(count(&report, "resources.voluntary_switches") >= 1);
    });
}

/// Seconds of CPU time of this thread.
fn computed() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a clock that every Linux has, and room for its time.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

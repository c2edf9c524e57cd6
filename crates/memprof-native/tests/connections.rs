//! The state kept per connection between calls, and between traces: the thread that waits for an answer, and the kinds of
//! prepared statements.

mod support;

use std::ffi::{CString, c_char, c_int};
use std::time::{Duration, Instant};

use memprof_native::{Choice, Report, Scope, Trace};
use support::{Library, Workshop, alone, count, seconds};

const LIBRARY: &str = r#"
    void *PQexec(void *c, const char *q) { return c; }
    void *PQprepare(void *c, const char *n, const char *q, int k, void *t) { return c; }
    void *PQexecPrepared(void *c, const char *n, int k, void *v, void *l, void *f, int r) { return c; }
    int PQsendQuery(void *c, const char *q) { return 1; }
    int PQisBusy(void *c) { return *(char *) c; }
    void *PQgetResult(void *c) { return c; }
    int PQsendQueryPrepared(void *c, const char *n, int k, void *v, void *l, void *f, int r) { return 1; }
    const char *tag = "";
    const char *PQcmdStatus(const void *r) { return r ? tag : 0; }
    void PQreset(void *c) {}
    void PQfinish(void *c) {}
"#;

/// Connection `i` is byte `i` of an array: 1 while the server is working.
const PROGRAM: &str = r#"
    void *PQexec(void *, const char *), *PQprepare(void *, const char *, const char *, int, void *), *PQgetResult(void *);
    void *PQexecPrepared(void *, const char *, int, void *, void *, void *, int);
    int PQsendQuery(void *, const char *), PQisBusy(void *);
    int PQsendQueryPrepared(void *, const char *, int, void *, void *, void *, int);
    extern const char *tag;
    void PQreset(void *), PQfinish(void *);
    static char connections[64];
    void query(int c, const char *q) { PQexec(connections + c, q); }
    void send_query(int c, const char *q) { connections[c] = 1; PQsendQuery(connections + c, q); }
    void reply(int c) { connections[c] = 0; }
    void ask(int c) { PQisBusy(connections + c); }
    void result(int c) { PQgetResult(connections + c); }
    void reset(int c) { PQreset(connections + c); }
    void finish(int c) { PQfinish(connections + c); }
    void prepare(int c, const char *n, const char *q) { PQprepare(connections + c, n, q, 0, 0); }
    void answers(int c, const char *t) { static char kept[64]; tag = __builtin_strcpy(kept, t); }
    void send_execute(int c, const char *n) { connections[c] = 1; PQsendQueryPrepared(connections + c, n, 0, 0, 0, 0, 0); }
    void execute(int c, const char *n) { PQexecPrepared(connections + c, n, 0, 0, 0, 0, 0); }
"#;

/// A program that talks to a server through libpq.
struct Client {
    program: Library,
    _shop: Workshop,
}

impl Client {
    fn new() -> Client {
        let shop = Workshop::new();
        let library = shop.build("client", LIBRARY, &["-Wl,-soname,client.so"]);
        let directory = format!("-Wl,-rpath,{}", shop.dir.path().display());
        let program = shop.build("program", PROGRAM, &[library.to_str().unwrap(), &directory]);
        Client { program: Library::open(&program), _shop: shop }
    }

    fn to(&self, function: &str, connection: c_int) {
        let function: unsafe extern "C" fn(c_int) = self.program.get(function);
        // SAFETY: a function of the program, with that type; there are 64 connections.
        unsafe { function(connection) }
    }

    fn say(&self, function: &str, connection: c_int, text: &str) {
        let function: unsafe extern "C" fn(c_int, *const c_char) = self.program.get(function);
        let text = CString::new(text).unwrap();
        // SAFETY: as above.
        unsafe { function(connection, text.as_ptr()) }
    }

    fn prepare(&self, connection: c_int, name: &str, query: &str) {
        let prepare: unsafe extern "C" fn(c_int, *const c_char, *const c_char) =
            self.program.get("prepare");
        let (name, query) = (CString::new(name).unwrap(), CString::new(query).unwrap());
        // SAFETY: as above.
        unsafe { prepare(connection, name.as_ptr(), query.as_ptr()) }
    }

    /// The kinds of these statements in a trace.
    fn kinds(&self, statements: &[(c_int, &str)]) -> Vec<&'static str> {
        let kind = |&(connection, name): &(c_int, &str)| {
            kind(&traced(Scope::Thread, || self.say("execute", connection, name)))
        };
        statements.iter().map(kind).collect()
    }
}

/// The kind of a trace's only query.
fn kind(report: &Report) -> &'static str {
    let kinds = ["select", "insert", "update", "delete", "unknown"];
    let queries = |kind: &&str| count(report, &format!("postgres.types.{kind}.queries"));
    assert_eq!(kinds.iter().map(queries).sum::<u64>(), 1);
    kinds.into_iter().find(|kind| queries(kind) == 1).unwrap()
}

fn traced(scope: Scope, work: impl FnOnce()) -> Report {
    let trace = Trace::begin(&["postgres"], scope).unwrap();
    work();
    trace.finish()
}

/// Like `traced`, with the duration of the trace.
fn timed(scope: Scope, work: impl FnOnce()) -> (Report, f64) {
    let begun = Instant::now();
    let report = traced(scope, work);
    (report, begun.elapsed().as_secs_f64())
}

fn install() -> memprof_native::Installation {
    Choice::of(&["postgres"]).unwrap().install().unwrap()
}

const PAUSE: Duration = Duration::from_millis(150);

fn pause() {
    std::thread::sleep(PAUSE);
}

fn waited(report: &Report) -> f64 {
    seconds(report, "postgres.time")
}

#[test]
fn a_wait_that_is_given_up_belongs_to_its_trace() {
    alone(|| {
        let (client, _installed) = (Client::new(), install());
        let slow = traced(Scope::Thread, || {
            client.say("send_query", 0, "select pg_sleep(2)");
            client.to("ask", 0);
            pause();
        });
        assert!(waited(&slow) >= PAUSE.as_secs_f64(), "{slow:?}");
        assert_eq!(count(&slow, "postgres.types.select.queries"), 1);
        pause();
        let other = traced(Scope::Thread, || client.say("query", 1, "update x"));
        assert_eq!(waited(&other), seconds(&other, "postgres.types.update.time"));
        for answered in [true, false] {
            if answered {
                client.to("reply", 0);
            }
            let (next, length) = timed(Scope::Thread, || {
                pause();
                client.to("ask", 0);
                client.to("result", 0);
            });
            assert!(waited(&next) <= length - PAUSE.as_secs_f64(), "not before it asks: {next:?}");
            assert_eq!(count(&next, "postgres.queries"), 0);
        }
    });
}

#[test]
fn a_wait_for_what_another_trace_sent_begins_with_the_first_call() {
    alone(|| {
        let (client, _installed) = (Client::new(), install());
        drop(traced(Scope::Thread, || {
            client.say("send_query", 0, "insert into x");
        }));
        pause();
        let next = traced(Scope::Thread, || {
            client.to("ask", 0);
            pause();
            client.to("result", 0);
        });
        assert!(waited(&next) >= PAUSE.as_secs_f64(), "{next:?}");
        assert_eq!(count(&next, "postgres.types.insert.queries"), 0);
        client.say("send_query", 0, "delete from x");
        pause();
        let (in_thread, length) = timed(Scope::Process, || {
            let ask = || traced(Scope::Thread, || client.to("result", 0));
            let other = std::thread::scope(|scope| scope.spawn(ask).join().unwrap());
            assert!(waited(&other) < PAUSE.as_secs_f64(), "{other:?}");
        });
        assert!(waited(&in_thread) <= length, "{in_thread:?}");
    });
}

#[test]
fn a_wait_goes_on_through_traces_inside_of_its_own() {
    alone(|| {
        let (client, _installed) = (Client::new(), install());
        let mut inner = Vec::new();
        let outer = traced(Scope::Thread, || {
            client.say("send_query", 0, "select 1");
            pause();
            for work in [pause, || ()] {
                inner.push(timed(Scope::Thread, work));
            }
            inner.push(timed(Scope::Process, || {
                pause();
                client.to("result", 0);
            }));
        });
        for (report, length) in &inner {
            assert!(waited(report) <= *length, "{report:?}");
        }
        assert!(waited(&inner[0].0) >= PAUSE.as_secs_f64());
        assert!(waited(&inner[2].0) >= PAUSE.as_secs_f64());
        assert!(waited(&outer) >= 3.0 * PAUSE.as_secs_f64(), "{outer:?}");
    });
}

#[test]
fn a_wait_ends_when_its_connection_is_closed() {
    alone(|| {
        let (client, _installed) = (Client::new(), install());
        let (report, length) = timed(Scope::Thread, || {
            for (connection, close) in [(0, "finish"), (1, "reset")] {
                client.say("send_query", connection, "select 1");
                pause();
                client.to(close, connection);
            }
            pause();
            client.to("result", 0); // of another connection at the same place
        });
        let pause = PAUSE.as_secs_f64();
        assert!(waited(&report) >= 2.0 * pause, "{report:?}");
        assert!(waited(&report) <= length - pause, "{report:?}");
    });
}

#[test]
fn kinds_of_many_statements_on_many_connections() {
    alone(|| {
        let (client, _installed) = (Client::new(), install());
        let queries = ["select 1", "insert into x", "update x", "delete from x"];
        let name = |number: usize| format!("a{number}");
        for connection in 0..8 {
            for number in 0..1000 {
                client.prepare(connection, &name(number), queries[number % 4]);
            }
        }
        let report = traced(Scope::Thread, || {
            for connection in 0..8 {
                (0..1000).for_each(|number| client.say("execute", connection, &name(number)));
            }
        });
        let kinds = ["select", "insert", "update", "delete", "unknown"];
        assert_eq!(
            kinds.map(|kind| count(&report, &format!("postgres.types.{kind}.queries"))),
            [2000, 2000, 2000, 2000, 0]
        );
    });
}

#[test]
fn kinds_live_as_long_as_their_statements() {
    alone(|| {
        let client = Client::new();
        client.prepare(0, "early", "select 1");
        let installed = install();
        assert_eq!(client.kinds(&[(0, "early")]), ["unknown"]);
        for (connection, name) in [(0, "a"), (0, "b"), (0, "C"), (1, "a"), (2, "a")] {
            client.prepare(connection, name, "update x");
        }
        client.prepare(0, "", "delete from x");
        client.prepare(0, "", "insert into x");
        client.say("query", 0, "DEALLOCATE A");
        client.say("query", 0, "deallocate prepare \"C\"");
        client.to("finish", 2);
        assert_eq!(
            client.kinds(&[(0, "a"), (0, "b"), (0, "C"), (0, ""), (1, "a"), (2, "a")]),
            ["unknown", "update", "unknown", "insert", "update", "unknown"]
        );
        client.to("reset", 1);
        client.say("query", 0, "DISCARD ALL");
        assert_eq!(client.kinds(&[(0, "b"), (1, "a")]), ["unknown"; 2]);
        client.prepare(0, "b", "select 1");
        drop(installed);
        // The connection may have been closed and opened again meanwhile.
        let _again = install();
        assert_eq!(client.kinds(&[(0, "b")]), ["unknown"]);
    });
}

#[test]
fn kinds_of_statements_that_were_prepared_unseen() {
    alone(|| {
        let (client, _installed) = (Client::new(), install());
        client.say("answers", 0, "INSERT 0 1");
        assert_eq!(client.kinds(&[(0, "a")]), ["insert"]);
        let query = |text: &str| kind(&traced(Scope::Thread, || client.say("query", 0, text)));
        assert_eq!(query("/* of SQL */ EXECUTE b (1)"), "insert");
        assert_eq!(query("with x as (select 1) select"), "unknown");
        // Known kinds are not asked for again, and an error shows nothing.
        client.say("answers", 0, "");
        assert_eq!(client.kinds(&[(0, "a"), (1, "a")]), ["insert", "unknown"]);
        client.say("answers", 0, "UPDATE 3");
        assert_eq!(client.kinds(&[(1, "a")]), ["update"]);

        client.say("answers", 0, "DELETE 2");
        let report = traced(Scope::Thread, || {
            client.say("send_execute", 0, "c");
            client.to("ask", 0);
            pause();
            client.to("reply", 0);
            client.to("ask", 0);
            pause();
            client.to("result", 0);
        });
        assert_eq!(kind(&report), "delete");
        let (waited, pause) = (waited(&report), PAUSE.as_secs_f64());
        assert!((pause..2.0 * pause).contains(&waited), "{waited}");
        assert_eq!(client.kinds(&[(0, "c")]), ["delete"]);

        // Its answer is not taken: it is counted when the trace ends.
        let given_up = traced(Scope::Thread, || client.say("send_execute", 0, "d"));
        assert_eq!(kind(&given_up), "unknown");
        let later = traced(Scope::Thread, || client.to("result", 0));
        assert_eq!(count(&later, "postgres.queries"), 0);
    });
}

#[test]
fn a_fork_leaves_the_child_with_what_is_remembered() {
    alone(|| {
        let (client, _installed) = (Client::new(), install());
        client.prepare(0, "a", "select 1");
        let stop = std::sync::atomic::AtomicBool::new(false);
        let is_done = || stop.load(std::sync::atomic::Ordering::Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done() {
                    client.prepare(1, "b", "select 2");
                    client.to("finish", 1);
                }
            });
            for _ in 0..50 {
                // SAFETY: the child asks for a kind, and ends without running any code of its parent.
                let child = unsafe { libc::fork() };
                if child == 0 {
                    // SAFETY: a signal that ends the child, should it deadlock.
                    unsafe { libc::alarm(60) };
                    let is_known = client.kinds(&[(0, "a")]) == ["select"];
                    // SAFETY: ends the process.
                    unsafe { libc::_exit(if is_known { 7 } else { 8 }) };
                }
                let mut status = 0;
                // SAFETY: waits for the child.
                unsafe { libc::waitpid(child, &mut status, 0) };
                assert_eq!(libc::WEXITSTATUS(status), 7, "status {status:#x}");
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    });
}

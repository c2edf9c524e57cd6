//! Nested traces, concurrent traces, and traces across threads; and the tracers that they may have.

mod support;

use memprof_native::{Choice, Node, Refused, Scope, Trace, names};
use support::loaded_tables::{changes, words};
use support::{Rounds, Workshop, alone, count, node};

#[test]
fn nested_and_concurrent_traces() {
    alone(|| {
        let shop = Workshop::new();
        let work = shop.work("work", &[]);
        let rounds: Rounds = work.get("pipe_rounds");
        // SAFETY: a function of the library, with that type.
        let run = move |times| assert_eq!(unsafe { rounds(times) }, times);
        let outer = Trace::begin(&["fd", "memory"], Scope::Thread).unwrap();
        let process = Trace::begin(&["fd"], Scope::Process).unwrap();
        run(10);
        let inner = Trace::begin(&["fd"], Scope::Thread).unwrap();
        run(5);
        assert_eq!(count(&inner.finish(), "fd.read.calls"), 5);
        let threads: Vec<_> = (1..=8)
            .map(|times| {
                std::thread::spawn(move || {
                    let trace = Trace::begin(&["fd"], Scope::Thread).unwrap();
                    run(times * 100);
                    assert_eq!(count(&trace.finish(), "fd.read.calls"), times as u64 * 100);
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(count(&outer.finish(), "fd.read.calls"), 15);
        assert_eq!(
            count(&process.finish(), "fd.read.calls"),
            15 + 3600,
            "those of ended threads are kept"
        );
    });
}

#[test]
fn functions_that_stay_replaced_between_traces() {
    alone(|| {
        let shop = Workshop::new();
        let work = shop.work("work", &["-Wl,-z,now"]);
        let rounds: Rounds = work.get("pipe_rounds");
        // SAFETY: a function of the library, with that type.
        let run = move |times| assert_eq!(unsafe { rounds(times) }, times);
        drop(Trace::begin(&["fd"], Scope::Thread).unwrap());
        let before = words();
        let installed = Choice::of(&["fd"]).unwrap().install().unwrap();
        let during = words();
        assert_ne!(changes(&before, &during), [""; 0]);
        for times in 1..=3 {
            let trace = Trace::begin(&["fd"], Scope::Thread).unwrap();
            run(times);
            assert_eq!(count(&trace.finish(), "fd.read.calls"), times as u64);
            assert_eq!(changes(&during, &words()), [""; 0]);
        }
        let both = Trace::begin(&["fd", "memory"], Scope::Thread).unwrap();
        let within = Trace::begin(&["fd"], Scope::Thread).unwrap();
        drop(installed);
        run(4);
        assert_eq!(count(&within.finish(), "fd.read.calls"), 4);
        assert_eq!(count(&both.finish(), "fd.read.calls"), 4);
        assert_eq!(changes(&before, &words()), [""; 0]);
    });
}

#[test]
fn a_trace_that_another_thread_finishes() {
    alone(|| {
        let shop = Workshop::new();
        let work = shop.work("work", &[]);
        let rounds: Rounds = work.get("pipe_rounds");
        // SAFETY: a function of the library, with that type.
        let run = move |times| assert_eq!(unsafe { rounds(times) }, times);
        let trace = std::thread::spawn(move || {
            let trace = Trace::begin(&["fd", "resources"], Scope::Thread).unwrap();
            run(7);
            trace
        });
        let trace = trace.join().unwrap();
        run(100);
        // More threads than there are counters: the ended one's are not reused while the trace runs.
        for _ in 0..200 {
            std::thread::spawn(move || run(1)).join().unwrap();
        }
        assert_eq!(count(&trace.finish(), "fd.read.calls"), 7);
    });
}

#[test]
fn threads_without_end() {
    alone(|| {
        let shop = Workshop::new();
        let work = shop.work("work", &[]);
        let rounds: Rounds = work.get("pipe_rounds");
        let trace = Trace::begin(&["fd"], Scope::Process).unwrap();
        for _ in 0..500 {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    // SAFETY: a function of the library, with that type.
                    std::thread::spawn(move || assert_eq!(unsafe { rounds(3) }, 3))
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        }
        assert_eq!(count(&trace.finish(), "fd.write.calls"), 500 * 8 * 3);
    });
}

#[test]
fn names_that_there_are() {
    assert_eq!(
        names(),
        ["fd", "dns", "memory", "mysql", "postgres", "sqlite", "memcache", "resources"]
    );
    let refused = Trace::begin(&["fd", "nonsense"], Scope::Thread).unwrap_err();
    assert_eq!(refused, Refused::Unknown("nonsense".into()));
    assert_eq!(refused.to_string(), "unknown native tracer \"nonsense\"");
}

#[test]
fn a_tracer_for_each_name_in_the_order_asked_for() {
    alone(|| {
        let asked = ["resources", "memory", "sqlite", "fd", "fd"];
        let report = Trace::begin(&asked, Scope::Process).unwrap().finish();
        assert_eq!(report.iter().map(|(name, _)| *name).collect::<Vec<_>>(), asked);
        assert!(node(&report, "resources.utime").and_then(Node::seconds).is_some());
        assert_eq!(node(&report, "sqlite"), Some(&Node::Map(Vec::new())));
        assert!(Trace::begin(&[], Scope::Thread).unwrap().finish().is_empty());
    });
}

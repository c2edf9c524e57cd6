//! The processor time of a trace: each loop untraced and traced in turn, medians of several rounds, and their ratio.
//!
//! Both loops only make such calls; a program that does other work in between loses less.
//!
//! `cargo run --release -p memprof-native --example cost`

#[path = "../tests/support/mod.rs"]
mod support;

use memprof_native::{Scope, Trace};
use support::{Rounds, Workshop};

const ROUNDS: usize = 31;

fn main() {
    let shop = Workshop::new();
    let work = shop.work("work", &["-O2", "-Wl,-z,now,-z,relro"]);
    ratio("1-byte pipe, write and read", "fd", work.get("pipe_rounds"), 20_000);
    ratio("malloc, fill, free", "memory", work.get("malloc_rounds"), 500_000);
    let bare = Trace::begin(&["fd", "memory"], Scope::Thread).expect("a trace");
    time("a trace inside another one", 10_000, || {
        drop(Trace::begin(&["fd", "memory"], Scope::Thread))
    });
    drop(bare);
    time("a trace that installs and restores", 200, || {
        drop(Trace::begin(&["fd", "memory"], Scope::Thread))
    });
}

fn ratio(what: &str, tracer: &str, run: Rounds, times: i32) {
    let measure = || {
        let begun = now();
        // SAFETY: a function of the library, with that type.
        unsafe { run(times) };
        (now() - begun) / f64::from(times)
    };
    measure();
    let (mut untraced, mut traced) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        untraced.push(measure());
        let trace = Trace::begin(&[tracer], Scope::Thread).expect("a trace");
        traced.push(measure());
        drop(trace);
    }
    let (untraced, traced) = (median(untraced), median(traced));
    println!(
        "{what}: {untraced:.1} ns untraced, {traced:.1} ns with `{tracer}`, ratio {:.3}",
        traced / untraced
    );
}

fn time(what: &str, times: u32, action: impl Fn()) {
    let begun = now();
    (0..times).for_each(|_| action());
    println!("{what}: {:.2} us", (now() - begun) / 1e3 / f64::from(times));
}

/// Nanoseconds of CPU time of this thread, which exclude other processes on a busy machine.
fn now() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a clock that every Linux has, and room for its time.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

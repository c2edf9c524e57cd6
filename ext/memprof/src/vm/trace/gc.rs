//! `gc`: GCs by the thread they ran on, their reasons, and the times of their phases.
//!
//! A GC runs in steps (ENTER to EXIT), which may be far apart and on different threads; a step belongs to the thread that it
//! paused.

use std::borrow::Cow;
use std::ffi::CStr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use memprof_native::Node;
use rb_sys::{VALUE, rb_trace_arg_t};

use super::counter_owners::{Owner, Owners};
use super::counting::{Counting, Own, Place, State};
use super::cpu::Cpu;
use super::{fields, symbol};
use crate::vm::event::Event;
use crate::vm::event_hook::EventHook;
use crate::vm::ruby_thread::current_thread;

const START: u32 = rb_sys::RUBY_INTERNAL_EVENT_GC_START;
const END_MARK: u32 = rb_sys::RUBY_INTERNAL_EVENT_GC_END_MARK;
const END_SWEEP: u32 = rb_sys::RUBY_INTERNAL_EVENT_GC_END_SWEEP;
const ENTER: u32 = rb_sys::RUBY_INTERNAL_EVENT_GC_ENTER;
const EXIT: u32 = rb_sys::RUBY_INTERNAL_EVENT_GC_EXIT;

/// The counters, and the progress of the current GC.
pub static COUNTING: Counting<Counters, Progress> = Counting::new(
    EventHook::new(START | END_MARK | END_SWEEP | ENTER | EXIT, event),
    Progress { phase: Phase::Mark, step: None, since: None },
);

/// Progress of a GC.
pub struct Progress {
    phase: Phase,
    /// Start of the step, by both clocks.
    step: Option<(Instant, Cpu)>,
    /// Start of the phase, or its continuation in this step.
    since: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Mark,
    Sweep,
}

/// The counters of one owner.
#[derive(Clone, Default)]
pub struct Counters {
    calls: u64,
    minor: u64,
    major: u64,
    time: Duration,
    mark: Duration,
    sweep: Duration,
    user: Duration,
    system: Duration,
    /// By the symbol that the VM returns as the reason; such symbols are never collected.
    reasons: Vec<(VALUE, u64)>,
    major_reasons: Vec<(VALUE, u64)>,
}

/// Symbols to query the VM for the reasons.
struct Keys {
    by: VALUE,
    major_by: VALUE,
}

static KEYS: OnceLock<Keys> = OnceLock::new();

/// Queries once outside of a GC, which makes the VM create its result symbols.
pub fn init() {
    let keys = KEYS.get_or_init(|| Keys { by: symbol(c"gc_by"), major_by: symbol(c"major_by") });
    // SAFETY: called with the GVL; asked with a symbol, the VM answers with another.
    unsafe { rb_sys::rb_gc_latest_gc_info(keys.by) };
}

/// A snapshot of the counters, which go on counting.
pub struct Mark(Place<Counters, Progress>);

impl Mark {
    /// Starts counting.
    pub fn new(owner: Owner) -> Self {
        Mark(COUNTING.follow(owner, |_| ()))
    }

    /// Stops counting and returns the counts.
    pub fn finish(self) -> Grown {
        let grown = self.0.finish(|now, then, _| now.since(then));
        Grown(grown.unwrap_or_default())
    }
}

unsafe extern "C" fn event(_data: VALUE, arg: *mut rb_trace_arg_t) {
    // A panic must not cross into C; just one count is lost.
    drop(std::panic::catch_unwind(|| {
        // SAFETY: `arg` is valid for the duration of the hook.
        let kind = unsafe { Event::of(arg).kind() };
        collection(kind);
    }));
}

fn collection(kind: u32) {
    let mut guard = COUNTING.lock();
    let State { owners, own, .. } = &mut *guard;
    if owners.is_empty() {
        return;
    }
    let thread = current_thread() as VALUE;
    match kind {
        START => {
            own.end_phase(owners, thread);
            own.phase = Phase::Mark;
            let reasons = Reasons::now();
            owners.count(thread, |counters| counters.started(&reasons));
        }
        ENTER => {
            let now = Instant::now();
            own.step = Some((now, Cpu::now()));
            own.since = Some(now);
        }
        END_MARK => {
            own.end_phase(owners, thread);
            own.phase = Phase::Sweep;
        }
        END_SWEEP => own.end_phase(owners, thread),
        _ => {
            own.end_phase(owners, thread);
            own.end_step(owners, thread);
        }
    }
}

impl Own for Progress {
    /// A step in progress will have no end.
    fn rest(&mut self) {
        self.step = None;
        self.since = None;
    }
}

impl Progress {
    fn end_phase(&mut self, owners: &mut Owners<Counters>, thread: VALUE) {
        let now = Instant::now();
        if let Some(since) = self.since.replace(now) {
            let (phase, time) = (self.phase, now - since);
            owners.count(thread, |counters| match phase {
                Phase::Mark => counters.mark += time,
                Phase::Sweep => counters.sweep += time,
            });
        }
    }

    fn end_step(&mut self, owners: &mut Owners<Counters>, thread: VALUE) {
        self.since = None;
        if let Some((began, cpu)) = self.step.take() {
            let (time, (user, system)) = (began.elapsed(), Cpu::now().since(cpu));
            owners.count(thread, |counters| {
                counters.time += time;
                counters.user += user;
                counters.system += system;
            });
        }
    }
}

/// Reasons of a GC.
struct Reasons {
    by: VALUE,
    /// nil for a minor GC.
    major_by: VALUE,
}

impl Reasons {
    fn now() -> Self {
        let nil = rb_sys::Qnil as VALUE;
        let Some(keys) = KEYS.get() else {
            return Reasons { by: nil, major_by: nil };
        };
        // SAFETY: asked with a symbol, the VM reads a number and answers with a symbol that `init` had it make.
        unsafe {
            Reasons {
                by: rb_sys::rb_gc_latest_gc_info(keys.by),
                major_by: rb_sys::rb_gc_latest_gc_info(keys.major_by),
            }
        }
    }
}

fn add(reasons: &mut Vec<(VALUE, u64)>, reason: VALUE) {
    match reasons.iter_mut().find(|(known, _)| *known == reason) {
        Some((_, count)) => *count += 1,
        None => reasons.push((reason, 1)),
    }
}

impl Counters {
    fn started(&mut self, reasons: &Reasons) {
        self.calls += 1;
        add(&mut self.reasons, reasons.by);
        if reasons.major_by == rb_sys::Qnil as VALUE {
            self.minor += 1;
        } else {
            self.major += 1;
            add(&mut self.major_reasons, reasons.major_by);
        }
    }

    fn since(mut self, then: &Counters) -> Counters {
        self.calls -= then.calls;
        self.minor -= then.minor;
        self.major -= then.major;
        self.time -= then.time;
        self.mark -= then.mark;
        self.sweep -= then.sweep;
        self.user -= then.user;
        self.system -= then.system;
        // New reasons are appended, so known ones keep their index.
        for (now, then) in (self.reasons.iter_mut()).zip(&then.reasons) {
            now.1 -= then.1;
        }
        for (now, then) in (self.major_reasons.iter_mut()).zip(&then.major_reasons) {
            now.1 -= then.1;
        }
        self
    }
}

/// Growth of the counters.
pub struct Grown(Counters);

impl Grown {
    /// The tracer's report.
    pub fn report(&self) -> Node {
        let counters = &self.0;
        let seconds = |time: Duration| Node::Seconds(time.as_secs_f64());
        fields([
            ("calls", Node::Count(counters.calls)),
            ("time", seconds(counters.time)),
            ("utime", seconds(counters.user)),
            ("stime", seconds(counters.system)),
            ("minor", Node::Count(counters.minor)),
            ("major", Node::Count(counters.major)),
            ("mark_time", seconds(counters.mark)),
            ("sweep_time", seconds(counters.sweep)),
            ("reasons", named(&counters.reasons)),
            ("major_reasons", named(&counters.major_reasons)),
        ])
    }
}

fn named(reasons: &[(VALUE, u64)]) -> Node {
    let named = (reasons.iter())
        .filter(|(_, count)| *count > 0)
        .map(|(reason, count)| (Cow::from(name(*reason)), Node::Count(*count)));
    Node::Map(named.collect())
}

/// Called with the GVL, outside of a GC.
fn name(reason: VALUE) -> String {
    let symbol =
        rb_sys::StableApiDefinition::static_sym_p(rb_sys::stable_api::get_default(), reason);
    if !symbol {
        return "unknown".into();
    }
    // SAFETY: a symbol that is an immediate; its name is a C string that the VM keeps.
    unsafe {
        let name = rb_sys::rb_id2name(rb_sys::rb_sym2id(reason));
        CStr::from_ptr(name).to_string_lossy().into_owned()
    }
}

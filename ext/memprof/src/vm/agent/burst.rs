//! Bursts: for a short time at a random moment every allocation is seen, and some are recorded.
//!
//! A thread outside of Ruby draws the moments ([`super::timer`]). From Ruby 3.3 on it asks for a postponed job, which adds or
//! removes the hook at the next safe point: a stretch of code between two safe points is recorded with the same probability,
//! however long it is. Up to 3.2 such a job can't be asked for from outside safely (Bug #19991), and any hook slows down all
//! allocations; so there the hook stays in the VM's list, and [`super::gate`] opens and closes the way to it.
//!
//! The estimator: a moment of the program is in a burst with a probability that is proportional to L / C, where L is how long
//! the program ran in the burst, without the time that the hook took, and C the mean time from one burst to the next when this
//! one was drawn. So a sample has the weight R * C * (LENGTH / L) * gap. L is known at the end of the burst only, when the
//! weights are corrected. R is the same for all: the objects that the program has allocated, by the VM's own count, for each
//! that earlier bursts have seen. Sums of an interval are scaled to the VM's count (`memprof_profile::samples`, which also has
//! the errors and the literature). What the hook takes is measured for each sample, and for other allocations at the start
//! ([`calibrate`]): were it not subtracted, lines that allocate densely would be seen less often than others.
//!
//! Within a burst the gap between samples grows with their number, so that a burst never takes long.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use memprof_profile::samples::{Sample, State};
use memprof_profile::sites::{Site, SiteId};
use rb_sys::{VALUE, rb_trace_arg_t};

use super::{Agent, gate, timer, with};
use crate::vm::classes;
use crate::vm::event::Event;
use crate::vm::event_hook::EventHook;
use crate::vm::origin::Origin;
use crate::vm::protect::protect;
use crate::vm::ruby_object::{self, Flags};
use crate::vm::tracker;

/// Samples per second to aim at, and in a burst. Further ones of the same burst hardly make estimates better, as they are alike.
const PER_SECOND: f64 = 1000.0;
const PER_BURST: f64 = 12.0;

/// Samples of a burst after which the gap is doubled, again and again.
const STEP: u32 = 32;

/// Nanoseconds that the hook takes for an allocation that is not recorded, with the VM's way to it.
static CALL: AtomicU64 = AtomicU64::new(15);

/// Possible values of it: a measurement may be disturbed.
const CALLS: std::ops::RangeInclusive<u64> = 3..=100;

/// Seconds that a recording may take beyond eight times the mean: the system may run other programs meanwhile.
const PATIENCE: f64 = 10e-6;

/// The hook of bursts.
pub static HOOK: EventHook = EventHook::new(rb_sys::RUBY_INTERNAL_EVENT_NEWOBJ, event);

/// Whether a job switches the hook on and off, or else the gate.
pub const BY_JOB: bool = cfg!(ruby_gte_3_3);

/// Whether the hook is added for a burst; changes with the GVL only.
static ADDED: AtomicBool = AtomicBool::new(false);

/// The burst last seen by the hook.
static SEEN: AtomicU32 = AtomicU32::new(0);

/// Allocations to skip before one is recorded. Only the hook changes it, one call at a time.
static SKIP: AtomicU32 = AtomicU32::new(0);

/// Progress of bursts.
#[derive(Debug)]
pub struct Progress {
    number: u32,
    /// Seconds from one burst to the next.
    cycle: f64,
    /// How many objects a sample stands for, apart from the gap and the length of the burst.
    ratio: f64,
    /// Mean number of allocations from one sample to the next.
    gap: u32,
    samples: u32,
    /// Allocations to be seen until the next sample is taken, including it.
    allocations: u64,
    /// Allocations seen that are already counted in `within`.
    counted: u64,
    /// Mean number of allocations in a burst.
    mean: f64,
    /// Mean seconds that the hook takes to record one.
    recording: f64,
    /// Objects allocated by the program so far, when the burst began.
    total: usize,
    /// Objects allocated from burst to burst, and objects seen in bursts, times their corrections and cycles: sums in which
    /// older bursts count less and less.
    between: f64,
    within: f64,
}

/// Allocations in bursts that the share of time counts for, until the ratio was measured.
const PRIOR: f64 = 1000.0;

/// How much the sums retain from one burst to the next.
const RETAINED: f64 = 1.0 - 1.0 / 256.0;

static TOTAL: OnceLock<VALUE> = OnceLock::new();

/// Objects allocated so far.
pub fn allocated() -> usize {
    // SAFETY: with a symbol, the VM reads a counter; it interned its names when `prepare` called this first.
    TOTAL.get().map_or(0, |key| unsafe { rb_sys::rb_gc_stat(*key) } as usize)
}

impl Default for Progress {
    fn default() -> Self {
        Progress {
            number: 0,
            cycle: 0.0,
            ratio: 1.0,
            gap: 1,
            samples: 0,
            allocations: 0,
            counted: 0,
            mean: 1000.0,
            recording: 5e-6,
            total: 0,
            between: 0.0,
            within: 0.0,
        }
    }
}

/// Prepares switching.
///
/// # Errors
/// If this VM has not the layout that the gate needs.
pub fn prepare() -> Result<(), String> {
    // SAFETY: called with the GVL, outside hooks; interns a name of ASCII, so that the symbol is never collected.
    TOTAL.get_or_init(|| unsafe {
        let name = c"total_allocated_objects";
        rb_sys::rb_id2sym(rb_sys::rb_intern2(name.as_ptr(), name.count_bytes() as _))
    });
    allocated();
    SEEN.store(timer::burst(), Ordering::Relaxed);
    if !BY_JOB {
        gate::prepare()?;
    }
    calibrate();
    Ok(())
}

/// Measures what the hook takes for an allocation that is not recorded. Not beside the timer.
fn calibrate() {
    const ROUNDS: usize = 12;
    const OBJECTS: usize = 64;
    let time = || {
        let began = Instant::now();
        // SAFETY: called with the GVL, outside hooks; the allocator of Object has no conditions.
        let outcome = protect(|| unsafe {
            (0..OBJECTS).fold(0 as VALUE, |_, _| rb_sys::rb_obj_alloc(rb_sys::rb_cObject))
        });
        outcome.map_or(Duration::MAX, |_| began.elapsed())
    };
    let began = Instant::now();
    let (mut without, mut with) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        without = without.min(time());
        SKIP.store(u32::MAX, Ordering::Relaxed);
        timer::want(true);
        if BY_JOB {
            HOOK.add();
        } else {
            gate::open();
        }
        with = with.min(time());
        timer::want(false);
        if BY_JOB {
            HOOK.remove();
        } else {
            gate::close();
        }
        // Under GC.stress, say.
        if began.elapsed() > Duration::from_millis(20) {
            break;
        }
    }
    SKIP.store(0, Ordering::Relaxed);
    let call = with.saturating_sub(without).as_nanos() as u64 / OBJECTS as u64;
    CALL.store(call.clamp(*CALLS.start(), *CALLS.end()), Ordering::Relaxed);
}

/// Nanoseconds of hooks that were owed for allocations that this burst has not seen.
pub fn unseen() -> u64 {
    CALL.load(Ordering::Relaxed) * u64::from(SKIP.load(Ordering::Relaxed))
}

/// Ends a burst in progress for good.
pub fn rest() {
    if BY_JOB {
        if ADDED.swap(false, Ordering::Relaxed) {
            HOOK.remove();
        }
    } else {
        gate::rest();
    }
}

/// The hook was lost, or suspended.
pub fn restore() {
    if !BY_JOB {
        gate::restore();
    }
}

/// Switches the hook to what the timer wants. Called in the postponed job.
pub fn job() {
    if !BY_JOB {
        return;
    }
    let wanted = timer::is_wanted() && !super::broken();
    if ADDED.swap(wanted, Ordering::Relaxed) != wanted {
        if wanted { HOOK.add() } else { HOOK.remove() }
    }
}

/// Whether the timer must ask for a job to end the burst.
pub fn is_added() -> bool {
    ADDED.load(Ordering::Relaxed)
}

unsafe extern "C" fn event(_data: VALUE, arg: *mut rb_trace_arg_t) {
    if super::broken() {
        return;
    }
    if !BY_JOB && !timer::is_wanted() {
        gate::close();
        return;
    }
    let left = SKIP.load(Ordering::Relaxed);
    let burst = timer::burst();
    if left > 0 && SEEN.load(Ordering::Relaxed) == burst {
        SKIP.store(left - 1, Ordering::Relaxed);
        return;
    }
    let outcome = std::panic::catch_unwind(|| {
        // SAFETY: `arg` is valid for the duration of the hook.
        let event = unsafe { Event::of(arg) };
        with(|agent| agent.seen(event, burst));
    });
    if outcome.is_err() {
        super::fail();
    }
}

impl Agent {
    /// An allocation that begins a burst, or is to be recorded.
    fn seen(&mut self, event: Event, burst: u32) {
        let began = Instant::now();
        if SEEN.load(Ordering::Relaxed) != burst {
            self.begin(burst);
            SEEN.store(burst, Ordering::Relaxed);
            let gap = self.next_gap();
            if gap > 0 {
                SKIP.store(gap - 1, Ordering::Relaxed);
                self.owe(began, gap);
                return;
            }
        }
        self.record(event, began);
        let gap = self.next_gap();
        SKIP.store(gap, Ordering::Relaxed);
        self.owe(began, gap + 1);
    }

    /// The hook was busy since `began`, and will be called for `allocations`, this one included.
    fn owe(&mut self, began: Instant, allocations: u32) {
        let recording = &mut self.burst.recording;
        let took = began.elapsed().as_secs_f64().min(8.0 * *recording + PATIENCE);
        *recording += (took - *recording) / 64.0;
        let calls = CALL.load(Ordering::Relaxed) * u64::from(allocations);
        timer::owe((took * 1e9) as u64 + calls);
    }

    /// What the last burst has seen so far is complete, or an interval ends: corrects its weights.
    pub fn finish_burst(&mut self) {
        let state = &mut self.burst;
        // The next sample itself was not seen yet.
        let left = u64::from(SKIP.load(Ordering::Relaxed)) + 1;
        let seen = state.allocations.saturating_sub(left);
        let new = seen.saturating_sub(state.counted) as f64;
        state.counted = seen;
        let correction = timer::correction(state.number);
        state.within += new * correction * state.cycle;
        self.samples.end_burst(correction, Some(new * correction * state.ratio));
    }

    fn begin(&mut self, burst: u32) {
        self.finish_burst();
        let state = &mut self.burst;
        let cycle = timer::cycle();
        let total = allocated();
        if state.total == 0 {
            // The share of time is a good guess.
            let length = timer::LENGTH.as_secs_f64();
            (state.between, state.within) = (PRIOR * cycle / length, PRIOR * cycle);
        } else {
            state.mean += (state.counted as f64 - state.mean) / 8.0;
            let passed = total.saturating_sub(state.total) as f64;
            state.between = (state.between + passed) * RETAINED;
            state.within *= RETAINED;
        }
        state.total = total;
        let wanted = (PER_SECOND * cycle).clamp(1.0, PER_BURST);
        state.number = burst;
        state.cycle = cycle;
        state.ratio = (state.between / state.within.max(f64::MIN_POSITIVE) * cycle).max(1.0);
        state.gap = ((state.mean / wanted) as u32).max(1);
        state.samples = 0;
        state.allocations = 0;
        state.counted = 0;
        self.choice.set_interval(state.gap);
    }

    fn next_gap(&mut self) -> u32 {
        let gap = self.choice.gap();
        self.burst.allocations += u64::from(gap) + 1;
        gap
    }

    fn record(&mut self, event: Event, now: Instant) {
        let object = event.object();
        // SAFETY: the new object: flags and class word are set.
        let (flags, class) = unsafe { (Flags::of(object), ruby_object::class_word(object)) };
        let weight = (self.burst.ratio * f64::from(self.burst.gap)) as f32;
        self.burst.samples += 1;
        if self.burst.samples % STEP == 0 {
            self.burst.gap = self.burst.gap.saturating_mul(2).min(1 << 24);
            self.choice.set_interval(self.burst.gap);
        }
        if tracker::with(|tracker| tracker.is_quiet()).unwrap_or(true) {
            return;
        }
        if let Some(site) = self.site(event, flags, classes::key(flags, class)) {
            self.samples.take(
                object,
                Sample {
                    site,
                    burst: self.burst.number,
                    weight,
                    bytes: ruby_object::slot_size(object),
                    allocated_at: now.duration_since(self.started).as_secs_f32(),
                    state: State::New,
                },
            );
        } else {
            self.samples.forget(object);
        }
    }

    /// The site of an allocation; `None` if it is memprof's own.
    fn site(&mut self, event: Event, flags: Flags, class: u64) -> Option<SiteId> {
        let position = if tracker::ractors_seen() { None } else { event.position() };
        let node = position.and_then(|_| self.frames.node(event, self.stack));
        let origin = self.frames.stack(&mut self.sites, self.stack, event, node);
        let Origin::Program(found) = origin else {
            return None;
        };
        let (class, _) = self.classes.id(&mut self.sites, &mut self.identities, flags, class);
        let site = Site { class, place: found.place, stack: found.stack, caller: None };
        Some(self.sites.site(site))
    }
}

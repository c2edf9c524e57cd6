//! Bursts: for a short time at a random moment every allocation is seen, and some are recorded.
//!
//! A thread outside of Ruby draws the moments ([`super::timer`]). From Ruby 3.3 on it asks for a postponed job, which adds or
//! removes the hook at the next safe point: a stretch of code between two safe points is recorded with the same probability,
//! however long it is. Up to 3.2 such a job can't be asked for from outside safely (Bug #19991), and any hook slows down all
//! allocations; so there the hook stays in the VM's list, and [`super::gate`] opens and closes the way to it.
//!
//! The weight of a sample is fixed by what happened before: the objects that the program allocated for each one in earlier
//! bursts, by the VM's own count, and the gap between samples in this one. Within a burst the gap grows with the number of samples, so that a burst never takes long.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Instant;

use memprof_profile::samples::{Sample, State};
use memprof_profile::sites::{Site, SiteId};
use rb_sys::{VALUE, rb_trace_arg_t};

use super::{Agent, gate, timer, with};
use crate::vm::classes;
use crate::vm::event::Event;
use crate::vm::event_hook::EventHook;
use crate::vm::origin::Origin;
use crate::vm::ruby_object::{self, Flags};
use crate::vm::tracker;

/// Samples per second to aim at.
const BUDGET: f64 = 1000.0;

/// Samples of a burst after which the gap is doubled, again and again.
const STEP: u32 = 64;

/// Nanoseconds that the hook takes for an allocation that is not recorded.
const CALL: u64 = 15;

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
    /// How many objects a sample stands for, apart from the gap.
    ratio: f64,
    /// Mean number of allocations from one sample to the next.
    gap: u32,
    samples: u32,
    /// Allocations to be seen until the next sample is taken, including it.
    allocations: u64,
    /// Mean number of allocations in a burst.
    mean: f64,
    /// Objects allocated by the program so far, when the burst began.
    total: usize,
    /// Objects allocated from burst to burst, and in bursts: sums in which older bursts count less and less.
    between: f64,
    within: f64,
}

/// Allocations in bursts that the share of time counts for, until the ratio was measured.
const PRIOR: f64 = 1000.0;

/// How much the sums retain from one burst to the next.
const RETAINED: f64 = 1.0 - 1.0 / 256.0;

static TOTAL: OnceLock<VALUE> = OnceLock::new();

/// Objects allocated so far.
fn allocated() -> usize {
    // SAFETY: with a symbol, the VM reads a counter; it interned its names when `prepare` called this first.
    TOTAL.get().map_or(0, |key| unsafe { rb_sys::rb_gc_stat(*key) } as usize)
}

impl Default for Progress {
    fn default() -> Self {
        Progress {
            number: 0,
            ratio: 1.0,
            gap: 1,
            samples: 0,
            allocations: 0,
            mean: 1000.0,
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
    if BY_JOB { Ok(()) } else { gate::prepare() }
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
                return;
            }
        }
        self.record(event, began);
        let took = began.elapsed();
        self.busy += took;
        let gap = self.next_gap();
        SKIP.store(gap, Ordering::Relaxed);
        // A burst lasts longer by the time that the hook takes: otherwise less of the program would be seen.
        timer::owe(took.as_nanos() as u64 + CALL * u64::from(gap));
    }

    fn begin(&mut self, burst: u32) {
        let left = u64::from(SKIP.load(Ordering::Relaxed));
        let state = &mut self.burst;
        let seen = state.allocations.saturating_sub(left);
        state.mean += (seen as f64 - state.mean) / 8.0;
        let (ratio, cycle) = timer::plan();
        let total = allocated();
        if state.total == 0 {
            // The share of time is a good guess, but the system may run other programs when the timer wakes up.
            (state.between, state.within) = (ratio * PRIOR, PRIOR);
        } else {
            let passed = total.saturating_sub(state.total) as f64;
            state.between = state.between * RETAINED + passed;
            state.within = state.within * RETAINED + seen as f64;
        }
        state.total = total;
        let wanted = (BUDGET * cycle).max(1.0);
        state.number = burst;
        state.ratio = (state.between / state.within.max(1.0)).max(1.0);
        state.gap = ((state.mean / wanted) as u32).max(1);
        state.samples = 0;
        state.allocations = 0;
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

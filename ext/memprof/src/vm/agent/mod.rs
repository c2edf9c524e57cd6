//! The always-on sampler: objects allocated in short bursts at random moments, and which of them are alive.
//!
//! It works beside sessions, and neither sees the other: it has its own tables, entered like the tracker ([`with`]). Its hook
//! for allocations is on for a hundredth of the time ([`burst`]), and no hook reports frees: after each marking [`alive`] drops
//! the addresses that are not marked. The rules at the head of [`super`] apply.

pub mod alive;
pub mod burst;
mod gate;
mod measure;
mod timer;

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use memprof_profile::profile::Meta;
use memprof_profile::sampler::Sampler;
use memprof_profile::samples::{Estimates, Samples};
use memprof_profile::sites::Sites;

use super::classes::Classes;
use super::frames::Frames;
use super::identities::Identities;
use super::tracker;

pub use gate::forbid;
pub use timer::after_fork_in_child;

/// Maximum number of live samples.
const MOST_LIVE: usize = 1 << 14;

/// Bytes of frames and sites above which they are rebuilt: what is needed is found again.
const MOST_BYTES: usize = 2 << 20;

/// All state of the sampler.
pub struct Agent {
    samples: Samples,
    sites: Sites,
    frames: Frames,
    classes: Classes,
    identities: Identities,
    /// Frames to record of each stack.
    stack: usize,
    /// Chooses objects within a burst.
    choice: Sampler,
    burst: burst::Progress,
    gc: alive::Progress,
    started: Instant,
    interval: Interval,
}

/// The start of the current interval.
struct Interval {
    started_at: SystemTime,
    began: Instant,
    /// Values of counters then.
    gc_time: Duration,
    cost: Duration,
    collections: usize,
    allocated: usize,
}

/// The results of an interval.
pub struct Ended {
    /// The estimates.
    pub estimates: Estimates,
    /// When it began, in seconds since the epoch.
    pub started_at: f64,
    /// Seconds.
    pub duration: f64,
    /// Seconds spent in GCs.
    pub gc_time: f64,
    /// CPU seconds spent by the sampler.
    pub cpu: f64,
    /// Bytes of its tables.
    pub memory: usize,
}

struct Global(UnsafeCell<Option<Box<Agent>>>);

// SAFETY: the contents are touched only inside `enter`, which lets one thread in at a time.
unsafe impl Sync for Global {}

static AGENT: Global = Global(UnsafeCell::new(None));

/// 0, or the thread inside.
static OWNER: AtomicUsize = AtomicUsize::new(0);

/// Set when a hook has failed, and must do nothing any more.
static BROKEN: AtomicBool = AtomicBool::new(false);

struct Leave;

impl Drop for Leave {
    fn drop(&mut self) {
        OWNER.store(0, Ordering::Release);
    }
}

/// Enters the state; `None` if this thread is already inside. Nobody inside waits for another thread, so neither does this.
fn enter<T>(work: impl FnOnce(&mut Option<Box<Agent>>) -> T) -> Option<T> {
    // SAFETY: pthread_self has no conditions; the result is not 0 on any supported platform.
    let me = unsafe { libc::pthread_self() as usize };
    if OWNER.load(Ordering::Relaxed) == me {
        return None;
    }
    while OWNER.compare_exchange_weak(0, me, Ordering::Acquire, Ordering::Relaxed).is_err() {
        std::thread::yield_now();
    }
    let _leave = Leave;
    // SAFETY: OWNER says that this thread alone is inside.
    Some(work(unsafe { &mut *AGENT.0.get() }))
}

/// Calls `work` with the sampler's state; `None` if it does not run, or if this thread is already inside. `work` neither
/// allocates a Ruby object nor runs Ruby code.
pub fn with<T>(work: impl FnOnce(&mut Agent) -> T) -> Option<T> {
    enter(|agent| agent.as_mut().map(|agent| work(agent))).flatten()
}

/// True if a hook has failed, so that nothing is sampled any more.
pub fn broken() -> bool {
    BROKEN.load(Ordering::Relaxed)
}

/// Ends sampling after a panic in a hook.
fn fail() {
    BROKEN.store(true, Ordering::Relaxed);
}

/// Whether the sampler runs.
pub fn is_running() -> bool {
    enter(|agent| agent.is_some()).unwrap_or(false)
}

/// Starts sampling: `share` of the time, or less if that costs more than the share `budget` of the program's CPU time, with
/// stacks of `stack` frames. False if it already runs.
///
/// # Errors
/// If this VM has not the layout that was expected.
pub fn start(share: f64, stack: usize, budget: f64) -> Result<bool, String> {
    if is_running() {
        return Ok(false);
    }
    alive::prepare()?;
    let seed = tracker::seed();
    BROKEN.store(false, Ordering::Relaxed);
    let now = Instant::now();
    enter(|agent| {
        *agent = Some(Box::new(Agent {
            samples: Samples::new(MOST_LIVE, seed),
            sites: Sites::default(),
            frames: Frames::default(),
            classes: Classes::default(),
            identities: Identities::default(),
            stack,
            choice: Sampler::new(seed.rotate_left(17)),
            burst: burst::Progress::default(),
            gc: alive::Progress::now(),
            started: now,
            interval: Interval {
                started_at: SystemTime::now(),
                began: now,
                gc_time: Duration::ZERO,
                cost: timer::cost(),
                collections: alive::collections(),
                allocated: 0,
            },
        }));
    });
    alive::HOOK.add();
    let ready = burst::prepare().and_then(|()| {
        with(|agent| agent.interval.allocated = burst::allocated());
        timer::start(share, budget, seed.rotate_left(31))
    });
    if let Err(why) = ready {
        stop();
        return Err(why);
    }
    Ok(true)
}

/// Stops sampling, and frees everything. False if it does not run.
pub fn stop() -> bool {
    timer::stop();
    burst::rest();
    alive::HOOK.remove();
    enter(|agent| agent.take().is_some()).unwrap_or(false)
}

/// Ends an interval, and begins the next one. `meta` lacks times. `None` if the sampler does not run.
pub fn interval(meta: Meta) -> Option<Ended> {
    measure::name_frames();
    let lost = with(|agent| agent.gc.has_missed(agent.interval.collections));
    if lost? || alive::HOOK.is_suspended() {
        // The VM has not called the hooks: up to Ruby 3.4 it drops them when a Ractor is freed (Bug #19112).
        alive::HOOK.remove();
        alive::HOOK.add();
        burst::restore();
        with(Agent::forget_addresses);
    }
    with(|agent| {
        let now = Instant::now();
        let (cost, allocated) = (timer::cost(), burst::allocated());
        let seconds = now.duration_since(agent.interval.began).as_secs_f64();
        let started_at = agent.interval.started_at.duration_since(UNIX_EPOCH).unwrap_or_default();
        measure::sizes(agent, usize::MAX);
        let (gc_time, collections) = (agent.gc.time(), alive::collections());
        let meta = Meta {
            started_at: started_at.as_secs_f64(),
            duration: seconds,
            stack: agent.stack as u32,
            gc_count: collections.wrapping_sub(agent.interval.collections) as u64,
            pid: std::process::id(),
            ..meta
        };
        let total = allocated.wrapping_sub(agent.interval.allocated) as u64;
        agent.finish_burst();
        let age = now.duration_since(agent.started).as_secs_f32();
        let ended = Ended {
            started_at: meta.started_at,
            duration: seconds,
            gc_time: gc_time.saturating_sub(agent.interval.gc_time).as_secs_f64(),
            cpu: cost.saturating_sub(agent.interval.cost).as_secs_f64(),
            memory: agent.memsize(),
            estimates: agent.samples.end_interval(&agent.sites, age, Some(total), meta),
        };
        agent.make_room();
        agent.interval = Interval {
            started_at: SystemTime::now(),
            began: now,
            gc_time,
            cost,
            collections,
            allocated,
        };
        ended
    })
}

impl Agent {
    fn memsize(&self) -> usize {
        self.samples.memsize() + self.sites.memsize() + self.frames.memsize()
    }

    /// Rebuilds sites and frames if they have become large: sites without samples are not needed any more.
    fn make_room(&mut self) {
        if self.sites.memsize() + self.frames.memsize() < MOST_BYTES {
            return;
        }
        self.frames.restart();
        self.classes = Classes::default();
        let unnamed: Vec<_> = self.frames.unnamed.iter().map(|(_, id)| *id).collect();
        let kept = self.sites.keep(self.samples.sites(), unnamed.into_iter());
        self.samples.renumber(&kept.by_site);
        for (_, id) in &mut self.frames.unnamed {
            *id = kept.by_frame.get(id).copied().unwrap_or(*id);
        }
        self.sites = kept.sites;
    }

    /// Frees in the meantime are unknown.
    fn forget_addresses(&mut self) {
        self.samples.forget_all();
        self.frames.forget_known();
        self.classes = Classes::default();
        self.gc.forget();
    }
}

/// Marks what the VM must not move or free. Called in a mark function.
pub fn mark() {
    with(|agent| {
        for object in agent.frames.pinned() {
            // SAFETY: in a mark function; the object was alive when it was noted and has been marked since.
            unsafe { rb_sys::rb_gc_mark(object) };
        }
    });
}

/// Objects moved. Called in a compact function.
pub fn relocate(moved: impl Fn(u64) -> Option<u64>) {
    with(|agent| {
        agent.samples.relocate(&moved);
        agent.frames.relocate(&moved);
        agent.classes.relocate(&moved);
    });
}

/// Runs in the postponed job.
pub fn job() {
    burst::job();
    measure::name_frames();
    with(|agent| {
        let began = Instant::now();
        measure::sizes(agent, measure::PER_JOB);
        timer::spend(began.elapsed());
    });
}

/// Runs in the child of a fork, before any Ruby code. Only uses atomics, and the sampler's state if no thread was inside.
pub fn after_fork() {
    timer::forked();
    let inside = OWNER.swap(0, Ordering::Relaxed) != 0;
    if inside {
        // Another thread of the parent was changing it.
        fail();
        return;
    }
    // SAFETY: there is no other thread, and none was inside.
    let agent = unsafe { &mut *AGENT.0.get() };
    if let Some(agent) = agent.as_mut() {
        let seed = tracker::seed();
        agent.samples.reseed(seed);
        agent.choice.reseed(seed.rotate_left(17));
    }
}

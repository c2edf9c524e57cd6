//! The thread that draws the moments of bursts. It never touches Ruby objects, and Ruby does not know it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use memprof_profile::pace::Pace;
use memprof_profile::sampler::Sampler;

use super::{burst, gate};
use crate::vm::postponed_job;

/// Length of a burst.
pub const LENGTH: Duration = Duration::from_micros(200);

/// Bursts without work of the program after which they become rarer.
const IDLE: u32 = 8;

/// Share of the time in which a program has to run to be at work. Bursts that nothing was allocated in don't count: a call of C
/// has no safe point, however much it allocates, and code that follows it must be seen as often as any other.
const AT_WORK: f64 = 0.02;

/// Times by which they become rarer at most, as a power of two.
const RAREST: u32 = 4;

/// The pace changes after so many bursts, or after this time.
const BURSTS: u32 = 32;
const PATIENCE: Duration = Duration::from_secs(5);

/// Share of a CPU that a program counts as using at least: of one that does next to nothing, any cost would be a large share.
const LEAST_WORK: f64 = 0.1;

/// Whether there is a burst.
static WANTED: AtomicBool = AtomicBool::new(false);

/// Number of the current burst, or the last one.
static BURST: AtomicU32 = AtomicU32::new(0);

/// Mean seconds from one burst to the next, when this one was drawn: bits of an f64.
static CYCLE: AtomicU64 = AtomicU64::new(0);

/// The last burst that has ended: its number, and the nanoseconds that the program ran in it, 32 bits each.
static ENDED: AtomicU64 = AtomicU64::new(0);

/// Nanoseconds that hooks took in this burst.
static DEBT: AtomicU64 = AtomicU64::new(0);

/// Nanoseconds that hooks and jobs took so far.
static SPENT: AtomicU64 = AtomicU64::new(0);

/// CPU nanoseconds of this thread, and those before it.
static CPU: AtomicU64 = AtomicU64::new(0);

/// The running thread, if any. Only locked with the GVL.
static TIMER: Mutex<Option<Timer>> = Mutex::new(None);

struct Timer {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
    share: f64,
    budget: f64,
    pid: u32,
}

#[derive(Default)]
struct Shared {
    stopped: Mutex<bool>,
    wake: Condvar,
}

impl Shared {
    /// Waits so long; true if the thread has to end.
    fn wait(&self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        while !*stopped {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let woken = self.wake.wait_timeout(stopped, left);
            stopped = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

/// Whether there is a burst.
#[inline(always)]
pub fn is_wanted() -> bool {
    WANTED.load(Ordering::Relaxed)
}

/// Number of the burst.
#[inline(always)]
pub fn burst() -> u32 {
    BURST.load(Ordering::Relaxed)
}

/// Mean seconds from one burst to the next, when this one was drawn.
pub fn cycle() -> f64 {
    f64::from_bits(CYCLE.load(Ordering::Relaxed))
}

/// A factor for what this burst has seen: the usual length, compared with its own. 1 as long as that is unknown.
pub fn correction(burst: u32) -> f64 {
    let ended = ENDED.load(Ordering::Relaxed);
    if (ended >> 32) as u32 != burst || burst == 0 {
        return 1.0;
    }
    // Of a burst that the hook filled almost, the rest is not known well.
    let length = (ended as u32).max(LENGTH.as_nanos() as u32 / 16);
    LENGTH.as_nanos() as f64 / f64::from(length)
}

/// Switches the hook on or off while no timer runs.
pub fn want(wanted: bool) {
    WANTED.store(wanted, Ordering::Release);
}

/// Something other than the hook of bursts took so long.
pub fn spend(time: Duration) {
    SPENT.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
}

/// The hook took this many nanoseconds.
pub fn owe(nanoseconds: u64) {
    DEBT.store(DEBT.load(Ordering::Relaxed) + nanoseconds, Ordering::Relaxed);
}

/// Time of the thread, hooks and jobs.
pub fn cost() -> Duration {
    Duration::from_nanos(CPU.load(Ordering::Relaxed) + SPENT.load(Ordering::Relaxed))
}

/// Starts the thread. Bursts take `share` of the time, or less if they cost more than the share `budget` of the program's CPU
/// time.
///
/// # Errors
/// If the system has no thread for it.
pub fn start(share: f64, budget: f64, seed: u64) -> Result<(), String> {
    static AT_EXIT: std::sync::Once = std::sync::Once::new();
    unsafe extern "C" fn at_exit(_: *mut rb_sys::ruby_vm_t) {
        stop();
    }
    // SAFETY: called with the GVL; the function is never unloaded before the VM ends.
    AT_EXIT.call_once(|| unsafe { rb_sys::ruby_vm_at_exit(Some(at_exit)) });
    let shared = Arc::new(Shared::default());
    let theirs = Arc::clone(&shared);
    let thread = without_signals(|| {
        let thread = std::thread::Builder::new().name("memprof-agent".into());
        thread.stack_size(128 * 1024).spawn(move || run(&theirs, share, budget, seed))
    });
    let thread = thread.map_err(|error| format!("no thread: {error}"))?;
    let timer = Timer { shared, thread, share, budget, pid: std::process::id() };
    *TIMER.lock().unwrap_or_else(PoisonError::into_inner) = Some(timer);
    Ok(())
}

/// Calls `work` while all signals are blocked: a thread started in it never handles one of the program's.
fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    let mut before = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: both sets are valid; sigfillset initializes the first, and pthread_sigmask the second.
    unsafe {
        let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let result = work();
    // SAFETY: the mask that was there before.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    result
}

/// Ends the thread, and waits for that.
pub fn stop() {
    let timer = TIMER.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(timer) = timer else { return };
    if timer.pid != std::process::id() {
        // The parent's: there is no such thread here.
        std::mem::forget(timer);
        return;
    }
    *timer.shared.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
    timer.shared.wake.notify_all();
    drop(timer.thread.join());
    WANTED.store(false, Ordering::Relaxed);
}

/// Starts the thread again in the child of a fork, if the parent has one.
///
/// # Errors
/// If the system has no thread for it.
pub fn after_fork_in_child() -> Result<(), String> {
    let timer = TIMER.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(timer) = timer else { return Ok(()) };
    let (share, budget) = (timer.share, timer.budget);
    std::mem::forget(timer);
    start(share, budget, crate::vm::tracker::seed())
}

/// Runs in the child of a fork, before any Ruby code; only sets atomics.
pub fn forked() {
    WANTED.store(false, Ordering::Relaxed);
    CPU.store(0, Ordering::Relaxed);
    SPENT.store(0, Ordering::Relaxed);
    gate::forked();
}

/// Means of what the system's timers do, over the last bursts.
struct Means {
    /// Seconds that a burst takes.
    length: f64,
    /// Seconds by which a wait takes longer than asked for.
    late: f64,
}

/// Clocks in nanoseconds, from which the pace is set.
struct Looked {
    at: Instant,
    /// CPU time of the process.
    process: u64,
    /// CPU time of this thread, hooks and jobs.
    cost: u64,
}

impl Looked {
    fn now() -> Self {
        Looked {
            at: Instant::now(),
            process: time_of(libc::CLOCK_PROCESS_CPUTIME_ID),
            cost: cost().as_nanos() as u64,
        }
    }

    /// Seconds, of the clock and of the program's CPU time, and those that the sampler took of the latter.
    fn since(&self, before: &Looked) -> (f64, f64, f64) {
        let cost = self.cost.saturating_sub(before.cost);
        let worked = self.process.saturating_sub(before.process).saturating_sub(cost);
        let passed = self.at.duration_since(before.at).as_secs_f64();
        (passed, worked as f64 / 1e9, cost as f64 / 1e9)
    }
}

fn run(shared: &Shared, share: f64, budget: f64, seed: u64) {
    precise();
    let mut random = Sampler::new(seed);
    let mut means = Means { length: LENGTH.as_secs_f64(), late: 0.0 };
    let gap = LENGTH.as_secs_f64() * (1.0 - share) / share;
    let mut idle = 0;
    let mut looked = Looked::now();
    let (mut pace, mut judged, mut bursts) = (Pace::default(), Looked::now(), 0);
    loop {
        let mean = gap * pace.slower() * f64::from(1u32 << (idle / IDLE).min(RAREST));
        let wanted = mean * random.exponential();
        let began = Instant::now();
        if shared.wait(Duration::from_secs_f64(wanted)) {
            return;
        }
        let cycle = mean + means.late.max(0.0) + means.length;
        let late = began.elapsed().as_secs_f64() - wanted;
        means.late += (late - means.late) / 64.0;
        let (length, ended) = one_burst(shared, cycle);
        means.length += (length - means.length) / 64.0;
        CPU.store(time_of(libc::CLOCK_THREAD_CPUTIME_ID), Ordering::Relaxed);
        let now = Looked::now();
        let (passed, worked, _) = now.since(&looked);
        idle = if worked > AT_WORK * passed { 0 } else { idle + 1 };
        bursts += 1;
        if bursts >= BURSTS || now.at.duration_since(judged.at) > PATIENCE {
            let (passed, worked, cost) = now.since(&judged);
            pace.measured(cost, budget * worked.max(LEAST_WORK * passed));
            (judged, bursts) = (Looked::now(), 0);
        }
        looked = now;
        if ended || super::broken() {
            return;
        }
    }
}

/// One burst; returns how long it took, and whether the thread has to end.
fn one_burst(shared: &Shared, cycle: f64) -> (f64, bool) {
    CYCLE.store(cycle.to_bits(), Ordering::Relaxed);
    DEBT.store(0, Ordering::Relaxed);
    // Not 0, which stands for none.
    BURST.store(burst().wrapping_add(1).max(1), Ordering::Release);
    let began = Instant::now();
    want(true);
    if burst::BY_JOB {
        postponed_job::request();
    } else {
        gate::open();
    }
    let ended = shared.wait(LENGTH);
    want(false);
    let took = began.elapsed();
    let debt = DEBT.load(Ordering::Relaxed).saturating_sub(burst::unseen());
    SPENT.fetch_add(debt, Ordering::Relaxed);
    let ran = (took.as_nanos() as u64).saturating_sub(debt).min(u64::from(u32::MAX));
    ENDED.store((u64::from(burst()) << 32) | ran, Ordering::Release);
    if burst::BY_JOB && burst::is_added() {
        postponed_job::request();
    }
    (took.as_secs_f64(), ended)
}

/// Asks the system not to wake this thread late in order to save energy.
fn precise() {
    #[cfg(target_os = "linux")]
    // SAFETY: changes only the calling thread's timers.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1000usize);
    }
}

/// CPU nanoseconds of the calling thread, or of the process.
fn time_of(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the time, or fails.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

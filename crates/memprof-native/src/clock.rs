//! The clock that times calls.
//!
//! Reading a clock twice per call makes up most of a trace's cost. So where the kernel itself trusts the processor's
//! counter, this reads the counter, and finds its rate by comparing it with the system's clock.

use std::fs;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Nanoseconds to compare the counter for, at least, before keeping the result: 1 part in a million.
const ENOUGH: u64 = 100_000_000;

static IS_COUNTER_USED: AtomicBool = AtomicBool::new(false);
/// Readings of both clocks when the first trace began.
static ANCHOR: OnceLock<(u64, u64)> = OnceLock::new();
/// Nanoseconds per tick as the bits of a float; 0 until first needed.
static RATIO: AtomicU64 = AtomicU64::new(0);
static IS_SETTLED: AtomicBool = AtomicBool::new(false);

/// Must be called before anything is timed.
pub(crate) fn prepare() {
    ANCHOR.get_or_init(|| {
        IS_COUNTER_USED.store(is_trusted(), Relaxed);
        (nanoseconds(), now())
    });
}

/// Ticks. Keeps `errno`, and may be called in a signal handler.
#[inline(always)]
pub(crate) fn now() -> u64 {
    if IS_COUNTER_USED.load(Relaxed) { counter() } else { nanoseconds() }
}

/// Ticks since an earlier moment; the counters of different processors may differ by a few.
#[inline(always)]
pub(crate) fn since(begun: u64) -> u64 {
    now().saturating_sub(begun)
}

/// Converts ticks to seconds, as precisely as [`settle`] has measured.
pub(crate) fn seconds(ticks: u64) -> f64 {
    let ratio = match RATIO.load(Relaxed) {
        0 => 1.0,
        bits => f64::from_bits(bits),
    };
    ticks as f64 * ratio / 1e9
}

/// Measures the length of a tick; must be called before times are reported. The longer ago the first trace began, the more
/// exact the result, until it is final.
pub(crate) fn settle() {
    if !IS_COUNTER_USED.load(Relaxed) || IS_SETTLED.load(Relaxed) {
        return;
    }
    let Some(&(time, ticks)) = ANCHOR.get() else {
        return;
    };
    let (passed, counted) = (nanoseconds() - time, since(ticks));
    RATIO.store((passed.max(1) as f64 / counted.max(1) as f64).to_bits(), Relaxed);
    IS_SETTLED.store(passed >= ENOUGH, Relaxed);
}

/// Whether the kernel found that the counter runs steadily and in sync on all processors.
fn is_trusted() -> bool {
    let wanted = if cfg!(target_arch = "x86_64") { "tsc" } else { "arch_sys_counter" };
    let used =
        fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    used.is_ok_and(|used| used.trim() == wanted)
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn counter() -> u64 {
    // SAFETY: every x86-64 has the counter, and the kernel lets programs read it if its own clock is based on it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn counter() -> u64 {
    let ticks;
    // SAFETY: Linux lets programs read the counter: its own clock is based on it.
    unsafe {
        std::arch::asm!("mrs {ticks}, cntvct_el0", ticks = out(reg) ticks, options(nostack, nomem))
    };
    ticks
}

#[inline]
fn nanoseconds() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a timespec to write to, and every Linux has this clock, so the call cannot fail.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn ticks_have_the_length_that_seconds_assumes() {
        prepare();
        let (begun, instant) = (now(), Instant::now());
        std::thread::sleep(Duration::from_millis(120));
        let (ticks, passed) = (since(begun), instant.elapsed().as_secs_f64());
        settle();
        let measured = seconds(ticks);
        assert!((measured / passed - 1.0).abs() < 0.01, "{measured} of {passed} seconds");
        assert_eq!(seconds(0), 0.0);
    }
}

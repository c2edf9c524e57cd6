//! CPU time, which is less than elapsed time if other threads or processes run, too.

use std::time::Duration;

/// CPU time of a thread so far.
#[derive(Clone, Copy)]
pub struct Cpu {
    /// Total, exact.
    total: Duration,
    /// System part of it, which the system counts in ticks.
    system: Duration,
}

impl Cpu {
    /// CPU time of the calling thread; if the system has no times per thread, the system part is that of the process.
    pub fn now() -> Self {
        #[cfg(target_os = "linux")]
        const WHO: libc::c_int = libc::RUSAGE_THREAD;
        #[cfg(not(target_os = "linux"))]
        const WHO: libc::c_int = libc::RUSAGE_SELF;
        // SAFETY: all zeroes are a valid rusage and a valid timespec, and the functions fill them in.
        let (usage, clock) = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            let mut clock: libc::timespec = std::mem::zeroed();
            libc::getrusage(WHO, &raw mut usage);
            libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut clock);
            (usage, clock)
        };
        let system = usage.ru_stime;
        Cpu {
            total: Duration::new(clock.tv_sec as u64, clock.tv_nsec as u32),
            system: Duration::from_secs(system.tv_sec as u64)
                + Duration::from_micros(system.tv_usec as u64),
        }
    }

    /// User and system time since then. The sum is exact, even below a tick.
    pub fn since(self, then: Cpu) -> (Duration, Duration) {
        let total = self.total.saturating_sub(then.total);
        let system = self.system.saturating_sub(then.system).min(total);
        (total - system, system)
    }
}

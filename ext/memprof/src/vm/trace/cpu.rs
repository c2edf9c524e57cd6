//! How long the processor worked, which is less than what passed where others run, too.

use std::time::Duration;

/// What a thread has taken of the processor so far.
#[derive(Clone, Copy)]
pub struct Cpu {
    /// In all, exactly.
    total: Duration,
    /// Of that, in the system for it. The system counts this in ticks.
    system: Duration,
}

impl Cpu {
    /// Of the calling thread; where the system does not tell threads apart, the part of the system is the process's.
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

    /// What was taken since: in the program, and in the system for it. The sum is exact, also of what is shorter than a
    /// tick.
    pub fn since(self, then: Cpu) -> (Duration, Duration) {
        let total = self.total.saturating_sub(then.total);
        let system = self.system.saturating_sub(then.system).min(total);
        (total - system, system)
    }
}

//! `resources`: the kernel's accounting of a thread or the process.

use std::fs;

use super::{Tracer, Whose};
use crate::Node;
use crate::report::map;

/// No hooks, so no counters.
pub(super) const CELLS: usize = 0;

/// The numbers in report order; the first two are times.
const NAMES: [&str; 9] = [
    "utime",
    "stime",
    "minor_faults",
    "major_faults",
    "voluntary_switches",
    "involuntary_switches",
    "inputs",
    "outputs",
    "signals",
];

pub(super) static TRACER: Tracer =
    Tracer { sample: Some(sample), ..Tracer::new("resources", &[], report) };

fn report(cells: &[u64]) -> Node {
    let entries = NAMES.iter().zip(cells).enumerate();
    map(entries
        .map(|(index, (&name, &count))| {
            let node =
                if index < 2 { Node::Seconds(count as f64 / 1e6) } else { Node::Count(count) };
            (name, node)
        })
        .collect())
}

fn sample(whose: Whose) -> Option<Vec<u64>> {
    match whose {
        Whose::All => usage(libc::RUSAGE_SELF),
        Whose::Own => usage(libc::RUSAGE_THREAD),
        Whose::Other(thread) => of_other_thread(thread),
    }
}

fn usage(who: libc::c_int) -> Option<Vec<u64>> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the structure is there to be written.
    if unsafe { libc::getrusage(who, usage.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: zeroes, or values written by the kernel: plain numbers.
    let usage = unsafe { usage.assume_init() };
    let microseconds = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    let counts = [
        usage.ru_minflt,
        usage.ru_majflt,
        usage.ru_nvcsw,
        usage.ru_nivcsw,
        usage.ru_inblock,
        usage.ru_oublock,
        usage.ru_nsignals,
    ];
    let times = [microseconds(usage.ru_utime), microseconds(usage.ru_stime)];
    Some(times.into_iter().chain(counts.map(|count| count as u64)).collect())
}

/// The usage of another thread: times are then as coarse as the kernel's clock tick.
fn of_other_thread(thread: u32) -> Option<Vec<u64>> {
    let read = |file: &str| fs::read_to_string(format!("/proc/self/task/{thread}/{file}")).ok();
    let stat = read("stat")?;
    // After the name, which may contain spaces and brackets.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    // SAFETY: takes a number, has no effect.
    let tick =
        u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok().filter(|&tick| tick > 0)?;
    let microseconds = |ticks: u64| ticks * 1_000_000 / tick;
    let (status, io) = (read("status")?, read("io").unwrap_or_default());
    let switches = |name: &str| named(&status, name);
    Some(vec![
        microseconds(field(14)?),
        microseconds(field(15)?),
        field(10)?,
        field(12)?,
        switches("voluntary_ctxt_switches")?,
        switches("nonvoluntary_ctxt_switches")?,
        named(&io, "read_bytes").unwrap_or(0) / 512,
        named(&io, "write_bytes").unwrap_or(0) / 512,
        0,
    ])
}

fn named(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(key, _)| *key == name)?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_asked_from_outside_says_about_the_same() {
        // SAFETY: takes no arguments, cannot fail.
        let thread = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
        let own = sample(Whose::Own).unwrap();
        let other =
            std::thread::spawn(move || sample(Whose::Other(thread)).unwrap()).join().unwrap();
        assert_eq!(own.len(), NAMES.len());
        assert_eq!(own.len(), other.len());
        let faults = 2;
        assert!(
            other[faults] >= own[faults] && other[faults] < own[faults] + 10_000,
            "{own:?} {other:?}"
        );
    }

    #[test]
    fn a_thread_that_has_ended() {
        let thread = std::thread::spawn(|| {
            // SAFETY: takes no arguments, cannot fail.
            unsafe { libc::syscall(libc::SYS_gettid) as u32 }
        });
        let thread = thread.join().unwrap();
        while std::path::Path::new(&format!("/proc/self/task/{thread}")).exists() {
            std::thread::yield_now();
        }
        assert_eq!(sample(Whose::Other(thread)), None);
    }
}

//! Finds the memory peak and its sites: see `memprof_profile::recorder`. The hook checks each GC start; the heap is walked
//! after the GC, in the postponed job.

use std::time::{SystemTime, UNIX_EPOCH};

use memprof_profile::profile::PeakFacts;
use memprof_profile::recorder::{Moment, Peak};
use memprof_profile::sessions::SessionId;

use super::{allocator, objspace, postponed_job, process, tracker};

const KIB: u64 = 1024;

/// Watches for the peak of a session.
pub fn watch(id: SessionId) {
    tracker::with(|tracker| tracker.recorder.watch_peak(id));
}

/// A GC starts: called in the hook, before anything is freed. With Ractors before Ruby 4.0, some frees are missed, and so no
/// peak is found.
pub fn collection_starts() {
    let watched = tracker::with(|tracker| tracker.recorder.watches_peaks()) == Some(true);
    if !watched || (tracker::ractors_seen() && !cfg!(ruby_gte_4_0)) {
        return;
    }
    let _errno = Errno::keep();
    let moment = Moment {
        slots: 0,
        malloc: allocator::statistics().map(|statistics| statistics.in_use() + statistics.mapped),
        resident: process::sizes().map(|sizes| sizes.resident * KIB),
        time: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64,
    };
    let wanted = tracker::with(|tracker| tracker.recorder.collection_starts(moment));
    if wanted == Some(true) {
        postponed_job::request();
    }
}

/// Preserves errno: a GC may start between a C library function and the check of its errno.
struct Errno(i32);

impl Errno {
    fn keep() -> Self {
        // SAFETY: the address of the thread's errno is always valid for the thread itself.
        Errno(unsafe { *Self::location() })
    }

    #[cfg(target_os = "linux")]
    fn location() -> *mut i32 {
        // SAFETY: has no conditions.
        unsafe { libc::__errno_location() }
    }

    #[cfg(not(target_os = "linux"))]
    fn location() -> *mut i32 {
        // SAFETY: has no conditions.
        unsafe { libc::__error() }
    }
}

impl Drop for Errno {
    fn drop(&mut self) {
        // SAFETY: as in `keep`.
        unsafe { *Self::location() = self.0 }
    }
}

/// Measures the objects noted at the start of a GC. Not to be called inside [`tracker::with`].
pub fn measure() {
    let sessions = tracker::with(|tracker| tracker.recorder.to_measure()).unwrap_or_default();
    for (session, generation) in sessions {
        // An exception here would recur; the program is not responsible for it.
        if let Ok(survivors) = objspace::survivors(session, Some(generation)) {
            tracker::with(|tracker| tracker.recorder.measured(session, &survivors));
        }
    }
}

/// The peak for a profile.
pub fn facts(peak: &Peak, started_at: SystemTime) -> PeakFacts {
    let Moment { slots, malloc, resident, time } = peak.moment;
    let started = started_at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut facts = PeakFacts {
        time: time.saturating_sub(started.as_micros() as u64) as f64 / 1e6,
        resident,
        // The kernel updates it later than the size itself.
        resident_ever: process::sizes()
            .and_then(|sizes| Some((sizes.resident_ever? * KIB).max(resident.unwrap_or(0)))),
        malloc,
        slots,
        objects: 0,
        bytes: 0,
    };
    for amount in peak.sites.values() {
        facts.objects += amount.objects;
        facts.bytes += amount.bytes;
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_resident_set_was_larger_than_the_largest() {
        let mut peak = Peak::default();
        peak.moment.resident = Some(1 << 60);
        let facts = facts(&peak, UNIX_EPOCH);
        assert!(!cfg!(target_os = "linux") || facts.resident_ever == Some(1 << 60));
    }
}

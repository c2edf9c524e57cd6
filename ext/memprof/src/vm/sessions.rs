//! Opening and closing sessions: the tracker's tables and the hook go together.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use memprof_profile::profile::{Meta, Profile};
use memprof_profile::recorder::StatsRow;
use memprof_profile::sessions::{Options, SessionId};

use super::tracker::{self, Facts, Tracker};
use super::{hooks, naming, objspace, symbols};

/// Opens a session; `by_thread` follows the calling thread and those that it starts.
pub fn open(by_thread: bool, sample: u32, stack: u32, strings: bool) -> SessionId {
    let thread = by_thread.then(hooks::current_thread);
    let now = now();
    let id = tracker::with(|tracker| {
        close_orphans(tracker);
        let id = tracker.recorder.open(Options {
            thread,
            sample,
            stack,
            strings,
        });
        changed(tracker);
        tracker.facts.insert(
            id,
            Facts {
                started_at: SystemTime::now(),
                started: now,
                ended: None,
            },
        );
        id
    });
    hooks::install();
    // The tracker is free outside hooks, so there is an id.
    id.unwrap_or(SessionId(0))
}

/// Sessions have changed, and with them cells and the sampling interval.
fn changed(tracker: &mut Tracker) {
    tracker.places.clear();
    tracker::set_skip(tracker.recorder.sample_gap());
    tracker::follow_threads(tracker.recorder.sessions.by_thread());
}

/// After a fork, sessions that followed threads of the parent have nobody to close them.
fn close_orphans(tracker: &mut Tracker) {
    let pid = std::process::id();
    if tracker.pid != pid {
        tracker.pid = pid;
        let current = hooks::current_thread();
        for id in tracker
            .recorder
            .sessions
            .orphans(|thread| thread == current)
        {
            tracker.recorder.close(id);
        }
    }
}

/// Ends a session's recording; deaths of its objects are still counted.
pub fn finish(id: SessionId) {
    let now = now();
    tracker::with(|tracker| {
        if tracker.recorder.finish(id) {
            changed(tracker);
            if let Some(facts) = tracker.facts.get_mut(&id) {
                facts.ended = Some(now);
            }
        }
    });
}

/// Forgets a session; with the last one, everything.
pub fn close(id: SessionId) {
    let last = tracker::with(|tracker| {
        tracker.recorder.close(id);
        changed(tracker);
        tracker.facts.remove(&id);
        tracker.recorder.sessions.is_empty()
    });
    if last == Some(true) {
        hooks::remove();
        tracker::with(Tracker::reset);
    }
}

/// Number of open sessions.
pub fn count() -> usize {
    tracker::with(|tracker| tracker.recorder.sessions.len()).unwrap_or(0)
}

/// Live objects by file, line and class.
pub fn stats(id: SessionId) -> Vec<StatsRow> {
    // Before Ruby 4.0 a hook is told only of what its own Ractor sweeps, so the heap is asked who lives.
    if tracker::ractors_seen() {
        drop(objspace::survivors(id));
    }
    tracker::with(|tracker| tracker.recorder.stats(id)).unwrap_or_default()
}

/// What the session saw, with the memsizes of what lives.
pub fn profile(
    id: SessionId,
    memprof: String,
    runtime: String,
    command: String,
) -> Option<Profile> {
    naming::name_frames();
    let survivors = objspace::survivors(id);
    let now = now();
    tracker::with(|tracker| {
        let options = tracker.recorder.sessions.options(id)?;
        let facts = tracker.facts.get(&id)?;
        let (end, collections) = facts.ended.unwrap_or(now);
        let meta = Meta {
            runtime,
            memprof,
            pid: std::process::id(),
            command,
            started_at: facts
                .started_at
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default()
                .as_secs_f64(),
            duration: end.duration_since(facts.started.0).as_secs_f64(),
            sample: options.sample,
            stack: options.stack,
            gc_count: collections.saturating_sub(facts.started.1),
        };
        Some(tracker.recorder.profile(id, &survivors, meta))
    })?
}

fn now() -> (Instant, u64) {
    // SAFETY: reads a counter.
    (Instant::now(), unsafe { rb_sys::rb_gc_count() } as u64)
}

/// Bytes that the tracker takes.
pub fn memsize() -> usize {
    tracker::with(|tracker| tracker.recorder.memsize()).unwrap_or(0)
}

/// Name of the garbage collector, as "default".
pub fn gc_name() -> String {
    let name = symbols::symbols().active_gc_name.map(|active_gc_name| {
        // SAFETY: returns a static string.
        unsafe { std::ffi::CStr::from_ptr(active_gc_name()) }
            .to_string_lossy()
            .into_owned()
    });
    name.unwrap_or_else(|| "default".into())
}

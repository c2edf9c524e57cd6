//! Opens and closes sessions, and keeps the tracker's tables and the hook in sync.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use memprof_profile::profile::{Meta, Profile};
use memprof_profile::recorder::{CountRow, LiveSites, MarkRow, StatsRow, Survivors};
use memprof_profile::sessions::{Options, SessionId};

use rb_sys::VALUE;

use super::protect::Raised;
use super::tracker::{self, Facts, Tracker};
use super::{between_sessions, hooks, naming, objspace, peak, revealed, ruby_thread, symbols};

/// Opens a session; `by_thread` follows the calling thread and those it starts, `identities` distinguishes anonymous classes.
pub fn open(
    by_thread: bool,
    sample: u32,
    stack: u32,
    strings: bool,
    identities: bool,
) -> SessionId {
    let thread = by_thread.then(ruby_thread::current_thread);
    if hooks::HOOK.is_suspended() {
        check_hook();
    }
    let now = now();
    let id = tracker::with(|tracker| {
        close_orphans(tracker);
        let id = tracker.recorder.open(Options { thread, sample, stack, strings });
        tracker.facts.insert(
            id,
            Facts {
                started_at: SystemTime::now(),
                started: now,
                ended: None,
                incomplete: false,
                identities,
                lasting: false,
                older: None,
            },
        );
        changed(tracker);
        id
    });
    hooks::install();
    between_sessions::resume();
    // The tracker is free outside of hooks, so there is an id.
    id.unwrap_or(SessionId(0))
}

/// Marks the session as lasting as long as the program.
pub fn let_last(id: SessionId) {
    tracker::with(|tracker| {
        if let Some(facts) = tracker.facts.get_mut(&id) {
            facts.lasting = true;
        }
        changed(tracker);
    });
}

/// Whether the session is lasting.
pub fn lasts(id: SessionId) -> bool {
    tracker::with(|tracker| tracker.facts.get(&id).is_some_and(|facts| facts.lasting))
        .unwrap_or(false)
}

/// Sessions have changed, and with them cells and the sampling interval.
fn changed(tracker: &mut Tracker) {
    tracker.places.forget_cells();
    tracker::set_skip(tracker.recorder.sample_gap());
    tracker::follow_threads(tracker.recorder.sessions.by_thread());
    let wanted = tracker.facts.values().any(|facts| facts.identities);
    tracker.identities.set_wanted(wanted);
    // Callers are part of dumps, not of reports.
    tracker.wants_callers = (tracker.facts.values()).any(|facts| facts.lasting);
}

/// Closes the sessions that followed threads of the parent, after a fork.
fn close_orphans(tracker: &mut Tracker) {
    let pid = std::process::id();
    if tracker.pid != pid {
        tracker.pid = pid;
        let current = ruby_thread::current_thread();
        tracker.quiet.keep_only(current);
        for id in tracker.recorder.sessions.orphans(|thread| thread == current) {
            tracker.recorder.close(id);
        }
    }
}

/// Checks whether the VM still calls the hook. If not, all recording sessions lack the allocations since then.
fn check_hook() {
    if hooks::restore_if_lost() {
        tracker::with(|tracker| {
            // Frees in the meantime are unknown, too.
            between_sessions::forget_addresses(tracker);
            for facts in tracker.facts.values_mut() {
                facts.incomplete |= facts.ended.is_none();
            }
        });
    }
}

/// Whether the session lacks objects, as the VM did not call the hook for some time.
pub fn is_incomplete(id: SessionId) -> bool {
    tracker::with(|tracker| tracker.facts.get(&id).is_some_and(|facts| facts.incomplete))
        .unwrap_or(false)
}

/// Stops recording for a session; frees of its objects are still counted.
pub fn finish(id: SessionId) {
    check_hook();
    let now = now();
    tracker::with(|tracker| {
        if tracker.recorder.finish(id) {
            tracker.recorder.last_peak(id);
            changed(tracker);
            if let Some(facts) = tracker.facts.get_mut(&id) {
                facts.ended = Some(now);
            }
        }
    });
}

/// Closes a session; with the last one, drops everything except data that the next one may reuse.
pub fn close(id: SessionId) {
    let last = tracker::with(|tracker| {
        tracker.recorder.close(id);
        tracker.facts.remove(&id);
        changed(tracker);
        tracker.recorder.sessions.is_empty()
    });
    if last == Some(true) {
        hooks::remove();
        between_sessions::pause();
    }
}

/// Number of open sessions.
pub fn count() -> usize {
    tracker::with(|tracker| tracker.recorder.sessions.len()).unwrap_or(0)
}

/// Live objects by file, line and class.
///
/// # Errors
/// If the VM raised while the heap was read.
pub fn stats(id: SessionId) -> Result<Vec<StatsRow>, Raised> {
    check_hook();
    update(id)?;
    Ok(tracker::with(|tracker| tracker.recorder.stats(id)).unwrap_or_default())
}

/// [`stats`] as text, a line each, after `heading`.
///
/// # Errors
/// As [`stats`].
pub fn stats_text(id: SessionId, limit: Option<usize>, heading: &str) -> Result<String, Raised> {
    check_hook();
    update(id)?;
    let text = tracker::with(|tracker| tracker.recorder.stats_text(id, limit, heading));
    Ok(text.unwrap_or_default())
}

/// Objects by file, line and class, with anonymous classes distinguished; with retained amounts if `retained`, which walks the
/// heap.
///
/// # Errors
/// As [`stats`].
pub fn counts(id: SessionId, retained: bool) -> Result<Vec<CountRow>, Raised> {
    check_hook();
    if !retained {
        update(id)?;
    }
    let survivors = if retained { objspace::survivors(id, None)? } else { Survivors::default() };
    Ok(tracker::with(|tracker| tracker.recorder.counts(id, &survivors)).unwrap_or_default())
}

/// The `most` sites with most bytes in objects that were alive at the last GC. Walks the heap.
///
/// # Errors
/// As [`stats`].
pub fn live_sites(id: SessionId, most: usize) -> Result<LiveSites, Raised> {
    check_hook();
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64;
    // Objects of the generation that this GC began may be garbage that no GC has seen.
    let before = (now().1 as u32).wrapping_sub(1);
    let survivors = objspace::survivors_into(id, Some(before), Survivors::aged(time))?;
    let answer = tracker::with(|tracker| tracker.recorder.live_sites(id, &survivors, most));
    Ok(answer.unwrap_or_default())
}

/// Sets the mark of the calling thread's allocations from now on (see [`memprof_profile::sessions`]), unless it is `None`;
/// returns the previous one.
pub fn mark(mark: Option<u32>) -> u32 {
    let thread = ruby_thread::current_thread();
    let before = tracker::with(|tracker| {
        let Some(mark) = mark else {
            return tracker.recorder.sessions.mark_of(thread);
        };
        let before = tracker.recorder.sessions.mark(thread, mark);
        tracker::follow_threads(tracker.recorder.sessions.by_thread());
        before
    });
    before.unwrap_or(0)
}

/// Objects by mark.
///
/// # Errors
/// As [`stats`].
pub fn marks(id: SessionId) -> Result<Vec<MarkRow>, Raised> {
    check_hook();
    let survivors = objspace::survivors(id, None)?;
    Ok(tracker::with(|tracker| tracker.recorder.marks(id, &survivors)).unwrap_or_default())
}

/// Index of the nearest of `modules` to the anonymous class with this number, if any (see [`CountRow`]).
pub fn nearest(identity: u32, modules: &[VALUE], exact: bool) -> Option<usize> {
    tracker::with(|tracker| tracker.identities.nearest(identity, modules, exact)).flatten()
}

/// Before Ruby 4.0 a hook only sees objects swept by its own Ractor, so a heap walk finds the live ones. Objects that got their
/// class by now are counted under it.
fn update(id: SessionId) -> Result<(), Raised> {
    if tracker::ractors_seen() {
        drop(objspace::survivors(id, None)?);
    } else {
        tracker::with(revealed::look);
    }
    Ok(())
}

/// The results of the session, with the memsizes of live objects; `None` if it is closed.
///
/// # Errors
/// As [`stats`].
pub fn profile(
    id: SessionId,
    memprof: String,
    runtime: String,
    command: String,
) -> Result<Option<Profile>, Raised> {
    check_hook();
    naming::name_frames();
    peak::measure();
    let survivors = objspace::survivors(id, None)?;
    let now = now();
    let profile = tracker::with(|tracker| {
        let options = tracker.recorder.sessions.options(id)?;
        let facts = tracker.facts.get(&id)?;
        let (end, collections) = facts.ended.unwrap_or(now);
        let meta = Meta {
            runtime,
            memprof,
            pid: std::process::id(),
            command,
            directory: std::env::current_dir()
                .map(|path| path.to_string_lossy().into_owned())
                .unwrap_or_default(),
            started_at: facts
                .started_at
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default()
                .as_secs_f64(),
            duration: end.duration_since(facts.started.0).as_secs_f64(),
            sample: options.sample,
            malloc_sample: None,
            stack: options.stack,
            gc_count: collections.saturating_sub(facts.started.1),
            incomplete: facts.incomplete,
            peak: (tracker.recorder.peak(id)).map(|peak| peak::facts(peak, facts.started_at)),
        };
        Some(tracker.recorder.profile(id, &survivors, meta))
    });
    Ok(profile.flatten())
}

fn now() -> (Instant, u64) {
    // SAFETY: reads a counter.
    (Instant::now(), unsafe { rb_sys::rb_gc_count() } as u64)
}

/// Memory size of the tracker in bytes.
pub fn memsize() -> usize {
    tracker::with(|tracker| tracker.memsize()).unwrap_or(0)
}

/// Name of the GC implementation, such as "default".
pub fn gc_name() -> String {
    let name = symbols::symbols().active_gc_name.map(|active_gc_name| {
        // SAFETY: returns a static string.
        unsafe { std::ffi::CStr::from_ptr(active_gc_name()) }.to_string_lossy().into_owned()
    });
    name.unwrap_or_else(|| "default".into())
}

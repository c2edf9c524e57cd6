//! The only tracker of the process, and exclusive access to it.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use memprof_profile::recorder::Recorder;
use memprof_profile::sessions::SessionId;
use rb_sys::VALUE;
use rustc_hash::FxHashMap;

use super::classes::Classes;
use super::contents::OldContainers;
use super::frames::Frames;
use super::identities::Identities;
use super::places::Places;
use super::quiet::Quiet;
use super::ruby_thread::current_thread;

/// All state of tracking.
pub struct Tracker {
    /// Counts and live objects.
    pub recorder: Recorder,
    /// Known frames of the VM.
    pub frames: Frames,
    /// Known classes of the VM.
    pub classes: Classes,
    /// Anonymous classes, if some session distinguishes them.
    pub identities: Identities,
    /// Cells by place.
    pub places: Places,
    /// Whether some session records the application line that called a library.
    pub wants_callers: bool,
    /// Start and end of sessions.
    pub facts: FxHashMap<SessionId, Facts>,
    /// The process in which sessions were opened.
    pub pid: u32,
    /// Threads whose allocations are currently not recorded.
    pub quiet: Quiet,
    /// Objects allocated without a class that may have one by now (see [`super::revealed`]).
    pub hidden: Vec<VALUE>,
    /// When the last session was closed and the hook removed, if none is open.
    pub pause: Option<Pause>,
    /// The last GC whose garbage was dropped (see [`super::between_sessions`]).
    pub swept: Option<usize>,
}

/// Start and end of a session, and the GC count at these times.
pub struct Facts {
    /// Wall clock time of the start.
    pub started_at: SystemTime,
    /// The beginning.
    pub started: (Instant, u64),
    /// The end of recording.
    pub ended: Option<(Instant, u64)>,
    /// Whether the VM did not call the hook for some time, so that allocations are missing.
    pub incomplete: bool,
    /// Whether the session distinguishes anonymous classes.
    pub identities: bool,
    /// Whether the session is lasting: lines without live objects may be dropped.
    pub lasting: bool,
    /// Older containers, if contents were requested for the session.
    pub older: Option<OldContainers>,
}

/// When the last session was closed.
#[derive(Clone, Copy)]
pub struct Pause {
    /// The GC count at that time.
    pub collections: usize,
}

impl Tracker {
    /// True if the calling thread's allocations are currently not recorded.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        !self.quiet.is_empty() && self.quiet.contains(current_thread())
    }

    /// Total memory size in bytes.
    pub fn memsize(&self) -> usize {
        self.recorder.memsize() + self.frames.memsize() + self.places.memsize()
    }

    fn new() -> Self {
        Tracker {
            recorder: Recorder::new(seed()),
            frames: Frames::default(),
            classes: Classes::default(),
            identities: Identities::default(),
            places: Places::default(),
            wants_callers: false,
            pause: None,
            swept: None,
            facts: FxHashMap::default(),
            pid: std::process::id(),
            quiet: Quiet::default(),
            hidden: Vec::new(),
        }
    }
}

struct Global(UnsafeCell<Option<Tracker>>);

// SAFETY: the contents are touched only inside `with`, which lets one thread in at a time.
unsafe impl Sync for Global {}

static TRACKER: Global = Global(UnsafeCell::new(None));

/// 0, or the thread inside [`with`], or [`ALONE`].
static OWNER: AtomicUsize = AtomicUsize::new(0);

/// Some thread is inside; with a single Ractor, it does not matter which.
const ALONE: usize = 1;

/// Set when a second Ractor may run: then hooks run in parallel to other code, in spite of the GVL's name.
static RACTORS: AtomicBool = AtomicBool::new(false);

/// Allocations to skip before one is recorded. Only allocation hooks decrement it, one at a time (under the VM lock), so no
/// atomic exchange is needed.
static SKIP: AtomicU32 = AtomicU32::new(0);

/// Decrements the allocations to skip; true if this is one of them.
#[inline]
pub fn skip() -> bool {
    let left = SKIP.load(Ordering::Relaxed);
    if left > 0 {
        SKIP.store(left - 1, Ordering::Relaxed);
    }
    left > 0
}

/// Allocations still to skip.
pub fn allocations_to_skip() -> u32 {
    SKIP.load(Ordering::Relaxed)
}

/// Skips this many allocations.
#[inline]
pub fn set_skip(allocations: u32) {
    SKIP.store(allocations, Ordering::Relaxed);
}

/// Whether some session follows a thread, and those it starts.
static FOLLOWS_THREADS: AtomicBool = AtomicBool::new(false);

/// True if some session follows a thread.
#[inline]
pub fn follows_threads() -> bool {
    FOLLOWS_THREADS.load(Ordering::Relaxed)
}

/// Sets whether some session follows a thread.
pub fn follow_threads(follow: bool) {
    FOLLOWS_THREADS.store(follow, Ordering::Relaxed);
}

/// From now on several Ractors may run at once.
pub fn expect_ractors() {
    RACTORS.store(true, Ordering::Relaxed);
}

/// True if several Ractors may have run.
pub fn ractors_seen() -> bool {
    RACTORS.load(Ordering::Relaxed)
}

/// Calls `work` with the tracker; `None` if this thread is already inside, as in a hook run by code that breaks the rule at the
/// head of [`super`].
#[inline]
pub fn with<T>(work: impl FnOnce(&mut Tracker) -> T) -> Option<T> {
    if RACTORS.load(Ordering::Relaxed) {
        if !enter() {
            return None;
        }
    } else if OWNER.load(Ordering::Relaxed) != 0 {
        return None;
    } else {
        OWNER.store(ALONE, Ordering::Relaxed);
    }
    let _leave = Leave;
    // SAFETY: OWNER says that this thread alone is inside: with one Ractor the GVL keeps others out and the check above
    // keeps this thread from entering twice; with several, the exchange does.
    let tracker = unsafe { &mut *TRACKER.0.get() };
    match tracker {
        Some(tracker) => Some(work(tracker)),
        None => Some(work(create(tracker))),
    }
}

/// Enters while other Ractors may be inside; false if this thread is.
#[cold]
fn enter() -> bool {
    // SAFETY: pthread_self has no conditions; the result is neither 0 nor ALONE on any supported platform.
    let me = unsafe { libc::pthread_self() as usize };
    if OWNER.load(Ordering::Relaxed) == me {
        return false;
    }
    while OWNER.compare_exchange_weak(0, me, Ordering::Acquire, Ordering::Relaxed).is_err() {
        std::thread::yield_now();
    }
    true
}

#[cold]
fn create(tracker: &mut Option<Tracker>) -> &mut Tracker {
    tracker.get_or_insert_with(Tracker::new)
}

struct Leave;

impl Drop for Leave {
    fn drop(&mut self) {
        OWNER.store(0, Ordering::Release);
    }
}

/// Runs in the child of a fork, whose only thread is not inside [`with`], even if a thread of the parent was. The child samples
/// other objects than its parent and its siblings. Only uses atomics and the tracker, and allocates nothing.
pub fn after_fork() {
    let inside = OWNER.swap(0, Ordering::Relaxed) != 0;
    // SAFETY: there is no other thread, and if none was inside, the tracker is whole.
    let tracker = unsafe { &mut *TRACKER.0.get() };
    if let Some(tracker) = tracker.as_mut().filter(|_| !inside) {
        tracker.recorder.reseed(seed());
        set_skip(tracker.recorder.sample_gap());
    }
}

/// Calls `work`; allocations of this thread are not recorded meanwhile. Called with the GVL, not inside [`with`].
pub fn suspended<T>(work: impl FnOnce() -> T) -> T {
    struct Resume;
    impl Drop for Resume {
        fn drop(&mut self) {
            with(|tracker| tracker.quiet.leave(current_thread()));
        }
    }
    with(|tracker| tracker.quiet.enter(current_thread()));
    let _resume = Resume;
    work()
}

/// A number unique to this process: random bits from the system, or else from clock and process id. Allocates nothing: also
/// called in a forked child.
pub fn seed() -> u64 {
    let mut bytes = [0u8; 8];
    // SAFETY: writes that many bytes, or fails.
    if unsafe { libc::getentropy(bytes.as_mut_ptr().cast(), bytes.len()) } == 0 {
        return u64::from_ne_bytes(bytes);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_nanos() as u64 ^ u64::from(std::process::id()).rotate_left(40)
}

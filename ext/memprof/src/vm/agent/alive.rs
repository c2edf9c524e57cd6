//! Which sampled objects are alive: at the end of marking, before sweeping and compaction, each is marked or will be freed.
//!
//! The hook also measures the time of GCs. It runs during a GC, so it allocates nothing in the VM.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use rb_sys::{ID, VALUE, rb_trace_arg_t};

use super::{Agent, timer, with};
use crate::vm::event::Event;
use crate::vm::event_hook::EventHook;
use crate::vm::postponed_job;
use crate::vm::protect::protect;
use crate::vm::symbols::symbols;

const END_MARK: u32 = rb_sys::RUBY_INTERNAL_EVENT_GC_END_MARK;
const ENTER: u32 = rb_sys::RUBY_INTERNAL_EVENT_GC_ENTER;
const EXIT: u32 = rb_sys::RUBY_INTERNAL_EVENT_GC_EXIT;

/// Events of [`HOOK`].
pub const EVENTS: u32 = END_MARK | ENTER | EXIT;

/// The hook, which is on as long as the sampler runs.
pub static HOOK: EventHook = EventHook::new(EVENTS, event);

/// Progress of GCs.
#[derive(Clone, Copy)]
pub struct Progress {
    /// GCs begun before the last marking that the hook has seen ended.
    seen: usize,
    step: Option<Instant>,
    /// Time spent in GCs.
    time: Duration,
}

impl Progress {
    /// Nothing was seen yet.
    pub fn now() -> Self {
        Progress { seen: collections(), step: None, time: Duration::ZERO }
    }

    /// Everything before now is unknown, but the time.
    pub fn forget(&mut self) {
        *self = Progress { time: self.time, ..Progress::now() };
    }

    /// Time spent in GCs.
    pub fn time(&self) -> Duration {
        self.time
    }

    /// Whether the VM has run GCs without calling the hook since there were `collections`. One may be in progress.
    pub fn has_missed(&self, collections: usize) -> bool {
        self::collections().wrapping_sub(self.seen.max(collections)) > 1
    }
}

/// Number of GCs begun so far.
pub fn collections() -> usize {
    // SAFETY: reads a counter.
    unsafe { rb_sys::rb_gc_count() as usize }
}

/// Addresses to ask about, for a check of this VM, at the end of the next marking, and the answers.
struct Probe {
    alive: [VALUE; PROBES],
    dead: [VALUE; PROBES],
    result: Option<(usize, usize)>,
}

const PROBES: usize = 64;

/// 0 until this VM was checked, then 1 if its answers are right, or else 2.
static VERIFIED: AtomicU8 = AtomicU8::new(0);

static MARKED: OnceLock<ID> = OnceLock::new();

/// An object that is never freed, and has an id outside of itself. The last to be asked about, see [`is_marked`].
static ANCHOR: OnceLock<VALUE> = OnceLock::new();

/// Prepares what the hook needs.
///
/// # Errors
/// If this VM offers no way to ask whether an object is marked.
pub fn prepare() -> Result<(), String> {
    MARKED.get_or_init(|| {
        // SAFETY: called with the GVL, outside hooks; interns a name of ASCII.
        unsafe { rb_sys::rb_intern2(c"marked".as_ptr(), 6) }
    });
    let symbols = symbols();
    if cfg!(ruby_gte_4_0) && symbols.gc_metadata.is_some() && ANCHOR.get().is_none() {
        // SAFETY: as above; an empty String, which the VM retains from now on.
        let anchor = protect(|| unsafe {
            let text = rb_sys::rb_str_new(c"".as_ptr(), 0);
            rb_sys::rb_gc_register_mark_object(text);
            rb_sys::rb_obj_id(text);
            text
        });
        let anchor = anchor.map_err(|raised| raised.to_string())?;
        ANCHOR.get_or_init(|| anchor);
    }
    // SAFETY: called with the GVL, before the hook can be called in a GC, where interning would allocate: the VM interns its names.
    protect(|| unsafe { is_marked(rb_sys::rb_cObject) }).map_err(|raised| raised.to_string())?;
    let known = symbols.marked_object_p.is_some()
        || (cfg!(not(ruby_gte_4_0)) && symbols.gc_flags.is_some())
        || (cfg!(ruby_gte_4_0) && symbols.gc_metadata.is_some());
    if known { Ok(()) } else { Err("it has no function that says what is marked".into()) }
}

/// Whether the object is marked. Called at the end of marking.
///
/// Up to 3.4 the VM's functions only read bits. `rb_gc_object_metadata` (read in gc/default/default.c, gc.c and variable.c of
/// 4.0.5) also calls `rb_obj_id` for an object that has an id. That allocates nothing, as the id exists; nothing is swept yet,
/// so its entry in the table of generic fields exists, and the VM lock is held by the GC, as is the barrier. But for a String or
/// Array, say, it leaves object and fields in a cache of the execution context. The GC has already cleared weak references, so a
/// dead object in there would be freed, and the next marking finds a free slot: `rb_bug`. Sweeping clears only the cache of the
/// thread that sweeps. Hence [`ANCHOR`], asked about last, replaces what is cached.
///
/// The answer is in a static array, which `ObjectSpace.dump` may be reading when its output starts a GC. Then that dump has the
/// flags of the anchor for one object; both arrays end with a name of 0.
///
/// # Safety
/// An object that was not freed before this GC.
unsafe fn is_marked(object: VALUE) -> bool {
    let symbols = symbols();
    let marked = MARKED.get().copied().unwrap_or_default();
    // SAFETY: guaranteed by the caller. The functions only read the object's bits: they have interned their names in
    // `prepare`, and the answers of the last one are in a static array that ends with a name of 0.
    unsafe {
        if let Some(marked_object_p) = symbols.marked_object_p {
            return marked_object_p(object) != 0;
        }
        if let Some(gc_flags) = symbols.gc_flags {
            let mut flags = [0 as ID; 8];
            let count = gc_flags(object, flags.as_mut_ptr(), flags.len());
            return flags.iter().take(count).any(|flag| *flag == marked);
        }
        if let Some(gc_metadata) = symbols.gc_metadata {
            let mut entry = gc_metadata(object);
            while (*entry).0 != 0 {
                if (*entry).0 == marked {
                    return true;
                }
                entry = entry.add(1);
            }
        }
    }
    false
}

unsafe extern "C" fn event(_data: VALUE, arg: *mut rb_trace_arg_t) {
    if super::broken() {
        return;
    }
    let outcome = std::panic::catch_unwind(|| {
        // SAFETY: `arg` is valid for the duration of the hook.
        let kind = unsafe { Event::of(arg).kind() };
        with(|agent| match kind {
            ENTER => agent.gc.step = Some(Instant::now()),
            EXIT => {
                if let Some(began) = agent.gc.step.take() {
                    agent.gc.time += began.elapsed();
                }
            }
            END_MARK => agent.marked(),
            _ => {}
        });
    });
    if outcome.is_err() {
        super::fail();
    }
}

impl Agent {
    /// Drops everything that is about to be freed.
    fn marked(&mut self) {
        let began = Instant::now();
        let collections = collections();
        // A GC whose end was not seen may have freed heap pages.
        if collections.wrapping_sub(self.gc.seen) > 1 {
            self.forget_addresses();
        }
        self.gc.seen = collections;
        // SAFETY: it was alive after the previous marking, or was allocated since; nothing was freed in between.
        let lives = |address: u64| unsafe { is_marked(address as VALUE) };
        self.samples.keep(lives);
        self.frames.keep(lives);
        self.classes.keep(lives);
        self.probe();
        if let Some(anchor) = ANCHOR.get() {
            // SAFETY: it is never freed.
            unsafe { is_marked(*anchor) };
        }
        if self.samples.has_unmeasured() {
            postponed_job::request();
        }
        timer::spend(began.elapsed());
    }

    fn probe(&mut self) {
        PROBE.with_borrow_mut(|probe| {
            if let Some(probe) = probe {
                let count = |objects: &[VALUE]| {
                    // SAFETY: objects allocated since the previous GC, so none of them is freed yet.
                    let marked = |object: &&VALUE| unsafe { is_marked(**object) };
                    objects.iter().filter(marked).count()
                };
                probe.result = Some((count(&probe.alive), count(&probe.dead)));
            }
        });
    }
}

thread_local! {
    static PROBE: std::cell::RefCell<Option<Probe>> = const { std::cell::RefCell::new(None) };
}

/// Whether the answers of this VM were already found right, or wrong.
pub fn verified() -> Option<bool> {
    match VERIFIED.load(Ordering::Relaxed) {
        0 => None,
        answer => Some(answer == 1),
    }
}

/// Prepares a check of the VM's answers: `alive` are referenced, most of `dead` are not. Both were just allocated. A GC comes
/// next.
pub fn expect(alive: &[VALUE], dead: &[VALUE]) {
    let (Ok(alive), Ok(dead)) = (alive.try_into(), dead.try_into()) else {
        return;
    };
    PROBE.set(Some(Probe { alive, dead, result: None }));
}

/// The result of the check. Some of the dead objects may seem to be referenced by what is left on the stack.
pub fn check() -> bool {
    let result = PROBE.take().and_then(|probe| probe.result);
    let right = result.is_some_and(|(alive, dead)| alive == PROBES && dead < PROBES / 2);
    VERIFIED.store(if right { 1 } else { 2 }, Ordering::Relaxed);
    right
}

//! `threads`: threads created, and waits for the GVL.
//!
//! The hook on waits (Ruby 3.2 and later) runs on native threads without the GVL, many at once, and a fork may happen at any
//! moment. So its counters are atomics in a table of fixed size: no lock, no allocation.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use memprof_native::Node;

use super::fields;
use crate::vm::symbols::{ThreadHook, symbols};

/// RUBY_INTERNAL_THREAD_EVENT_* in ruby/thread.h of 3.2 and later.
const READY: u32 = 1 << 1;
const RESUMED: u32 = 1 << 2;
const EXITED: u32 = 1 << 4;

/// Maximum number of threads with their own counters; waits of others count only for the process.
const SLOTS: usize = 1024;
/// Entries to probe for a thread.
const REACH: usize = 64;
const FREE: usize = 0;
/// Tombstone of a removed thread: another thread's entry may follow.
const LEFT: usize = 1;

struct Slot {
    thread: AtomicUsize,
    /// Start of its wait; 0 if it does not wait.
    ready: AtomicU64,
    waits: AtomicU64,
    nanoseconds: AtomicU64,
}

static TABLE: [Slot; SLOTS] = [const {
    Slot {
        thread: AtomicUsize::new(FREE),
        ready: AtomicU64::new(0),
        waits: AtomicU64::new(0),
        nanoseconds: AtomicU64::new(0),
    }
}; SLOTS];

static PROCESS_WAITS: AtomicU64 = AtomicU64::new(0);
static PROCESS_NANOSECONDS: AtomicU64 = AtomicU64::new(0);
static USERS: AtomicUsize = AtomicUsize::new(0);
/// The VM's handle for the hook.
static HOOK: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Waits and their time.
pub struct Waits {
    count: u64,
    time: Duration,
}

/// Has the VM report waits until it is dropped. `None` inside if this Ruby does not report them.
pub struct Listener(Option<u32>);

impl Listener {
    pub fn new() -> Self {
        let (Some(add), Some(_)) = (symbols().add_thread_hook, symbols().remove_thread_hook) else {
            return Listener(None);
        };
        if USERS.fetch_add(1, Ordering::Relaxed) == 0 {
            // SAFETY: called with the GVL, which also makes the count of users and the handle change together. `event` is
            // a callback of this type in all versions that have the function.
            let hook = unsafe { add(event, READY | RESUMED | EXITED, std::ptr::null_mut()) };
            HOOK.store(hook, Ordering::Relaxed);
        }
        Listener(Some(std::process::id()))
    }
}

impl Drop for Listener {
    /// In the child of a fork, the listener is the parent's.
    fn drop(&mut self) {
        if self.0 == Some(std::process::id()) && USERS.fetch_sub(1, Ordering::Relaxed) == 1 {
            ignore();
        }
    }
}

/// A snapshot of the counters, which go on counting.
pub struct Mark {
    listener: Listener,
    process: bool,
    then: (u64, u64),
}

impl Mark {
    /// Starts counting.
    pub fn new(process: bool) -> Self {
        let listener = Listener::new();
        Mark { then: listener.0.map_or((0, 0), |_| counted(process)), listener, process }
    }

    /// Stops counting and returns the counts; `None` if this Ruby does not report waits.
    pub fn finish(self) -> Option<Waits> {
        self.listener.0?;
        let now = counted(self.process);
        Some(Waits {
            count: now.0.saturating_sub(self.then.0),
            time: Duration::from_nanos(now.1.saturating_sub(self.then.1)),
        })
    }
}

/// Time that the calling thread has waited for the GVL while waits were reported.
pub fn waited() -> Duration {
    if symbols().add_thread_hook.is_none() {
        return Duration::ZERO;
    }
    let slot = known(current());
    Duration::from_nanos(slot.map_or(0, |slot| slot.nanoseconds.load(Ordering::Relaxed)))
}

/// Removes the hook of the parent's traces in the child of a fork.
pub fn remove_hook() {
    USERS.store(0, Ordering::Relaxed);
    ignore();
}

fn ignore() {
    let hook = HOOK.swap(std::ptr::null_mut(), Ordering::Relaxed);
    if let Some(remove) = symbols().remove_thread_hook.filter(|_| !hook.is_null()) {
        // SAFETY: the handle that adding the hook gave, used once.
        unsafe { remove(hook) };
    }
}

fn counted(process: bool) -> (u64, u64) {
    if process {
        return (
            PROCESS_WAITS.load(Ordering::Relaxed),
            PROCESS_NANOSECONDS.load(Ordering::Relaxed),
        );
    }
    slot(current()).map_or((0, 0), |slot| {
        (slot.waits.load(Ordering::Relaxed), slot.nanoseconds.load(Ordering::Relaxed))
    })
}

/// The tracer's report.
pub fn report(created: u64, waits: Option<&Waits>) -> Node {
    let created = ("created", Node::Count(created));
    match waits {
        Some(waits) => fields([
            created,
            ("gvl_waits", Node::Count(waits.count)),
            ("gvl_wait_time", Node::Seconds(waits.time.as_secs_f64())),
        ]),
        None => fields([created]),
    }
}

/// Identifies the calling thread, as [`thread_of`] does.
fn current() -> usize {
    if cfg!(ruby_gte_3_3) {
        crate::vm::ruby_thread::current_thread() as usize
    } else {
        // SAFETY: no conditions.
        unsafe { libc::pthread_self() as usize }
    }
}

/// Identifies the thread of an event. Since 3.3 the event contains it, as it may come on the waking thread; in 3.2 it comes on
/// the thread itself.
///
/// # Safety
/// Called in a hook with its data.
unsafe fn thread_of(data: *const c_void) -> usize {
    if cfg!(ruby_gte_3_3) && !data.is_null() {
        // SAFETY: struct rb_internal_thread_event_data begins with the thread's object since 3.3.
        unsafe { *data.cast::<usize>() }
    } else {
        // SAFETY: no conditions.
        unsafe { libc::pthread_self() as usize }
    }
}

unsafe extern "C" fn event(kind: u32, data: *const c_void, _: *mut c_void) {
    // SAFETY: the data of this hook.
    let Some(slot) = slot(unsafe { thread_of(data) }) else {
        return;
    };
    match kind {
        READY => slot.ready.store(now(), Ordering::Relaxed),
        RESUMED => {
            let ready = slot.ready.swap(0, Ordering::Relaxed);
            if ready != 0 {
                let time = now().saturating_sub(ready);
                slot.waits.fetch_add(1, Ordering::Relaxed);
                slot.nanoseconds.fetch_add(time, Ordering::Relaxed);
                PROCESS_WAITS.fetch_add(1, Ordering::Relaxed);
                PROCESS_NANOSECONDS.fetch_add(time, Ordering::Relaxed);
                // Only the thread itself resumes.
                memprof_native::waited_for_gvl(time);
            }
        }
        _ => {
            slot.ready.store(0, Ordering::Relaxed);
            slot.thread.store(LEFT, Ordering::Release);
        }
    }
}

/// The possible entries of a thread in the table.
fn reach(thread: usize) -> impl Iterator<Item = &'static Slot> {
    let start = (thread >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    (0..REACH).filter_map(move |step| TABLE.get((start + step) % SLOTS))
}

/// The thread's entry in the table, if it has one.
fn known(thread: usize) -> Option<&'static Slot> {
    reach(thread)
        .map(|slot| (slot, slot.thread.load(Ordering::Acquire)))
        .take_while(|(_, there)| *there != FREE)
        .find_map(|(slot, there)| (there == thread).then_some(slot))
}

/// The thread's entry, added if it has none.
fn slot(thread: usize) -> Option<&'static Slot> {
    if let Some(slot) = known(thread) {
        return Some(slot);
    }
    // Events of a thread are sequential, so there is no race for its entry.
    reach(thread).find(|slot| {
        let there = slot.thread.load(Ordering::Relaxed);
        let taken = (there == FREE || there == LEFT)
            && (slot.thread)
                .compare_exchange(there, thread, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok();
        if taken {
            slot.waits.store(0, Ordering::Relaxed);
            slot.nanoseconds.store(0, Ordering::Relaxed);
        }
        taken
    })
}

fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills in the structure.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Checks that [`event`] has the type that the VM calls.
const _: ThreadHook = event;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_its_place_until_it_exits() {
        let first = slot(0x7000).map(std::ptr::from_ref);
        assert_eq!(slot(0x7000).map(std::ptr::from_ref), first);
        if let Some(slot) = slot(0x7000) {
            slot.waits.store(3, Ordering::Relaxed);
            slot.thread.store(LEFT, Ordering::Release);
        }
        assert_eq!(slot(0x7000).map(|slot| slot.waits.load(Ordering::Relaxed)), Some(0));
    }
}

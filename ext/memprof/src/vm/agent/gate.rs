//! Opens and closes the way of allocations to our hook, up to Ruby 3.2.
//!
//! There the VM takes its slow path for each allocation as long as there is a hook for anything about objects or GCs: with a
//! hook for the end of marking alone, a loop of `Object.new` takes 1.1 to 1.25 times as long. Later versions ask only for
//! allocation hooks. And no function may be called from a thread outside of Ruby to have a job run. So the two words of `struct
//! rb_objspace` that decide are written directly: the bit `has_hook` of its flags, and the events that have hooks.
//!
//! Opening is harmless at any time: the VM looks for hooks in vain, at worst. It is done by an atomic OR from outside: if the
//! VM writes its flags at the same moment, ours may be lost, never its own. Closing would blind others' hooks for allocations;
//! so it is done in our hook, which the VM calls with its lock, and only if its list of hooks has no other for allocations.
//! Whenever somebody adds or removes a hook, the VM sets both words anew, and our hook closes the gate again.
//!
//! Nothing is written unless the words were found: the only place in memory that follows our hooks as they come and go.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use super::{alive, burst, timer};
use crate::vm::symbols::symbols;

const ALLOCATION: u32 = rb_sys::RUBY_INTERNAL_EVENT_NEWOBJ;

/// Events that `struct rb_objspace` knows (RUBY_INTERNAL_EVENT_OBJSPACE_MASK).
const OBJSPACE: u32 = 0x07f0_0000;

/// The bit `has_hook`.
const HAS_HOOK: u32 = 1 << 8;

/// A hook that was removed while hooks ran.
const DELETED: u32 = 2;

/// Address of the flags; the events follow. 0 until they were found.
static WORDS: AtomicUsize = AtomicUsize::new(0);

/// Address of the pointer to the first hook.
static LIST: AtomicUsize = AtomicUsize::new(0);

/// Whether the gate may be opened.
static ALLOWED: AtomicBool = AtomicBool::new(false);

/// Held while the gate is opened, and while that is forbidden.
static LOCK: AtomicBool = AtomicBool::new(false);

/// struct rb_event_hook_struct (vm_trace.c of 3.1 and 3.2).
#[repr(C)]
struct Hook {
    flags: u32,
    events: u32,
    function: usize,
    data: usize,
    next: usize,
}

fn locked<T>(work: impl FnOnce() -> T) -> T {
    while LOCK.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
        std::thread::yield_now();
    }
    let result = work();
    LOCK.store(false, Ordering::Release);
    result
}

/// The flags and the events.
fn words() -> Option<(&'static AtomicU32, &'static AtomicU32)> {
    let address = WORDS.load(Ordering::Relaxed);
    // SAFETY: the words were found in the VM's own structure, which lasts until the VM ends; the timer stops before that.
    (address != 0).then(|| unsafe {
        (&*(address as *const AtomicU32), &*((address + 4) as *const AtomicU32))
    })
}

/// Lets allocations reach the hook. Called on any thread.
pub fn open() {
    locked(|| {
        if let (true, Some((flags, events))) = (ALLOWED.load(Ordering::Relaxed), words()) {
            events.fetch_or(ALLOCATION, Ordering::Relaxed);
            flags.fetch_or(HAS_HOOK, Ordering::Relaxed);
        }
    });
}

/// Closes the gate, unless somebody else has a hook for allocations. Called in the hook, or with the GVL.
pub fn close() {
    if others() {
        return;
    }
    if let Some((flags, events)) = words() {
        flags.fetch_and(!HAS_HOOK, Ordering::Relaxed);
        events.fetch_and(!ALLOCATION, Ordering::Relaxed);
        if timer::is_wanted() {
            open();
        }
    }
}

/// Whether there are other hooks for allocations.
fn others() -> bool {
    let list = LIST.load(Ordering::Relaxed);
    if list == 0 {
        return true;
    }
    let ours = burst::HOOK.address();
    // SAFETY: the list was found by our own hooks in it. It changes with the VM's lock only, which the caller has.
    unsafe {
        let mut next = *(list as *const usize);
        while next != 0 {
            let hook = &*(next as *const Hook);
            if hook.flags & DELETED == 0 && hook.events & ALLOCATION != 0 && hook.function != ours {
                return true;
            }
            next = hook.next;
        }
    }
    false
}

/// Adds the hook, and closes the gate.
///
/// # Errors
/// If the words were not found.
pub fn prepare() -> Result<(), String> {
    burst::HOOK.add();
    if burst::HOOK.is_suspended() {
        return Ok(());
    }
    if WORDS.load(Ordering::Relaxed) == 0 {
        find()?;
    }
    ALLOWED.store(true, Ordering::Relaxed);
    close();
    Ok(())
}

/// Removes the hook.
pub fn rest() {
    locked(|| ALLOWED.store(false, Ordering::Relaxed));
    burst::HOOK.remove();
}

/// Adds the hook again, if it was lost.
pub fn restore() {
    rest();
    if prepare().is_err() {
        super::fail();
    }
}

/// Another Ractor starts, beside which hooks crash the VM: the gate is closed until [`restore`].
pub fn forbid() {
    locked(|| ALLOWED.store(false, Ordering::Relaxed));
}

/// Runs in the child of a fork; only sets atomics.
pub fn forked() {
    LOCK.store(false, Ordering::Relaxed);
}

/// Finds the words and the list of hooks: adds and removes ours, and looks for what changes with them.
fn find() -> Result<(), String> {
    let memory = File::open("/proc/self/mem").map_err(|error| format!("its memory: {error}"))?;
    let (Some(vm), Some(ractor), Some(global)) =
        (symbols().current_vm, symbols().main_ractor, symbols().event_flags)
    else {
        return Err("it hides its structures".into());
    };
    // SAFETY: variables of the VM, read with the GVL.
    let (vm, ractor) = unsafe { (*vm, *ractor) };
    // SAFETY: as above.
    let expected = || unsafe { std::ptr::read_volatile(global) } & OBJSPACE;
    let is_right = |words: u64, expected: u32| {
        let has_hook = if expected != 0 { HAS_HOOK } else { 0 };
        word(&memory, words).is_some_and(|word| {
            (word >> 32) as u32 == expected && word as u32 & HAS_HOOK == has_hook
        })
    };
    let both = expected();
    let mut candidates: Vec<u64> = (pointers(&memory, vm).into_iter())
        .flat_map(|pointer| (0..8).map(move |at| pointer + at * 8))
        .filter(|words| is_right(*words, both))
        .collect();
    burst::HOOK.remove();
    let without = expected();
    candidates.retain(|words| is_right(*words, without));
    alive::HOOK.remove();
    let none = expected();
    candidates.retain(|words| is_right(*words, none));
    alive::HOOK.add();
    burst::HOOK.add();
    candidates.retain(|words| is_right(*words, both));
    candidates.sort_unstable();
    candidates.dedup();
    let [words] = candidates[..] else {
        return Err(format!("{} places look like its switch for hooks", candidates.len()));
    };
    if both == none {
        return Err("other hooks hide its switch for hooks".into());
    }
    let ours = burst::HOOK.address() as u64;
    let is_ours = |pointer: u64| {
        word(&memory, pointer).is_some_and(|word| (word >> 32) as u32 == ALLOCATION)
            && word(&memory, pointer + 8) == Some(ours)
    };
    let mut block = vec![0u8; 8192];
    let read = memory.read_at(&mut block, ractor as u64).unwrap_or(0);
    let lists: Vec<usize> = (block[..read].chunks_exact(8).enumerate())
        .filter(|(_, bytes)| is_ours(number(bytes)))
        .map(|(at, _)| ractor + at * 8)
        .collect();
    let [list] = lists[..] else {
        return Err(format!("{} places look like its list of hooks", lists.len()));
    };
    LIST.store(list, Ordering::Relaxed);
    WORDS.store(words as usize, Ordering::Relaxed);
    Ok(())
}

fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map(u64::from_ne_bytes).unwrap_or_default()
}

/// A word of memory, if it is mapped.
fn word(memory: &File, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    let aligned = address != 0 && address % 8 == 0;
    (aligned && memory.read_exact_at(&mut bytes, address).is_ok())
        .then(|| u64::from_ne_bytes(bytes))
}

/// The words of a structure that may be pointers.
fn pointers(memory: &File, address: usize) -> Vec<u64> {
    let mut block = vec![0u8; 8192];
    let read = memory.read_at(&mut block, address as u64).unwrap_or(0);
    let words = block[..read].chunks_exact(8).map(number);
    words.filter(|word| *word > 0xffff && *word < 1 << 47 && word % 8 == 0).collect()
}

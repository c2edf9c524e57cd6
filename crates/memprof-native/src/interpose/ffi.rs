//! Calls through libffi, as made by the ffi gem and Fiddle.
//!
//! Such a caller has fetched a function's address itself, maybe long before the trace, and no table has it. But it passes
//! the address to `ffi_call`, which it calls through its table. So `ffi_call` is replaced, and calls the replacement of the
//! function at that address. No code ever gets the address of a replacement.
//!
//! An address identifies a function only while its object is loaded. Objects whose functions are followed here are therefore
//! pinned until the last trace that follows them ends.

use std::ffi::c_void;
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::{
    AtomicPtr, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use super::hook::{Caller, Code, Entry, Hook, Original};
use super::loaded_objects::Pin;
use super::lookup::Lookup;

/// Most functions followed at a time; others are not seen.
const PLACES: usize = 128;

/// The followed functions. A slot is one word, and its entry never changes, so it may be read at any time.
static FOLLOWED: [AtomicPtr<Entry>; PLACES] = [const { AtomicPtr::new(ptr::null_mut()) }; PLACES];
/// End of the slots ever used.
static USED: AtomicUsize = AtomicUsize::new(0);

/// Followed functions of an object; owned by the engine, under its lock.
pub(super) struct Followed {
    /// The group that their hooks belong to.
    pub group: usize,
    /// Keeps the object loaded.
    pin: Pin,
    places: Vec<usize>,
}

/// Starts to follow the hooked functions of an object. One without the first function of a group is another library, and is
/// not searched for the others.
pub(super) fn follow(
    lookup: &Lookup,
    index: usize,
    groups: impl Iterator<Item = (usize, &'static [Hook])>,
) -> Vec<Followed> {
    let Some(dynamic) = lookup.dynamic(index) else {
        return Vec::new();
    };
    let find = |hook: &Hook| dynamic.find(hook.symbol.as_bytes());
    let is_there =
        |first: Option<&Hook>| first.is_some_and(|hook| hook.by_address && find(hook).is_some());
    groups
        .filter(|(_, hooks)| is_there(hooks.first()))
        .filter_map(|(group, hooks)| {
            // Pin before any of its functions is followed.
            let pin = lookup.objects[index].pin()?;
            let entries =
                hooks.iter().filter_map(|hook| lookup.entry(hook, Caller::Others, find(hook)?));
            let places: Vec<_> = entries.filter_map(occupy).collect();
            // None if all are followed already. `lookup` has a pin of its own, so this one is not the last.
            (!places.is_empty()).then_some(Followed { group, pin, places })
        })
        .collect()
}

/// None if the entry's function is followed already, or no slot is free.
fn occupy(entry: &'static Entry) -> Option<usize> {
    let entry = ptr::from_ref(entry).cast_mut();
    if FOLLOWED.iter().any(|place| place.load(Relaxed) == entry) {
        return None;
    }
    let place = FOLLOWED.iter().position(|place| place.load(Relaxed).is_null())?;
    FOLLOWED[place].store(entry, Release);
    USED.fetch_max(place + 1, Release);
    Some(place)
}

impl Followed {
    /// Stops following. The caller has to drop the pin.
    pub fn end(self) -> Pin {
        for place in self.places {
            FOLLOWED[place].store(ptr::null_mut(), Relaxed);
        }
        self.pin
    }
}

/// The function to call instead of `function`.
fn replacement(function: usize) -> usize {
    FOLLOWED[..USED.load(Acquire)]
        .iter()
        // SAFETY: null, or an entry, which is static.
        .filter_map(|place| unsafe { place.load(Acquire).as_ref() })
        .find(|entry| entry.original.known() == Some(function))
        .map_or(function, |entry| entry.code.address())
}

static CALL: [Original; 2] = [const { Original::new() }; 2];

unsafe extern "C-unwind" fn call<const VARIANT: usize>(
    interface: *mut c_void,
    function: usize,
    result: *mut c_void,
    arguments: *mut c_void,
) {
    type Call = unsafe extern "C-unwind" fn(*mut c_void, usize, *mut c_void, *mut c_void);
    // SAFETY: the engine filled in the address of `ffi_call`, which has this signature.
    let original = unsafe { transmute::<usize, Call>(CALL[VARIANT].get()) };
    // SAFETY: the caller's arguments; a replacement has the signature of its original. The caller keeps the function's
    // object loaded, so the replacement still calls that function if the trace ends meanwhile.
    unsafe { original(interface, replacement(function), result, arguments) }
}

const fn entry(code: *const (), original: &'static Original) -> Entry {
    Entry { caller: Caller::Any, code: Code::new(code), original, companions: &[] }
}

static ENTRIES: [Entry; 2] =
    [entry(call::<0> as *const (), &CALL[0]), entry(call::<1> as *const (), &CALL[1])];

/// Installed whenever anything is.
pub(super) static HOOKS: [Hook; 1] =
    [Hook { symbol: "ffi_call", entries: &ENTRIES, own_calls: false, by_address: false }];

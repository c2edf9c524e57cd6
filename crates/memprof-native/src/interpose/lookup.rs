//! Maps words of tables to functions.

use std::cell::OnceCell;
use std::ffi::CString;

use super::elf::{Dynamic, Slot};
use super::hook::{Caller, Code, Entry, Hook};
use super::loaded_objects::{self, Loaded, Pin};

/// A symbol that only the interpreter's object has.
const INTERPRETER: &[u8] = b"ruby_init";
/// A symbol that only libc has.
const LIBC: &[u8] = b"__libc_start_main";

/// A snapshot of the loaded objects, each pinned on first access.
pub(super) struct Lookup {
    pub objects: Vec<Loaded>,
    pins: Vec<OnceCell<Option<Pin>>>,
    /// Two, if the crates that know no Ruby are a library of their own.
    own: Vec<usize>,
    ended: Vec<Pin>,
}

impl Lookup {
    pub fn new() -> Lookup {
        let objects = Loaded::all();
        let pins = objects.iter().map(|_| OnceCell::new()).collect();
        let here = Lookup::new as fn() -> Lookup as usize;
        let there = memprof_paths::is_application as fn(&str) -> bool as usize;
        let is_own = |object: &Loaded| object.contains(here) || object.contains(there);
        let own = (0..objects.len()).filter(|&index| is_own(&objects[index])).collect();
        Lookup { objects, pins, own, ended: Vec::new() }
    }

    /// The objects that contain memprof's code.
    pub fn own(&self) -> impl Iterator<Item = &Loaded> {
        self.own.iter().map(|&own| &self.objects[own])
    }

    fn is_own(&self, address: usize) -> bool {
        self.own().any(|own| own.contains(address))
    }

    /// Objects that may be changed: all except our own and the loader.
    pub fn others(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.objects.len()).filter(|&index| {
            !self.own.contains(&index)
                && self.objects[index].dynamic().is_some()
                && !self.objects[index].is_loader_or_kernel()
        })
    }

    /// The dynamic section of an object, which is pinned from here on; None if it was unloaded.
    pub fn dynamic(&self, index: usize) -> Option<Dynamic<'_>> {
        self.pin(index)?;
        // SAFETY: the object is pinned, and the pin lives as long as `self`, which the result borrows.
        unsafe { Dynamic::read(&self.objects[index]) }
    }

    fn pin(&self, index: usize) -> Option<&Pin> {
        self.pins[index].get_or_init(|| self.objects[index].pin()).as_ref()
    }

    /// Takes a pin that is no longer needed, to be dropped along with its own pins.
    pub fn take(&mut self, pin: Pin) {
        self.ended.push(pin);
    }

    pub fn caller(&self, index: usize) -> Caller {
        if self.has(index, INTERPRETER) { Caller::Interpreter } else { Caller::Others }
    }

    pub fn is_libc(&self, index: usize) -> bool {
        self.has(index, LIBC)
    }

    /// Whether an object exports a function with that name.
    pub fn has(&self, index: usize, name: &[u8]) -> bool {
        self.dynamic(index).is_some_and(|dynamic| dynamic.find(name).is_some())
    }

    /// The function behind a slot of an object that contains `word`. None if it is unknown: the loader has not set the slot
    /// yet, or other code wrote an address there that is in no object.
    pub fn target(&self, index: usize, slot: &Slot<'_>, word: usize) -> Option<usize> {
        if self.is_own(word) {
            return None;
        }
        let home = self.home(word)?;
        let target = if home == index && slot.defined_at != Some(word) {
            // The object's own PLT: bound on the first call, or the program's stand-in for the function.
            self.resolve(index, slot.name)?
        } else if self.is_stand_in(home, slot.name, word) {
            self.resolve(index, slot.name)?
        } else {
            word
        };
        // A word of data belongs to the program: only the loader's values are known.
        let is_untouched =
            || self.home(target).is_some_and(|home| self.find(home, slot.name) == Some(target));
        (!slot.is_data || (word == target && is_untouched())).then_some(target)
    }

    fn home(&self, address: usize) -> Option<usize> {
        self.objects.iter().position(|object| object.contains(address))
    }

    /// A non-PIE program may export an entry of its own PLT as the function's address.
    fn is_stand_in(&self, home: usize, name: &[u8], address: usize) -> bool {
        self.objects[home].is_program()
            && !self.own.contains(&home)
            && self.find(home, name) != Some(address)
    }

    fn find(&self, index: usize, name: &[u8]) -> Option<usize> {
        self.dynamic(index)?.find(name)
    }

    /// The function that the loader would bind a name to, for this object.
    fn resolve(&self, index: usize, name: &[u8]) -> Option<usize> {
        let c_name = CString::new(name).ok()?;
        let found = match loaded_objects::find_global(&c_name) {
            Some(address)
                if self.home(address).is_some_and(|home| self.is_stand_in(home, name, address)) =>
            {
                self.others().find_map(|other| self.find(other, name))
            }
            Some(address) => Some(address),
            None => loaded_objects::find_from(self.pin(index)?, &c_name),
        };
        found.filter(|&address| !self.is_own(address))
    }

    /// The replacement for calls of a function from such a caller, ready to use. None if all are taken by other functions
    /// with that name, or the library lacks a companion.
    pub fn entry(
        &self,
        hook: &'static Hook,
        caller: Caller,
        target: usize,
    ) -> Option<&'static Entry> {
        let fitting = || {
            hook.entries
                .iter()
                .filter(|entry| entry.caller == Caller::Any || entry.caller == caller)
        };
        if let Some(entry) = fitting().find(|entry| entry.original.known() == Some(target)) {
            return Some(entry);
        }
        let is_gone = |entry: &&Entry| {
            entry.original.known().is_some_and(|address| self.home(address).is_none())
        };
        let entry = fitting()
            .find(|entry| entry.original.known().is_none())
            .or_else(|| fitting().find(is_gone))?;
        let home = self.home(target)?;
        let companions: Option<Vec<usize>> = entry
            .companions
            .iter()
            .map(|companion| {
                let name = companion.symbol.as_bytes();
                let is_bound = companion.as_libc_calls && self.is_libc(home);
                let bound = || self.resolve(home, name);
                let found = is_bound.then(bound).flatten();
                let found = found.or_else(|| self.find(home, name));
                found.or_else(|| companion.fallback.map(Code::address))
            })
            .collect();
        for (companion, address) in entry.companions.iter().zip(companions?) {
            companion.original.set(address);
        }
        entry.original.set(target);
        Some(entry)
    }
}

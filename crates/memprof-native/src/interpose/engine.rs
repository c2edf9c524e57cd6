//! Changes the tables, and restores them.

use std::collections::{BTreeMap, HashMap};
use std::ffi::CString;
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use super::elf::Starts;
use super::ffi::{self, Followed};
use super::fork_lock;
use super::hook::Hook;
use super::loaded_objects::{self, Generation, Loaded};
use super::lookup::Lookup;
use super::protected_pages::Pages;
use super::watch;
use crate::Refused;
use crate::unwind;

/// Hooks installed and removed together, and the number of their users.
struct Group {
    hooks: &'static [Hook],
    users: usize,
}

impl Group {
    fn id(&self) -> usize {
        self.hooks.as_ptr() as usize
    }
}

/// A replaced word.
struct Patch {
    found: usize,
    code: usize,
    group: usize,
}

/// Wanted hooks by name, each with its group.
type Wanted = HashMap<&'static [u8], (usize, &'static Hook)>;

/// An examined object, and its replaced words by address.
struct Known {
    name: CString,
    base: usize,
    patches: BTreeMap<usize, Patch>,
}

pub(super) struct Engine {
    groups: Vec<Group>,
    known: Vec<Known>,
    followed: Vec<Followed>,
    seen: Generation,
}

static ENGINE: Mutex<Engine> = Mutex::new(Engine {
    groups: Vec::new(),
    known: Vec::new(),
    followed: Vec::new(),
    seen: Generation { loaded: 0, unloaded: 0 },
});
/// Replaced whenever anything is.
static ALWAYS: [&[Hook]; 2] = [&watch::HOOKS, &ffi::HOOKS];
/// Number of objects loaded so far when the tables were last examined.
static SEEN: AtomicU64 = AtomicU64::new(0);
/// Objects were loaded that no trace has examined yet.
static PENDING: AtomicBool = AtomicBool::new(false);

/// Replaces the functions of each of these groups in all objects, including those loaded later. For a group that is already
/// installed, this only counts another user.
///
/// # Errors
///
/// When the program is linked statically, a page cannot be made writable, or the process was forked in the middle of a
/// change. Nothing new is replaced then.
pub fn install(groups: &[&'static [Hook]]) -> Result<(), Refused> {
    if is_static() {
        return Err(Refused::Unsupported(
            "the program is linked statically: it has no tables to change",
        ));
    }
    let kept = {
        let mut engine = lock().ok_or(Refused::Forked)?;
        let mut is_new = false;
        for hooks in ALWAYS.iter().chain(groups) {
            is_new |= engine.add(hooks);
        }
        let (result, kept) = engine.sweep(is_new);
        let undone = if result.is_err() { engine.drop_groups(groups) } else { None };
        drop(engine);
        result.map(|()| (kept, undone))
    };
    serve();
    // Drop the pins only now: if one is the last to keep an object loaded, its destructors run without the lock.
    kept.map(drop)
}

/// Restores what [`install`] replaced for these groups, unless they have other users. A word that cannot be written, or that
/// other code has changed, is left alone.
pub fn remove(groups: &[&'static [Hook]]) {
    let Some(mut engine) = lock() else { return };
    let kept = engine.drop_groups(groups);
    drop(engine);
    serve();
    drop(kept);
}

/// Whether the interpreter defines a function with that name itself, so that its calls bypass the tables.
#[must_use]
pub fn is_built_in(symbol: &str) -> bool {
    let lookup = Lookup::new();
    lookup.others().any(|index| {
        lookup.caller(index) == super::Caller::Interpreter && lookup.has(index, symbol.as_bytes())
    })
}

/// Examines objects loaded meanwhile. Preserves `errno`, never waits for the lock.
pub(crate) fn notice() {
    if loaded_objects::generation().loaded == SEEN.load(Relaxed) {
        return;
    }
    PENDING.store(true, SeqCst);
    serve();
    unwind::refresh();
}

/// Does the work that others left to the lock's holder.
fn serve() {
    while PENDING.load(SeqCst) {
        let Some(mut engine) = try_lock() else { return };
        PENDING.store(false, SeqCst);
        // An object that cannot be written stays untraced: the code that loaded it did not ask for a trace.
        let (_, kept) = engine.sweep(false);
        drop(engine);
        drop(kept);
    }
}

fn lock() -> Option<MutexGuard<'static, Engine>> {
    (!fork_lock::is_orphaned()).then(|| ENGINE.lock().unwrap_or_else(PoisonError::into_inner))
}

pub(super) fn try_lock() -> Option<MutexGuard<'static, Engine>> {
    if fork_lock::is_orphaned() {
        return None;
    }
    match ENGINE.try_lock() {
        Ok(engine) => Some(engine),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Whether the program has no loader.
fn is_static() -> bool {
    // SAFETY: reads a value that the kernel passed at program start.
    unsafe { libc::getauxval(libc::AT_BASE) == 0 }
}

impl Engine {
    /// Counts another user of these hooks and returns whether they are new.
    fn add(&mut self, hooks: &'static [Hook]) -> bool {
        if let Some(group) =
            self.groups.iter_mut().find(|group| group.id() == hooks.as_ptr() as usize)
        {
            group.users += 1;
            return false;
        }
        self.groups.push(Group { hooks, users: 1 });
        true
    }

    fn drop_groups(&mut self, groups: &[&'static [Hook]]) -> Option<Lookup> {
        for hooks in ALWAYS.iter().chain(groups) {
            if let Some(group) =
                self.groups.iter_mut().find(|group| group.id() == hooks.as_ptr() as usize)
            {
                group.users -= 1;
            }
        }
        let ended: Vec<usize> =
            self.groups.iter().filter(|group| group.users == 0).map(Group::id).collect();
        self.groups.retain(|group| group.users > 0);
        (!ended.is_empty()).then(|| self.restore(&ended))
    }

    /// Examines all objects, or only new ones, and replaces the wanted functions. The caller has to drop the pins.
    fn sweep(&mut self, everywhere: bool) -> (Result<(), Refused>, Option<Lookup>) {
        let generation = loaded_objects::generation();
        if (!everywhere && generation == self.seen) || self.groups.is_empty() {
            return (Ok(()), None);
        }
        let everywhere = everywhere || generation.unloaded != self.seen.unloaded;
        let lookup = Lookup::new();
        self.known.retain(|known| known.among(&lookup).is_some());
        let result = self.look_through(&lookup, everywhere);
        if result.is_ok() {
            self.seen = generation;
            SEEN.store(generation.loaded, Relaxed);
        }
        loaded_objects::forget_errors();
        (result, Some(lookup))
    }

    fn look_through(&mut self, lookup: &Lookup, everywhere: bool) -> Result<(), Refused> {
        for own in lookup.own() {
            loaded_objects::stay_loaded(own);
        }
        let wanted: Wanted = self
            .groups
            .iter()
            .flat_map(|group| {
                group.hooks.iter().map(|hook| (hook.symbol.as_bytes(), (group.id(), hook)))
            })
            .collect();
        let starts = Starts::of(wanted.keys().copied());
        let is_wanted = |index: &usize| everywhere || self.known(&lookup.objects[*index]).is_none();
        let plans: Vec<_> = lookup
            .others()
            .filter(is_wanted)
            .filter_map(|index| Some((index, plan(lookup, index, &wanted, &starts)?)))
            .collect();
        if plans.is_empty() {
            return Ok(());
        }
        for (index, _) in &plans {
            let groups = self.groups.iter().map(|group| (group.id(), group.hooks));
            let found = ffi::follow(lookup, *index, groups);
            self.followed.extend(found);
        }
        // Only once all are pinned: before, the loader may still have been changing their pages.
        let pages = Pages::read().map_err(|error| refused("this process", &error))?;
        for (index, patches) in plans {
            let object = &lookup.objects[index];
            let words: Vec<_> = patches
                .iter()
                .map(|(&address, patch)| (address, patch.found, patch.code))
                .collect();
            let mut exchanged = Vec::with_capacity(words.len());
            // SAFETY: slots of an object that `plan` had pinned, by a pin that `lookup` keeps.
            let result = unsafe { pages.exchange(&words, &mut exchanged) };
            let known = self.known(object).unwrap_or_else(|| {
                self.known.push(Known {
                    name: object.name.clone(),
                    base: object.base,
                    patches: BTreeMap::new(),
                });
                self.known.len() - 1
            });
            let done = patches
                .into_iter()
                .zip(exchanged)
                .filter(|(_, exchanged)| *exchanged)
                .map(|(patch, _)| patch);
            self.known[known].patches.extend(done);
            result.map_err(|error| refused(&object.label(), &error))?;
        }
        Ok(())
    }

    fn known(&self, object: &Loaded) -> Option<usize> {
        self.known.iter().position(|known| known.base == object.base && known.name == object.name)
    }

    fn restore(&mut self, groups: &[usize]) -> Lookup {
        let mut lookup = Lookup::new();
        let (ended, others) = std::mem::take(&mut self.followed)
            .into_iter()
            .partition(|followed| groups.contains(&followed.group));
        self.followed = others;
        for followed in Vec::<Followed>::into_iter(ended) {
            lookup.take(followed.end());
        }
        // Forget unloaded objects. Asking for the dynamic section pins the object.
        self.known.retain(|known| {
            known.among(&lookup).is_some_and(|index| lookup.dynamic(index).is_some())
        });
        let pages = Pages::read();
        for known in &mut self.known {
            let Some(object) = known.among(&lookup).map(|index| &lookup.objects[index]) else {
                continue;
            };
            // Another object with the same name may have been loaded at the same address: its words are not ours, and stay.
            known.patches.retain(|address, _| object.has_writable(*address));
            let ended: Vec<_> = known
                .patches
                .iter()
                .filter(|(_, patch)| groups.contains(&patch.group))
                .map(|(&address, patch)| (address, patch.code, patch.found))
                .collect();
            let mut exchanged = Vec::with_capacity(ended.len());
            if let Ok(pages) = &pages {
                // Where the kernel refuses, words stay ours: their replacement still calls the original.
                // SAFETY: words of an object that is pinned, inside its writable segments.
                let _ = unsafe { pages.exchange(&ended, &mut exchanged) };
            }
            for (address, _, _) in &ended[..exchanged.len()] {
                known.patches.remove(address);
            }
        }
        if self.groups.is_empty() {
            self.known.retain(|known| !known.patches.is_empty());
            self.seen = Generation::default();
        }
        loaded_objects::forget_errors();
        lookup
    }
}

impl Known {
    fn among(&self, lookup: &Lookup) -> Option<usize> {
        lookup
            .objects
            .iter()
            .position(|object| object.base == self.base && object.name == self.name)
    }
}

/// The words to replace in an object. None if it was unloaded.
fn plan(
    lookup: &Lookup,
    index: usize,
    wanted: &Wanted,
    starts: &Starts,
) -> Option<BTreeMap<usize, Patch>> {
    let dynamic = lookup.dynamic(index)?;
    let caller = lookup.caller(index);
    let mut patches = BTreeMap::new();
    for slot in dynamic.slots(starts) {
        let Some(&(group, hook)) = wanted.get(slot.name) else {
            continue;
        };
        // SAFETY: an aligned word inside a segment of a pinned object.
        let found = unsafe { AtomicUsize::from_ptr(slot.address as *mut usize) }.load(Relaxed);
        let Some(target) = lookup.target(index, &slot, found) else {
            continue;
        };
        let is_own = lookup.objects[index].contains(target);
        if is_own && !(hook.own_calls && lookup.is_libc(index)) {
            continue;
        }
        if let Some(entry) = lookup.entry(hook, caller, target) {
            patches.insert(slot.address, Patch { found, code: entry.code.address(), group });
        }
    }
    Some(patches)
}

fn refused(object: &str, error: &std::io::Error) -> Refused {
    Refused::Protected { object: object.to_owned(), error: error.to_string() }
}

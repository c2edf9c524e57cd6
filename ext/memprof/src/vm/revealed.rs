//! Objects that a C function allocates without a class, and gives one before the program sees them: results of `String#encode`
//! and `Array#flatten`, and since Ruby 4.0 objects moved by `Ractor#send`. They are recorded as `<string>`, `<array>` or
//! `<object>`, and counted with their class once that is noticed: during a heap walk, when counts are read, or at the latest
//! when they are freed.

use memprof_profile::live::Record;
use rb_sys::{VALUE, ruby_value_type};

use super::ruby_object::{self, Flags};
use super::tracker::{self, Tracker};

/// Maximum hidden objects in the list. Those hidden for longer are only found by heap walks and frees.
const REMEMBERED: usize = 64;

/// Number of them kept when the list is full: the function that allocated the last ones has not returned yet.
const RECENT: usize = 16;

/// Types of objects that may get their class later; the last four when moved to another Ractor.
const MAY_BE_REVEALED: [ruby_value_type; 7] = [
    ruby_value_type::RUBY_T_STRING,
    ruby_value_type::RUBY_T_ARRAY,
    ruby_value_type::RUBY_T_HASH,
    ruby_value_type::RUBY_T_OBJECT,
    ruby_value_type::RUBY_T_STRUCT,
    ruby_value_type::RUBY_T_FILE,
    ruby_value_type::RUBY_T_MATCH,
];

/// True for an object of such a type that has no class yet.
#[inline(always)]
pub fn is_hidden(flags: Flags, class_word: VALUE) -> bool {
    class_word == 0 && may_be_revealed(flags)
}

#[inline(always)]
fn may_be_revealed(flags: Flags) -> bool {
    MAY_BE_REVEALED.iter().any(|kind| flags.is(*kind))
}

/// Adds a hidden object that was just recorded to the list.
#[cold]
pub fn remember(tracker: &mut Tracker, object: VALUE) {
    if tracker.hidden.len() >= REMEMBERED {
        look(tracker);
        let old = tracker.hidden.len().saturating_sub(RECENT);
        tracker.hidden.drain(..old);
    }
    tracker.hidden.push(object);
}

/// Checks the listed objects a last time: a GC that starts now may free them.
pub fn forget(tracker: &mut Tracker) {
    look(tracker);
    tracker.hidden.clear();
}

/// Counts listed objects that have a class by now under that class.
pub fn look(tracker: &mut Tracker) {
    // Another Ractor may have freed them without an event, and the VM released their pages.
    if tracker::ractors_seen() {
        tracker.hidden.clear();
    }
    let mut hidden = std::mem::take(&mut tracker.hidden);
    hidden.retain(|object| {
        let Some(record) = tracker.recorder.record(*object) else {
            return false; // freed
        };
        // SAFETY: it is in the live table, so it was not freed. It may be garbage, and its class freed.
        unsafe { reveal(tracker, *object, record, false) == record }
    });
    tracker.hidden = hidden;
}

/// [`record_now`] of a live object, stored in the live table.
///
/// # Safety
/// `object` is a slot that holds an object; with `lives` one that is not garbage.
pub unsafe fn reveal(tracker: &mut Tracker, object: VALUE, record: Record, lives: bool) -> Record {
    // SAFETY: as for this function.
    let now = unsafe { record_now(tracker, Flags::of(object), object, record, lives) };
    if now != record {
        tracker.recorder.replace(object, now);
    }
    now
}

/// The record of an object that is live or being freed: a new one if it was hidden and has a class now, under which it is
/// counted from now on.
///
/// # Safety
/// As [`reveal`]; these are the object's flags.
#[inline]
pub unsafe fn record_now(
    tracker: &mut Tracker,
    flags: Flags,
    object: VALUE,
    record: Record,
    lives: bool,
) -> Record {
    if !may_be_revealed(flags) || !tracker.recorder.is_hidden(record) {
        return record;
    }
    // SAFETY: as for this function.
    let class = unsafe { ruby_object::class_word(object) };
    if class == 0 {
        return record;
    }
    let (sites, identities) = (&mut tracker.recorder.sites, &mut tracker.identities);
    let class = if lives {
        Some(tracker.classes.id(sites, identities, flags, class).0)
    } else {
        tracker.classes.known(sites, identities, flags, class)
    };
    match class {
        Some(class) => tracker.recorder.reveal(record, class),
        None => record,
    }
}

//! Walks the heap to find live recorded objects and their sizes.

use std::ffi::{c_int, c_void};

use memprof_profile::live::Record;
use memprof_profile::recorder::Survivors;
use memprof_profile::sessions::SessionId;
use rb_sys::{VALUE, ruby_value_type};
use rustc_hash::FxHashSet;

use super::contents::{self, OldContainers};
use super::memsize;
use super::protect::{Raised, protect};
use super::revealed;
use super::ruby_object::{self, Flags};
use super::symbols::symbols;
use super::tracker;

/// log2 of the smallest heap page of any version (3.1: 16 KiB).
const PAGE_BITS: u32 = 14;

struct Walk<'a> {
    session: SessionId,
    /// Only objects of this generation and earlier ones.
    until: Option<u32>,
    /// Bytes of a live object.
    size: fn(VALUE) -> u64,
    /// Containers older than the session, if their contents are wanted.
    old: Option<&'a mut OldContainers>,
    survivors: Survivors,
    visited: FxHashSet<u64>,
}

/// Finds the live objects of a session, with their memsizes and, if the session wants them, the values of strings. With
/// `until`, only those allocated in that generation or before. Also drops records of objects freed without an event. Not to be
/// called inside [`tracker::with`].
///
/// # Errors
/// If the VM raised.
pub fn survivors(session: SessionId, until: Option<u32>) -> Result<Survivors, Raised> {
    survivors_into(session, until, Survivors::default())
}

/// As [`survivors`], but adds them to `survivors`.
///
/// # Errors
/// If the VM raised.
pub fn survivors_into(
    session: SessionId,
    until: Option<u32>,
    survivors: Survivors,
) -> Result<Survivors, Raised> {
    walk(Walk {
        session,
        until,
        size: memsize,
        old: None,
        survivors,
        visited: FxHashSet::default(),
    })
}

/// As [`survivors`], but with the size of contents instead of memsizes, and with the older containers.
///
/// # Errors
/// If the VM raised.
pub fn contents(session: SessionId, old: &mut OldContainers) -> Result<Survivors, Raised> {
    walk(Walk {
        session,
        until: None,
        size: |object| {
            // SAFETY: an object that lives (see `lives`).
            unsafe { contents::bytes(object, Flags::of(object)) }
        },
        old: Some(old),
        survivors: Survivors::default(),
        visited: FxHashSet::default(),
    })
}

fn walk(mut walk: Walk) -> Result<Survivors, Raised> {
    if let Some(each_objects) = symbols().each_objects {
        let data: *mut c_void = (&raw mut walk).cast();
        // SAFETY: called with the GVL, outside a GC; `page` is given the walk, which outlives the call.
        protect(|| unsafe { each_objects(page, data) })?;
        // Released heap pages contain no objects.
        tracker::with(|tracker| {
            tracker.recorder.retain(|address| walk.visited.contains(&(address >> PAGE_BITS)))
        });
    }
    Ok(walk.survivors)
}

unsafe extern "C" fn page(
    start: *mut c_void,
    end: *mut c_void,
    stride: usize,
    walk: *mut c_void,
) -> c_int {
    // SAFETY: `survivors` passed the walk, and uses it again only when the walk over the heap is done.
    let walk = unsafe { &mut *walk.cast::<Walk<'_>>() };
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        visit(walk, start as u64, end as u64, stride as u64);
    }));
    c_int::from(outcome.is_err())
}

fn visit(walk: &mut Walk, start: u64, end: u64, stride: u64) {
    let session = walk.session;
    if let Some(old) = &mut walk.old {
        tracker::with(|tracker| {
            let recorder = &tracker.recorder;
            // Objects recorded only by other sessions are older than this one.
            old.visit(start, end, stride.max(8), |slot| {
                (recorder.record(slot)).is_some_and(|record| recorder.sees(session, record))
            });
        });
    }
    walk.visited.extend(start >> PAGE_BITS..=end.saturating_sub(1) >> PAGE_BITS);
    let until = walk.until;
    let recorded = tracker::with(|tracker| {
        let recorder = &mut tracker.recorder;
        if !recorder.touches(start, end) {
            return Vec::new();
        }
        let slots = (start..end).step_by(stride.max(8) as usize);
        let records: Vec<(u64, Record)> =
            slots.filter_map(|slot| Some((slot, recorder.record(slot)?))).collect();
        let (living, gone): (Vec<_>, Vec<_>) =
            records.into_iter().partition(|(slot, _)| lives(*slot as VALUE));
        gone.into_iter().for_each(|(slot, _)| {
            recorder.freed(slot);
        });
        let living: Vec<(u64, Record)> = (living.into_iter())
            .map(|(slot, record)| {
                // SAFETY: it lives (see `lives`).
                let now = unsafe { revealed::reveal(tracker, slot as VALUE, record, true) };
                (slot, now)
            })
            .collect();
        let recorder = &tracker.recorder;
        living
            .into_iter()
            .filter(|(_, record)| {
                recorder.sees(session, *record)
                    && until.is_none_or(|until| recorder.allocated_by(until, *record))
            })
            .collect()
    });
    // A type's own memsize function may do anything, so the tracker is released while it runs.
    let sized: Vec<(u64, Record, u64)> = (recorded.unwrap_or_default().into_iter())
        .map(|(address, record)| (address, record, (walk.size)(address)))
        .collect();
    tracker::with(|tracker| {
        let recorder = &tracker.recorder;
        for (address, record, memsize) in sized {
            recorder.survives(&mut walk.survivors, record, memsize, || string(address));
        }
    });
}

/// True for a slot with an object that is not garbage. The slot is in a heap page visited by a walk.
pub fn lives(object: VALUE) -> bool {
    // SAFETY: a slot of the heap page that the walk visits.
    let flags = unsafe { Flags::of(object) };
    flags.holds_object()
        && !symbols().garbage_object_p.is_some_and(|garbage| {
            // SAFETY: as above.
            unsafe { garbage(object) }
        })
}

fn memsize(object: VALUE) -> u64 {
    // SAFETY: an object that lives (see `lives`).
    let memsize = unsafe { memsize::memsize(object, Flags::of(object)) };
    memsize.unwrap_or_else(|| u64::from(ruby_object::slot_size(object)))
}

fn string<'a>(object: VALUE) -> Option<&'a [u8]> {
    // SAFETY: an object that lives; the bytes are copied before any Ruby code runs.
    unsafe {
        let is_string = Flags::of(object).is(ruby_value_type::RUBY_T_STRING);
        if is_string { ruby_object::string_bytes(object) } else { None }
    }
}
